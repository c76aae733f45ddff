/* SPDX-License-Identifier: MIT */
/*
 * Overflow - the signal handler, and the list of slabs in which it finds the
 * stack that a faulting address belongs to.
 *
 * A fault in the guard of a stack in use is an overflow: the handler prints the
 * task, and the signal takes its default action, which ends the process.  With
 * any other fault, and with a signal that was sent, it does what the program's
 * action would do.  The handler is in force while there is a runtime, unless
 * the program ignores the signal.
 * Each worker's thread has a stack for the handler, since the stack on which it
 * runs is the one that overflowed.
 *
 * Orderings
 *   [overflow.slab]  list head store release -> load acquire of the handler, on
 *       whatever thread: the slab's fields.
 */
#include "runtime/stack/overflow.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/atomic.h"
#include "runtime/base/handler.h"
#include "runtime/base/lock.h"
#include "runtime/stack/stack.h"

#define ALTSTACK_BYTES ((size_t)64 << 10)

/* All slabs of the process.  Changed under the lock.  The handler reads them
 * without the lock: links are stored whole, and a slab is removed only with its
 * runtime, when none of its tasks runs. */
static struct weft__lock slabs_lock;
static weft__atomic(struct weft__stack_slab *) slabs;

static weft__overflow_name_fn *name_of; /* written before the handlers */

static void overflow_handler(int number, siginfo_t *info, void *context);
static struct weft__handler on_segv = { .fn = overflow_handler };
static struct weft__handler on_bus = { .fn = overflow_handler };

/* Runtimes that want the handlers; under the lock, as set and reset. */
static unsigned wanted;
static pthread_mutex_t wanted_lock = PTHREAD_MUTEX_INITIALIZER;

static struct weft__stack *overflow_find(uintptr_t address)
{
	/* pairs: [overflow.slab] */
	struct weft__stack_slab *slab = weft__load(&slabs, acquire);

	for (; slab; slab = slab->report_next) {
		uintptr_t offset = address - (uintptr_t)slab->base;

		if (offset >= slab->bytes)
			continue;
		if (offset % slab->stride >= WEFT__STACK_GUARD_BYTES ||
		    offset / slab->stride >= slab->used)
			return NULL;
		return weft__slab_stack(slab,
					(uint32_t)(offset / slab->stride));
	}
	return NULL;
}

static void overflow_print(const struct weft__stack *stack, uintptr_t address)
{
	struct weft__overflow_name name = { "unnamed", 0 };
	char text[256];
	int n;

	if (stack->task)
		name = name_of(stack->task);
	/* snprintf of integers and strings does not allocate. */
	n = snprintf(text, sizeof(text),
		     "weft: stack overflow in task '%s' (%llx): its stack "
		     "has %zu bytes, address %#lx is below it; start it with "
		     "a larger stack_bytes\n",
		     name.label, (unsigned long long)name.id,
		     (size_t)1 << stack->size_class,
		     (unsigned long)address);
	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		return;
}

static void overflow_handler(int number, siginfo_t *info, void *context)
{
	struct weft__stack *stack = NULL;

	/* A signal that a process has sent has no address. */
	if (info->si_code > 0)
		stack = overflow_find((uintptr_t)info->si_addr);
	if (stack) {
		overflow_print(stack, (uintptr_t)info->si_addr);
		weft__handler_default(number, info);
		return;
	}
	weft__handler_pass(number == SIGSEGV ? &on_segv : &on_bus, number, info,
			   context);
}

/* A handler would change what a program inherits that is executed: there an
 * ignored signal is ignored, and one with a handler has the default action. */
static void handler_set(struct weft__handler *handler, int number)
{
	struct sigaction now;

	if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
		(void)weft__handler_set(handler, number);
}

void weft__overflow_report_init(weft__overflow_name_fn *name)
{
	pthread_mutex_lock(&wanted_lock);
	if (wanted++ == 0) {
		name_of = name;
		handler_set(&on_segv, SIGSEGV);
		handler_set(&on_bus, SIGBUS);
	}
	pthread_mutex_unlock(&wanted_lock);
}

void weft__overflow_report_fini(void)
{
	pthread_mutex_lock(&wanted_lock);
	if (--wanted == 0) {
		weft__handler_reset(&on_segv, SIGSEGV);
		weft__handler_reset(&on_bus, SIGBUS);
	}
	pthread_mutex_unlock(&wanted_lock);
}

/* Another thread may have held a lock at the fork. */
void weft__overflow_forget(void)
{
	weft__handler_reset(&on_segv, SIGSEGV);
	weft__handler_reset(&on_bus, SIGBUS);
	wanted = 0;
	wanted_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	/* relaxed: no other thread is here. */
	weft__store(&slabs, NULL, relaxed);
	slabs_lock = (struct weft__lock){ 0 };
}

void weft__overflow_report_add(struct weft__stack_slab *slab)
{
	weft__lock_take(&slabs_lock);
	/* relaxed: written under the lock. */
	slab->report_next = weft__load(&slabs, relaxed);
	/* pairs: [overflow.slab] */
	weft__store(&slabs, slab, release);
	weft__lock_drop(&slabs_lock);
}

void weft__overflow_report_remove(struct weft__stack_slab *slab)
{
	struct weft__stack_slab *before;

	weft__lock_take(&slabs_lock);
	/* relaxed: written under the lock. */
	before = weft__load(&slabs, relaxed);
	if (before == slab) {
		/* relaxed: the remaining slabs were published before. */
		weft__store(&slabs, slab->report_next, relaxed);
	} else {
		while (before->report_next != slab)
			before = before->report_next;
		before->report_next = slab->report_next;
	}
	weft__lock_drop(&slabs_lock);
}

/* A thread has one stack for all runtimes that it is the loop of. */
static __thread struct {
	void *altstack;
	unsigned users;
} own;

void *weft__overflow_thread_init(void)
{
	stack_t stack = { .ss_size = ALTSTACK_BYTES };
	stack_t old;

	if (own.altstack) {
		own.users++;
		return own.altstack;
	}
	if (sigaltstack(NULL, &old) < 0 || !(old.ss_flags & SS_DISABLE))
		return NULL;
	stack.ss_sp = mmap(NULL, ALTSTACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED)
		return NULL;
	if (sigaltstack(&stack, NULL) < 0) {
		munmap(stack.ss_sp, ALTSTACK_BYTES);
		return NULL;
	}
	own.altstack = stack.ss_sp;
	own.users = 1;
	return stack.ss_sp;
}

void weft__overflow_thread_fini(void *altstack)
{
	stack_t now;

	if (!altstack || --own.users > 0)
		return;
	/* The program may have set another since. */
	if (sigaltstack(NULL, &now) == 0 && now.ss_sp == altstack)
		sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
	munmap(altstack, ALTSTACK_BYTES);
	own.altstack = NULL;
}
