/* SPDX-License-Identifier: MIT */
#include "io/ring/soft/work.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "io/ring/soft/call.h"
#include "io/ring/soft/ops.h"
#include "runtime/base/handler.h"
#include "runtime/base/memory.h"
#include "runtime/blocking/blocking.h"
#include "runtime/sched/runtime.h"

struct weft__soft_work {
	struct weft__job job;
	/* Immutable. */
	struct weft__soft *soft;
	struct weft__soft_op *op;
	/* Under the lock. */
	pid_t thread; /* its number, to which a signal can be queued */
	bool running;
	unsigned holders; /* the caller that queues it, and the job */
};

/* ---- The signal --------------------------------------------------------- */

static pthread_mutex_t signal_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned signal_users; /* under signal_lock */
static int signal_number;     /* set before the first ring is open; 0: none */

static void on_signal(int number, siginfo_t *info, void *context);

static struct weft__handler handler = { .fn = on_signal };

static bool is_own(const siginfo_t *info)
{
	return info->si_code == SI_QUEUE &&
	       info->si_value.sival_ptr == (void *)&handler;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	if (!is_own(info))
		weft__handler_pass(&handler, number, info, context);
}

/* An emulator has fewer signals than the C library says, takes an action for
 * the others without an error, and sends none (qemu-user).  A timer that is
 * never started asks for one: a signal that is sent would stop a debugger. */
static bool signal_exists(int number)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = number,
	};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0)
		return errno != EINVAL;
	timer_delete(timer);
	return true;
}

/* The last realtime signal that the program has no use for.  One that it has
 * blocked it may wait for. */
static int signal_find(void)
{
	struct sigaction action;
	sigset_t blocked;

	pthread_sigmask(SIG_BLOCK, NULL, &blocked);
	for (int number = SIGRTMAX; number >= SIGRTMIN; number--)
		if (!sigismember(&blocked, number) &&
		    sigaction(number, NULL, &action) == 0 &&
		    action.sa_handler == SIG_DFL && signal_exists(number))
			return number;
	return 0;
}

void weft__soft_signal_begin(void)
{
	pthread_mutex_lock(&signal_lock);
	if (!signal_users++ && !signal_number)
		signal_number = signal_find();
	if (signal_number)
		(void)weft__handler_set(&handler, signal_number);
	pthread_mutex_unlock(&signal_lock);
}

void weft__soft_signal_end(void)
{
	pthread_mutex_lock(&signal_lock);
	if (!--signal_users && signal_number)
		weft__handler_reset(&handler, signal_number);
	pthread_mutex_unlock(&signal_lock);
}

/* Another thread may have held the lock at the fork. */
void weft__soft_signal_forget(void)
{
	if (signal_users)
		weft__handler_reset(&handler, signal_number);
	signal_users = 0;
	signal_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* Lets the signal through in this thread. */
static void signal_admit(sigset_t *ret_before)
{
	sigset_t set;

	sigemptyset(&set);
	if (signal_number)
		sigaddset(&set, signal_number);
	pthread_sigmask(SIG_UNBLOCK, &set, ret_before);
}

/* Takes back what was sent to this thread, and has the mask of before: the
 * program may let a signal through later that was blocked. */
static void signal_drop(const sigset_t *before)
{
	static const struct timespec at_once;
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	if (signal_number)
		sigaddset(&set, signal_number);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	while (sigtimedwait(&set, &info, &at_once) > 0)
		if (!is_own(&info))
			(void)syscall(SYS_rt_sigqueueinfo, getpid(),
				      signal_number, &info);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* pthread_sigqueue() is only in some C libraries. */
static void interrupt(pid_t thread)
{
	siginfo_t info;

	if (!signal_number)
		return;
	memset(&info, 0, sizeof(info));
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = &handler;
	(void)syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, signal_number,
		      &info);
}

/* ---- In the pool -------------------------------------------------------- */

/* False: the request was cancelled before. */
static bool work_begin(struct weft__soft_work *work)
{
	bool begins;

	weft__lock_take(&work->soft->lock);
	begins = !work->op->cancelled;
	work->thread = (pid_t)syscall(SYS_gettid);
	work->running = begins;
	weft__lock_drop(&work->soft->lock);
	return begins;
}

/* Was the call interrupted by a signal of the program's? */
static bool is_to_be_repeated(struct weft__soft_work *work, int32_t r)
{
	bool cancelled;

	/* A connection may have been made: connecting tells its caller.  A
	 * close that was interrupted has given the number up. */
	if (r != -EINTR || work->op->request.opcode == WEFT__OPCODE_CONNECT ||
	    work->op->request.opcode == WEFT__OPCODE_CLOSE)
		return false;
	weft__lock_take(&work->soft->lock);
	cancelled = work->op->cancelled;
	weft__lock_drop(&work->soft->lock);
	return !cancelled;
}

static int64_t work_run(void *arg)
{
	struct weft__soft_work *work = arg;
	sigset_t before;
	int32_t r;

	if (!work_begin(work))
		return -ECANCELED;
	signal_admit(&before);
	do {
		r = weft__soft_call(work->op);
	} while (is_to_be_repeated(work, r));
	weft__lock_take(&work->soft->lock);
	work->running = false;
	weft__lock_drop(&work->soft->lock);
	signal_drop(&before);
	return r;
}

static void work_free(struct weft__soft *soft, struct weft__soft_work *work)
{
	weft__memory_free(soft->runtime->memory, work, sizeof(*work));
}

/* Under the lock. */
static bool work_let_go(struct weft__soft_work *work)
{
	return --work->holders == 0;
}

/* If there is no thread for it, the one that asked waits for it. */
static void work_ended(struct weft__job *job)
{
	struct weft__soft_work *work = job->arg;
	struct weft__soft *soft = work->soft;
	int64_t r = job->refused ? work_run(work) : job->result;
	bool is_last;

	weft__lock_take(&soft->lock);
	if (r == -EINTR && work->op->cancelled)
		r = -ECANCELED;
	weft__soft_complete(soft, work->op, (int32_t)r, 0);
	is_last = work_let_go(work);
	weft__lock_drop(&soft->lock);
	if (is_last)
		work_free(soft, work);
}

/* ---- Calls -------------------------------------------------------------- */

bool weft__soft_pool(struct weft__soft *soft, struct weft__soft_op *op)
{
	struct weft__soft_work *work =
		weft__memory_zeroed(soft->runtime->memory, sizeof(*work));

	if (!work)
		return false;
	work->soft = soft;
	work->op = op;
	work->job.fn = work_run;
	work->job.arg = work;
	work->job.ended = work_ended;
	work->holders = 2;
	op->state = WEFT__SOFT_POOLED;
	op->work = work;
	op->cancelled = false;
	return true;
}

void weft__soft_start(struct weft__soft *soft, struct weft__soft_work *work)
{
	int r = weft__blocking_submit(soft->runtime, &soft->lane, &work->job);

	bool is_last;

	weft__lock_take(&soft->lock);
	if (r < 0) {
		weft__soft_complete(soft, work->op, r, 0);
		work->holders--;
	}
	is_last = work_let_go(work);
	weft__lock_drop(&soft->lock);
	if (is_last)
		work_free(soft, work);
}

int weft__soft_work_cancel(struct weft__soft *soft, struct weft__soft_op *op)
{
	struct weft__soft_work *work = op->work;

	if (weft__blocking_withdraw(soft->runtime, &work->job)) {
		weft__soft_complete(soft, op, -ECANCELED, 0);
		if (work_let_go(work))
			work_free(soft, work);
		return 0;
	}
	op->cancelled = true;
	if (work->running)
		interrupt(work->thread);
	return -EALREADY;
}
