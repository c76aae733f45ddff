/* SPDX-License-Identifier: MIT */
/*
 * Snapshot - of tasks that wait or are ready, from their stacks; and of tasks
 * that run, through a signal.  The header has the protocol and the orderings.
 */
#include "runtime/dump/snapshot.h"

#include <errno.h>
#include <signal.h>
#include <ucontext.h>

#include "runtime/base/futex.h"
#include "runtime/base/handler.h"
#include "runtime/sched/wait.h"
#include "runtime/stack/context.h"

#define ANSWER_NS 200000000u

/* Ignored by default: one that comes after the handler was removed does
 * nothing. */
#define SIGNAL SIGURG

/* Values of the word that are no thread ids; those are below 2^22. */
enum { NOBODY = 0, FILLING = 1 << 30, DONE };

/* The sanitizers do not know that the stack may be read. */
static __attribute__((noinline, no_sanitize("address", "thread"))) void
stack_copy(struct weft__snapshot *snapshot, uint64_t from, uint64_t to)
{
	const volatile uint64_t *at;
	size_t format;

	from &= ~(uint64_t)7;
	at = (const volatile uint64_t *)(uintptr_t)from;
	format = (size_t)(to - from) / sizeof(*at);
	if (format > WEFT__SNAPSHOT_BYTES / sizeof(*at))
		format = WEFT__SNAPSHOT_BYTES / sizeof(*at);
	for (size_t i = 0; i < format; i++)
		snapshot->stack[i] = at[i];
	snapshot->base = from;
	snapshot->bytes = format * sizeof(*at);
}

/* ---- Tasks that wait, or are ready --------------------------------------- */

static void registers_held(struct weft__registers *at, uint64_t sp,
			   const uint64_t *format)
{
	at->known = 0;
	at->pc = format[WEFT__CONTEXT_PC];
	weft__register_set(at, WEFT__REGISTER_SP,
			   sp + WEFT__CONTEXT_WORDS * sizeof(uint64_t));
#if defined(__x86_64__)
	/* The switch is inlined: the frame is that of its function. */
	at->returns = false;
	weft__register_set(at, WEFT__REGISTER_FRAME,
			   format[WEFT__CONTEXT_FRAME]);
#else
	at->returns = true;
	for (unsigned i = 0; i <= WEFT__CONTEXT_PC; i++)
		weft__register_set(at, 19 + i, format[i]);
#endif
}

void weft__snapshot_held(const struct weft__task *task,
			 struct weft__snapshot *snapshot)
{
	uint64_t sp = (uint64_t)(uintptr_t)task->sp;

	stack_copy(snapshot, sp, (uint64_t)(uintptr_t)task->stack);
	registers_held(&snapshot->at, sp, snapshot->stack);
}

/* The size of the used part of the task's stack; 0: none. */
static __attribute__((noinline, no_sanitize("thread"))) uint64_t
frames_of(const struct weft__task *task, uint64_t *ret_sp)
{
	const volatile struct weft__task *t = task;
	const volatile struct weft__stack *stack = t->stack;
	uint64_t sp = (uint64_t)(uintptr_t)t->sp;
	uint64_t top = (uint64_t)(uintptr_t)stack;

	*ret_sp = sp;
	if (!stack || sp % sizeof(uint64_t) ||
	    sp < (uint64_t)(uintptr_t)stack->low || sp > top)
		return 0;
	return top - sp;
}

bool weft__snapshot_loose(const struct weft__task *task,
			  struct weft__snapshot *snapshot)
{
	uint64_t sp, bytes = frames_of(task, &sp);

	if (bytes < WEFT__CONTEXT_WORDS * sizeof(uint64_t))
		return false;
	stack_copy(snapshot, sp, sp + bytes);
	registers_held(&snapshot->at, sp, snapshot->stack);
	return true;
}

/* ---- Tasks that run ------------------------------------------------------ */

static struct {
	weft__atomic(uint32_t) word; /* a futex */
	struct weft__snapshot *snapshot;
	uint64_t id;
} request;

static void on_signal(int number, siginfo_t *info, void *context);
static struct weft__handler handler = { .fn = on_signal, .flags = SA_RESTART };

#if defined(__x86_64__)
/* A switch that is on the other stack already still has `notrack jmp *%rcx` to
 * run (context.h).  Returns the pc as if the jump were done. */
static uint64_t pc_behind_jump(const mcontext_t *m)
{
	uint64_t pc = (uint64_t)m->gregs[REG_RIP];
	const volatile unsigned char *code = (const void *)(uintptr_t)pc;

	if (code[0] == 0x3e && code[1] == 0xff && code[2] == 0xe1)
		pc = (uint64_t)m->gregs[REG_RCX];
	return pc;
}
#endif

static void registers_running(struct weft__registers *at,
			      const ucontext_t *context)
{
	const mcontext_t *m = &context->uc_mcontext;

	at->known = 0;
	at->returns = false;
#if defined(__x86_64__)
	static const int places[WEFT__REGISTERS] = {
		REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
		REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
		REG_R12, REG_R13, REG_R14, REG_R15,
	};

	at->pc = pc_behind_jump(m);
	for (unsigned i = 0; i < WEFT__REGISTERS; i++)
		weft__register_set(at, i, (uint64_t)m->gregs[places[i]]);
#else
	at->pc = m->pc;
	for (unsigned i = 0; i < WEFT__REGISTER_SP; i++)
		weft__register_set(at, i, m->regs[i]);
	weft__register_set(at, WEFT__REGISTER_SP, m->sp);
#endif
}

/* A function that is about to return has restored its caller's registers.  Its
 * table may still say that they are on the stack.  They still are: below the
 * stack pointer, in the area that a signal leaves alone (System V ABI, AMD64,
 * 3.2.2).  Only the page of the stack pointer is known to be mapped. */
static uint64_t with_red_zone(uint64_t sp)
{
#if defined(__x86_64__)
	uint64_t in_page = sp & (4096 - 1);

	return sp - (in_page < 128 ? in_page : 128);
#else
	return sp;
#endif
}

/* The task of this thread, and the end of its frames; NULL if the thread is not
 * on the task's own stack, as within a switch.  A future uses the thread's
 * stack. */
static struct weft__task *task_interrupted(uint64_t sp, uint64_t *ret_top)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__self(worker);
	uint64_t low = 0;

	if (!task)
		return NULL;
	*ret_top = (uint64_t)(uintptr_t)task->stack;
	if (task->stack)
		low = (uint64_t)(uintptr_t)task->stack->low;
	else if (task == worker->polled)
		*ret_top = (uint64_t)(uintptr_t)worker->polled_from +
			   2 * sizeof(uint64_t);
	return sp >= low && sp < *ret_top ? task : NULL;
}

static void answer(const ucontext_t *context)
{
	struct weft__snapshot *snapshot = request.snapshot;
	struct weft__task *task;
	uint64_t sp, top;

	registers_running(&snapshot->at, context);
	sp = snapshot->at.value[WEFT__REGISTER_SP];
	task = task_interrupted(sp, &top);
	request.id = 0;
	if (task) {
		request.id = weft__running_id(task);
		stack_copy(snapshot, with_red_zone(sp), top);
	}
}

/* A signal of weft's own has this value. */
static bool is_own(const siginfo_t *info)
{
	return info->si_code == SI_QUEUE &&
	       info->si_value.sival_ptr == (void *)&request;
}

/* 0, or -1. */
static int signal_send(uint32_t thread)
{
	siginfo_t info = { .si_signo = SIGNAL, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = (void *)&request;
	return (int)syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, SIGNAL,
			    &info);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	int error = errno;
	uint32_t asked = (uint32_t)syscall(SYS_gettid);

	/* pairs: [snapshot.ask] */
	if (weft__cas(&request.word, &asked, (uint32_t)FILLING, acquire)) {
		answer(context);
		/* pairs: [snapshot.done] */
		weft__store(&request.word, (uint32_t)DONE, release);
		weft__futex_wake(&request.word, 1);
	}
	errno = error;
	/* By default the signal is ignored. */
	if (!is_own(info) && !weft__handler_is_default(&handler))
		weft__handler_pass(&handler, number, info, context);
}

void weft__snapshot_begin(void)
{
	(void)weft__handler_set(&handler, SIGNAL);
}

void weft__snapshot_end(void)
{
	weft__handler_reset(&handler, SIGNAL);
}

/* False: the thread did not answer. */
static bool await_answer(uint32_t thread, uint64_t now_ns,
			 const struct weft__driver_ops *ops)
{
	uint64_t by_ns = now_ns + ANSWER_NS;
	uint32_t word = thread;

	while (word != DONE) {
		uint32_t expected = thread;

		if (now_ns < by_ns)
			weft__futex_wait_for(&request.word, word,
					     by_ns - now_ns);
		else if (word == FILLING)
			weft__futex_wait(&request.word, word);
		/* relaxed: the handler has not begun. */
		else if (weft__cas(&request.word, &expected, (uint32_t)NOBODY,
				   relaxed))
			return false;
		now_ns = ops->now(NULL);
		/* pairs: [snapshot.done] */
		word = weft__load(&request.word, acquire);
	}
	return true;
}

enum weft__doing weft__snapshot_worker(struct weft__worker *worker,
				       uint64_t *ret_id,
				       struct weft__snapshot *snapshot)
{
	/* relaxed: a look. */
	uint32_t thread = weft__load(&worker->thread, relaxed);

	/* relaxed: a look; a worker that sleeps is not disturbed. */
	if (!thread || !weft__load(&worker->seen_ns, relaxed))
		return WEFT__DOING_PARKS;
	request.snapshot = snapshot;
	/* pairs: [snapshot.ask] */
	weft__store(&request.word, thread, release);
	if (signal_send(thread) < 0) {
		/* relaxed: no thread was asked. */
		weft__store(&request.word, (uint32_t)NOBODY, relaxed);
		return WEFT__DOING_SILENT;
	}
	if (!await_answer(thread, worker->ops->now(worker->runtime),
			  worker->ops))
		return WEFT__DOING_SILENT;
	*ret_id = request.id;
	return request.id ? WEFT__DOING_RUNS : WEFT__DOING_BETWEEN;
}
