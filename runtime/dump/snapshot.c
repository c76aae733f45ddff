/* SPDX-License-Identifier: MIT */
/*
 * Snapshot - of tasks that wait, are ready, or sleep in a system call, from
 * their stacks; and of tasks that run, through a signal.  The header has the
 * protocol and the orderings.
 */
#include "runtime/dump/snapshot.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "runtime/base/futex.h"
#include "runtime/base/handler.h"
#include "runtime/dump/thread_look.h"
#include "runtime/sched/wait.h"
#include "runtime/stack/context.h"

/* A worker does not answer if it has not in this time, and its thread has run
 * for RAN_NS outside of the kernel meanwhile; or in the longest time, on a
 * machine that is busy, or if the kernel computes for the thread.  Timers of
 * CPU time expire at ticks of the kernel's clock. */
#define ANSWER_NS     200000000u
#define ANSWER_MAX_NS 2000000000u
#define RAN_NS	      50000000u

/* How long it is asked until the next look at whether its thread sleeps, and
 * how much CPU time is between two signals. */
#define ASK_NS	  20000000u
#define REPEAT_NS 1000000

/* How often the copy of a thread that sleeps is tried in one look. */
enum { SLEEPER_TRIES = 4 };

/* Ignored by default: one that comes after the handler was removed does
 * nothing. */
#define SIGNAL SIGURG

/* Older versions of glibc have no name for it. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

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

/* The task of the worker. */
static __attribute__((noinline, no_sanitize("thread"))) struct weft__task *
task_of(const struct weft__worker *worker)
{
	const volatile struct weft__worker *w = worker;
	struct weft__task *task = w->current;

	return task ? task : w->polled;
}

/* The same, for a thread that is not the worker's. */
static struct weft__task *task_of_other(const struct weft__worker *worker)
{
	struct weft__task *task = task_of(worker);

	/* The record, in whatever chunk, is older than this.
	 * pairs: [task.chunk] */
	(void)weft__load(&worker->runtime->tasks.used, acquire);
	return task;
}

/* Copies the task's frames, if sp is on the stack that it uses: its own, or, if
 * it is a future, the thread's.  False: it is not, as within a switch. */
static __attribute__((noinline, no_sanitize("thread"))) bool
frames_copy(const struct weft__worker *worker, const struct weft__task *task,
	    uint64_t sp, struct weft__snapshot *snapshot)
{
	const volatile struct weft__worker *w = worker;
	const volatile struct weft__stack *stack =
		((const volatile struct weft__task *)task)->stack;
	uint64_t low = 0, top = (uint64_t)(uintptr_t)stack;

	if (stack)
		low = (uint64_t)(uintptr_t)stack->low;
	else if (task == w->polled)
		top = (uint64_t)(uintptr_t)w->polled_from +
		      2 * sizeof(uint64_t);
	if (sp < low || sp >= top)
		return false;
	stack_copy(snapshot, with_red_zone(sp), top);
	return true;
}

static uint64_t polls_of(struct weft__worker *worker)
{
	/* relaxed: a look. */
	return weft__load(&worker->counts[WEFT__N_POLLS], relaxed);
}

/* ---- Threads that sleep -------------------------------------------------- */

static void registers_asleep(struct weft__registers *at,
			     const struct weft__sleeper *sleeper)
{
	at->known = 0;
	at->returns = false;
	at->pc = sleeper->pc;
	weft__register_set(at, WEFT__REGISTER_SP, sleeper->sp);
}

/* Takes what the worker does, if its thread sleeps.  Nothing switches stacks in
 * a system call, so that call is the task's on whatever stack it is. */
static void sleeper_take(struct weft__worker *worker,
			 const struct weft__sleeper *sleeper,
			 struct weft__sample *sample,
			 struct weft__snapshot *snapshot)
{
	struct weft__task *task = task_of_other(worker);

	sample->doing = WEFT__DOING_BETWEEN;
	sample->polls = polls_of(worker);
	snapshot->base = snapshot->bytes = 0;
	registers_asleep(&snapshot->at, sleeper);
	if (!task ||
	    (!frames_copy(worker, task, sleeper->sp, snapshot) &&
	     sleeper->call < 0) ||
	    !weft__task_info(task, &sample->task))
		return;
	sample->doing = WEFT__DOING_RUNS;
	sample->sleeps = WEFT__SLEEPS_SEEN;
}

static bool is_same(const struct weft__sleeper *a,
		    const struct weft__sleeper *b)
{
	return a->call == b->call && a->sp == b->sp && a->pc == b->pc;
}

/* 1: the sample has what a worker does whose thread sleeps; 0: the thread does
 * not sleep, or not for long enough; or -errno: that is unknown. */
static int sleeper_look(struct weft__worker *worker, uint32_t thread,
			struct weft__sample *sample,
			struct weft__snapshot *snapshot)
{
	for (int i = 0; i < SLEEPER_TRIES; i++) {
		uint64_t ran_ns = weft__thread_ran_ns(thread);
		struct weft__sleeper before, after;
		int sleeps = weft__thread_sleeper(thread, &before);

		if (sleeps <= 0)
			return sleeps;
		memset(sample, 0, sizeof(*sample));
		sleeper_take(worker, &before, sample, snapshot);
		if (weft__thread_sleeper(thread, &after) > 0 &&
		    is_same(&before, &after) && ran_ns &&
		    weft__thread_ran_ns(thread) == ran_ns)
			return 1;
	}
	return 0;
}

/* ---- Tasks that run ------------------------------------------------------ */

static struct {
	weft__atomic(uint32_t) word; /* a futex */
	struct weft__sample *sample;
	struct weft__snapshot *snapshot;
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

static void answer(const ucontext_t *context)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__sample *sample = request.sample;
	struct weft__snapshot *snapshot = request.snapshot;
	struct weft__task *task;
	uint64_t sp;

	sample->doing = WEFT__DOING_BETWEEN;
	if (!worker)
		return;
	sample->polls = polls_of(worker);
	registers_running(&snapshot->at, context);
	sp = snapshot->at.value[WEFT__REGISTER_SP];
	task = task_of(worker);
	if (task && frames_copy(worker, task, sp, snapshot) &&
	    weft__task_info(task, &sample->task))
		sample->doing = WEFT__DOING_RUNS;
}

/* The signal of weft's own timer has this value. */
static bool is_own(const siginfo_t *info)
{
	return info->si_code == SI_TIMER &&
	       info->si_value.sival_ptr == (void *)&request;
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
	uint64_t by_ns = now_ns + ASK_NS;
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

/* Makes a timer that signals the thread at the next tick that finds it outside
 * of the kernel, and goes on so.  Returns the timer's number, or -1. */
static int timer_begin(uint32_t thread)
{
	static const struct itimerspec soon = {
		.it_value.tv_nsec = 1,
		.it_interval.tv_nsec = REPEAT_NS,
	};
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGNAL,
		.sigev_value.sival_ptr = &request,
	};
	uint64_t before_ns;
	int timer, tries = 4;

	event.sigev_notify_thread_id = (pid_t)thread;
	if (syscall(SYS_timer_create, weft__thread_user_clock(thread), &event,
		    &timer) < 0)
		return -1;
	/* If the thread's clock has advanced while the timer was set, the timer
	 * has expired, and would signal at a tick that finds the thread in the
	 * kernel.  Some kernels let that clock advance all the time. */
	do {
		before_ns = weft__thread_user_ns(thread);
		(void)syscall(SYS_timer_settime, timer, 0, &soon, NULL);
	} while (weft__thread_user_ns(thread) != before_ns && tries-- > 0);
	return timer;
}

/* A worker that is being looked at. */
struct look {
	struct weft__worker *worker;
	uint32_t thread;
	int timer;	/* -1: none, or none could be made */
	uint64_t since_ns, ran_before_ns, user_before_ns;
	bool hidden;	/* whether the thread sleeps is unknown */
};

/* False: the thread did not answer.  One that cannot be asked has this time to
 * begin to sleep. */
static bool ask(struct look *l, uint64_t now_ns, struct weft__sample *sample,
		struct weft__snapshot *snapshot)
{
	memset(sample, 0, sizeof(*sample));
	request.sample = sample;
	request.snapshot = snapshot;
	/* pairs: [snapshot.ask] */
	weft__store(&request.word, l->thread, release);
	if (l->timer < 0)
		l->timer = timer_begin(l->thread);
	return await_answer(l->thread, now_ns, l->worker->ops);
}

static bool sleeps_hidden(const struct look *l)
{
	return l->hidden &&
	       weft__thread_ran_ns(l->thread) == l->ran_before_ns;
}

static bool is_silent(const struct look *l, uint64_t now_ns)
{
	uint64_t waited_ns = now_ns - l->since_ns;

	return waited_ns >= ANSWER_MAX_NS ||
	       (waited_ns >= ANSWER_NS &&
		(sleeps_hidden(l) || weft__thread_user_ns(l->thread) -
						     l->user_before_ns >=
					     RAN_NS));
}

/* Takes the task of a worker that does not answer: it has had that task all the
 * time if it has counted no other. */
static void silent_take(struct weft__worker *worker, uint64_t polls,
			struct weft__sample *sample,
			struct weft__snapshot *snapshot)
{
	struct weft__task *task = task_of_other(worker);

	memset(sample, 0, sizeof(*sample));
	snapshot->base = snapshot->bytes = 0;
	snapshot->at.pc = 0;
	sample->doing = WEFT__DOING_SILENT;
	if (task && !weft__task_info(task, &sample->task))
		sample->task.id = 0;
	sample->polls = polls_of(worker);
	if (sample->polls != polls)
		sample->task.id = 0;
}

/* Looks and asks in turn; true: the sample has what the worker does. */
static bool look_and_ask(struct look *l, struct weft__sample *sample,
			 struct weft__snapshot *snapshot)
{
	struct weft__worker *worker = l->worker;
	uint64_t now_ns = l->since_ns;
	int seen;

	while (!is_silent(l, now_ns)) {
		/* relaxed: a look; a worker that sleeps is not disturbed. */
		if (!weft__load(&worker->thread, relaxed) ||
		    /* relaxed: the same. */
		    !weft__load(&worker->seen_ns, relaxed)) {
			memset(sample, 0, sizeof(*sample));
			sample->doing = WEFT__DOING_PARKS;
			sample->polls = polls_of(worker);
			return true;
		}
		seen = sleeper_look(worker, l->thread, sample, snapshot);
		l->hidden = seen < 0;
		if (seen > 0 || ask(l, now_ns, sample, snapshot))
			return true;
		now_ns = worker->ops->now(worker->runtime);
	}
	return false;
}

void weft__snapshot_worker(struct weft__worker *worker,
			   struct weft__sample *sample,
			   struct weft__snapshot *snapshot)
{
	uint64_t polls = polls_of(worker);
	struct look l = {
		.worker = worker,
		/* relaxed: a look. */
		.thread = weft__load(&worker->thread, relaxed),
		.timer = -1,
		.since_ns = worker->ops->now(worker->runtime),
	};

	l.ran_before_ns = weft__thread_ran_ns(l.thread);
	l.user_before_ns = weft__thread_user_ns(l.thread);
	if (!look_and_ask(&l, sample, snapshot)) {
		silent_take(worker, polls, sample, snapshot);
		if (sample->task.id && sleeps_hidden(&l)) {
			sample->sleeps = WEFT__SLEEPS_HIDDEN;
			sample->doing = WEFT__DOING_RUNS;
		}
	}
	if (l.timer >= 0)
		(void)syscall(SYS_timer_delete, l.timer);
}
