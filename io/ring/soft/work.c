/* SPDX-License-Identifier: MIT */
#include "io/ring/soft/work.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/os/interrupt.h"
#include "io/ring/soft/call.h"
#include "io/ring/soft/ops.h"
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
	weft__interrupt_admit(&before);
	do {
		r = weft__soft_call(work->op);
	} while (is_to_be_repeated(work, r));
	weft__lock_take(&work->soft->lock);
	work->running = false;
	weft__lock_drop(&work->soft->lock);
	weft__interrupt_drop(&before);
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
		weft__interrupt(work->thread);
	return -EALREADY;
}
