/* SPDX-License-Identifier: MIT */
/*
 * Overflow - the signal handler, and the list of slabs in which it finds the
 * stack that a faulting address belongs to.
 *
 * An address in the guard of a stack in use is an overflow: the handler prints
 * the task, and restores the default action, of which the process then dies.
 * For every other address the previous handler is called, if there was one.
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
#include "runtime/base/lock.h"
#include "runtime/stack/stack.h"

#define ALTSTACK_BYTES ((size_t)64 << 10)

/* All slabs of the process.  Changed under the lock.  The handler reads them
 * without the lock: links are stored whole, and a slab is removed only with its
 * runtime, when none of its tasks runs. */
static struct weft__lock slabs_lock;
static weft__atomic(struct weft__stack_slab *) slabs;

static struct sigaction before_segv, before_bus;
static weft__overflow_name_fn *name_of; /* written once, before the handler */
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;

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

static void overflow_handler(int signal_number, siginfo_t *info, void *context)
{
	struct sigaction *before =
		signal_number == SIGSEGV ? &before_segv : &before_bus;
	struct weft__stack *stack = overflow_find((uintptr_t)info->si_addr);

	if (stack)
		overflow_print(stack, (uintptr_t)info->si_addr);
	else if (before->sa_flags & SA_SIGINFO) {
		before->sa_sigaction(signal_number, info, context);
		return;
	} else if (before->sa_handler != SIG_DFL &&
		   before->sa_handler != SIG_IGN) {
		before->sa_handler(signal_number);
		return;
	}
	/* The instruction faults again, and then the signal ends the
	 * process. */
	sigaction(signal_number, &(struct sigaction){ .sa_handler = SIG_DFL },
		  NULL);
}

static void overflow_install(void)
{
	struct sigaction action = {
		.sa_sigaction = overflow_handler,
		.sa_flags = SA_SIGINFO | SA_ONSTACK,
	};

	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, &before_segv);
	sigaction(SIGBUS, &action, &before_bus);
}

void weft__overflow_report_init(weft__overflow_name_fn *name)
{
	pthread_mutex_lock(&install_lock);
	if (!name_of) {
		name_of = name;
		overflow_install();
	}
	pthread_mutex_unlock(&install_lock);
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

void *weft__overflow_thread_init(void)
{
	stack_t stack = { .ss_size = ALTSTACK_BYTES };
	stack_t old;

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
	return stack.ss_sp;
}

void weft__overflow_thread_fini(void *altstack)
{
	if (!altstack)
		return;
	sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
	munmap(altstack, ALTSTACK_BYTES);
}
