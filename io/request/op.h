/* SPDX-License-Identifier: MIT */
/*
 * Operation - a request to the kernel that a task waits for, one at a time.
 *
 * The word in the task's record
 *
 *	 63      62 60 59           32 31        0
 *	[PENDING][ 0 ][  sequence     ][ result   ]
 *
 *	      begin, by the task                   end, by the reaper of the
 *	      (sequence + 1)                       completion
 *	IDLE ----------------> PENDING ----------------> IDLE, with a result
 *
 * Invariants
 *   OP1  A call returns only after the last completion of its request, even if
 *       it was interrupted: the kernel may write to the caller's memory until
 *       then.  Success wins over the interruption.
 *   OP2  A completion names the record and the sequence.  A completion that
 *       finds another sequence, or no PENDING, is stale: it is counted and
 *       dropped.
 *   OP3  While PENDING is set the task cannot end, so its generation does not
 *       change.  After the end was stored the reaper no longer touches the
 *       task, except with a wake, which names the generation.
 *
 * Orderings
 *   [op.begin]  begin release -> complete acquire: fd and shard of its record.
 *   [op.end]  end release -> the waiting task's acquire: the result, and what
 *       the kernel wrote, whose completion the reaper acquired.
 */
#ifndef WEFT_IO_REQUEST_OP_H
#define WEFT_IO_REQUEST_OP_H

#include <errno.h>

#include "io/request/op_record.h"
#include "io/request/shard.h"
#include "runtime/sched/task.h"
#include "runtime/sched/wait_reason.h"

struct weft__fd;

#define WEFT__OP_PENDING ((uint64_t)1 << 63)

/* How long to wait before the next try to cancel a request that could not be
 * cancelled: the kernel was changing its state, or is carrying it out. */
#define WEFT__CANCEL_AGAIN_NS 1000000u

/* How long to wait before the next poll, if polls fail, or find what does not
 * hold. */
#define WEFT__POLL_AGAIN_NS 1000000u

/* Flags of weft__op_run. */
enum {
	WEFT__OP_AT_ONCE = 1 << 0,  /* submitted now: disks prefer it */
	WEFT__OP_SHIELDED = 1 << 1, /* closes: ignores deadlines and
				       cancellation, and is made once */
	WEFT__OP_REPEATS = 1 << 5,  /* the kernel interrupted it before; also in
				       task->op_flags */
};

/* Flags of a record, under the lock of the descriptor's entry. */
enum {
	WEFT__OP_CLOSED = 1 << 0, /* a closer cancels the request */
	WEFT__OP_LATE = 1 << 1,	  /* it began while the kernel closed (FD3) */
	WEFT__OP_ANEW = 1 << 2,	  /* and was cancelled to begin again */
	WEFT__OP_MORE = 1 << 3,	  /* more can be received now */
	WEFT__OP_IN_POOL = 1 << 4, /* a thread carries it out, no ring */
	/* These count how often a poll has failed, see op.c; the task's own,
	 * between its requests. */
	WEFT__OP_FAILED = 1 << 8,
	WEFT__OP_FAILED_MAX = 15 << 8,
};

/*
 * Gives a request to the kernel and suspends the running task until it is done.
 * The call has begun: see weft__call_begin().  entry: that of the descriptor
 * whose close ends the request, or NULL.  Returns the result of the completion,
 * or -EBADF (being closed), -ECANCELED, -ETIMEDOUT.  A request that the kernel
 * interrupted is made again, except with SHIELDED: its result is then one of
 * weft__op_was_interrupted().
 */
int32_t weft__op_run(const struct weft__request *request,
		     struct weft__fd *entry, unsigned flags);

/* The same, and waits for the descriptor to be ready (POLLIN, POLLOUT) whenever
 * the kernel returns -EAGAIN, as it does for descriptors that do not block. */
int32_t weft__op_run_ready(const struct weft__request *request,
			   struct weft__fd *entry, unsigned flags,
			   unsigned events);

/* Makes sure that an entry is free in the ring of the running task's worker,
 * which may have changed since the call.  Returns that worker.  From here to
 * the entry's publication the task must not be switched. */
struct weft__worker *weft__op_make_room(void);

/* Opening a FIFO can return error numbers that the kernel keeps for itself:
 * ERESTARTSYS and its kin, 512 to 516. */
static inline bool weft__op_was_interrupted(int32_t result)
{
	return result == -ECANCELED || result == -EINTR ||
	       (result <= -512 && result >= -516);
}

/* Waits until a descriptor that returned -EAGAIN is ready.  tries: how many
 * times in a row it did, from 0 on.  Returns the events that hold, or an error
 * as of weft__op_run; also if the wait is over but the task is to give up. */
int32_t weft__op_await_ready(int fd, struct weft__fd *entry, unsigned events,
			     unsigned tries);

/* The same as weft__op_run for a future, which awaits the request: also returns
 * WEFT_PENDING.  `what` is WEFT__AWAITS_OP, or the kind of call that the task's
 * record is to show. */
int32_t weft__op_await(enum weft__awaits what, struct weft__worker *worker,
		       struct weft__task *task,
		       const struct weft__request *request,
		       struct weft__fd *entry, unsigned flags);

/* Ends what a future awaited, and the reason for its wait; returns `result`. */
int32_t weft__op_await_end(struct weft__worker *worker, struct weft__task *task,
			   int32_t result);

/* Handles one completion; returns how many tasks were made ready. */
unsigned weft__op_complete(struct weft__worker *here,
			   const struct weft__completion *completion);

static inline uint32_t weft__op_sequence(uint64_t word)
{
	return (uint32_t)(word >> 32) & WEFT__SEQUENCE_MASK;
}

/* Called by the task itself.  Returns the new sequence. */
static inline uint32_t weft__op_begin(struct weft__task *task)
{
	/* relaxed: while nothing is pending only the task writes it. */
	uint64_t word = weft__load(&task->op, relaxed);
	uint32_t sequence = (weft__op_sequence(word) + 1) & WEFT__SEQUENCE_MASK;

	weft__check(!(word & WEFT__OP_PENDING), "two operations of one task");
	/* pairs: [op.begin] */
	weft__store(&task->op, WEFT__OP_PENDING | (uint64_t)sequence << 32,
		    release);
	return sequence;
}

static inline void weft__op_end(struct weft__task *task, int32_t result)
{
	/* relaxed: while it is pending only one thread may end it. */
	uint64_t word = weft__load(&task->op, relaxed);

	/* pairs: [op.end] */
	weft__store(&task->op,
		    (uint64_t)weft__op_sequence(word) << 32 | (uint32_t)result,
		    release);
}

/* Why a task is suspended (runtime/sched/wait_reason.h):
 *
 *	60          29 28         13 12       5 4   0
 *	[ descriptor  ][ poll events ][ opcode ][ 0   ]
 *
 * The opcode is a request's, or one of these. */
enum {
	WEFT__OP_SAYS_DRAIN = 0xf0, /* wait for requests before a close */
};

static inline uint64_t weft__op_reason(unsigned opcode, unsigned events, int fd)
{
	return weft__reason_number((uint64_t)(uint32_t)fd << 29 |
				   (uint64_t)(events & 0xffff) << 13 |
				   (uint64_t)opcode << 5);
}

static inline uint64_t weft__op_reason_of(const struct weft__request *request)
{
	bool polls = request->opcode == WEFT__OPCODE_POLL;

	return weft__op_reason(request->opcode, polls ? request->how : 0,
			       request->fd);
}

/* Describes such a reason in words that follow "waits"; as snprintf(). */
int weft__op_describe(uint64_t number, char *ret_text, size_t bytes);

/* Suspends the running task until it is woken, for `wait_ns` at most.
 * Deadlines and cancellation end the pause only as they wake the task. */
struct weft__worker *weft__op_pause(struct weft__worker *worker,
				    struct weft__task *task, uint64_t reason,
				    uint64_t wait_ns);

#endif
