/* SPDX-License-Identifier: MIT */
/*
 * Operation: beginning a request, waiting for its completion, and completing
 * it; the state word and the invariants are in op.h.
 *
 * A task suspends in weft__op_run() until the word is no longer PENDING.  A
 * future calls weft__op_await(), which returns WEFT_PENDING as long as it is.
 * An interruption (deadline, cancellation, close) only has the request
 * cancelled; the last completion ends the operation (OP1).  A request that ends
 * as interrupted without such a reason begins again.
 */
#include "io/request/op.h"

#include "io/request/reactor.h"
#include "io/ring/memcheck.h"
#include "runtime/future/future.h"
#include "runtime/sched/wait.h"

/* ---- Beginning -------------------------------------------------------- */

/* All entries are in use.  The kernel takes them now; or it cannot, or a helper
 * is submitting them: then the task lets others run. */
static struct weft__worker *op_await_room(struct weft__worker *worker)
{
	weft__shard_serve(worker, weft__shard(worker));
	if (weft__ring_has_room(&weft__shard(worker)->ring))
		return worker;
	return weft__give_way(worker);
}

struct weft__worker *weft__op_make_room(void)
{
	struct weft__worker *worker = weft__worker_self();

	while (!weft__ring_has_room(&weft__shard(worker)->ring))
		worker = op_await_room(worker);
	return worker;
}

/* Prepares the request once more, as one that is late (FD3).  Under the entry's
 * lock. */
static __attribute__((noinline)) void
op_set_late(struct weft__shard *shard, struct weft__task *task,
	    const struct weft__request *request, uint64_t user_data)
{
	struct weft__request late = *request;

	late.flags |= WEFT__REQUEST_LATE;
	weft__ring_prepare(&shard->ring, &late, user_data);
	weft__op_of(task)->flags |= WEFT__OP_LATE;
}

/* Publishes the request that was prepared, and makes it known to closers; see
 * FD1. */
static int op_publish(struct weft__shard *shard, struct weft__fd *entry,
		      struct weft__task *task,
		      const struct weft__request *request, uint64_t user_data)
{
	int error = 0;

	if (!entry) {
		weft__ring_publish(&shard->ring);
		return 0;
	}
	weft__lock_take(&entry->lock);
	if (weft__unlikely(entry->closing)) {
		error = -EBADF;
	} else {
		if (weft__unlikely(entry->going))
			op_set_late(shard, task, request, user_data);
		weft__fd_link(entry, task);
		weft__ring_publish(&shard->ring);
	}
	weft__lock_drop(&entry->lock);
	return error;
}

/* From the free entry to its publication the task must not be switched. */
static int op_start(struct weft__task *task,
		    const struct weft__request *request,
		    struct weft__fd *entry, unsigned flags)
{
	struct weft__worker *worker = weft__op_make_room();
	struct weft__shard *shard = weft__shard(worker);
	uint64_t user_data;
	int error;

	weft__op_of(task)->fd = entry ? request->fd : -1;
	weft__op_of(task)->shard = (uint16_t)worker->index;
	weft__op_of(task)->flags =
		flags & (WEFT__OP_REPEATS | WEFT__OP_FAILED_MAX);
	user_data = weft__user_data(WEFT__TAG_OP, weft__op_begin(task),
				    task->index);
	weft__ring_prepare(&shard->ring, request, user_data);
	error = op_publish(shard, entry, task, request, user_data);
	if (weft__unlikely(error < 0)) {
		weft__op_end(task, error);
		return error;
	}
	weft__count(worker, WEFT__N_OPS, 1);
	if (flags & WEFT__OP_AT_ONCE)
		weft__shard_flush(shard);
	else
		weft__shard_relieve(shard);
	return 0;
}

/* ---- Waiting ---------------------------------------------------------- */

/* Not a result of the kernel's. */
#define BEGIN_ANEW INT32_MIN

struct weft__worker *weft__op_pause(struct weft__worker *worker,
				    struct weft__task *task, uint64_t reason,
				    uint64_t wait_ns)
{
	struct weft_runtime *runtime = worker->runtime;
	struct weft__alarm alarm = {
		.task = weft__running_id(task),
		.kind = WEFT__ALARM_WAKE,
		.armed = true,
	};

	runtime->ops->arm(worker, &alarm,
			  runtime->ops->now(runtime) + wait_ns);
	worker = weft__suspend(worker, reason);
	runtime->ops->disarm(runtime, &alarm);
	return worker;
}

/* Has the request cancelled, which may be in any worker's ring.  False: that
 * was not possible now. */
static bool op_cancel_now(struct weft__worker *worker, struct weft__task *task,
			  uint64_t word)
{
	struct weft__worker *at =
		worker->runtime->workers[weft__op_of(task)->shard];
	uint64_t user_data = weft__user_data(
		WEFT__TAG_OP, weft__op_sequence(word), task->index);

	return weft__shard_cancel(weft__shard(at), user_data) == 0;
}

/* The wait was interrupted.  The task still waits for the completion (OP1). */
static __attribute__((noinline)) struct weft__worker *
op_cancel(struct weft__worker *worker, struct weft__task *task, uint64_t word,
	  uint64_t reason)
{
	if (op_cancel_now(worker, task, word))
		return weft__suspend(worker, reason);
	return weft__op_pause(worker, task, reason, WEFT__CANCEL_AGAIN_NS);
}

/* Linux (6.18) lets a poll fail with EINVAL if it is woken for nothing and the
 * file has two queues of waiters: so a terminal does when its mode changes, and
 * a FIFO that is open for both.  A file with three fails so each time, so that
 * it is not polled without end; see io/poll.c. */
static bool poll_has_failed(struct weft__task *task,
			    const struct weft__request *request, int32_t result)
{
	struct weft__op_record *record = weft__op_of(task);

	if (result != -EINVAL || request->opcode != WEFT__OPCODE_POLL ||
	    record->flags >= WEFT__OP_FAILED_MAX)
		return false;
	record->flags = (uint16_t)(record->flags + WEFT__OP_FAILED);
	return true;
}

/* BEGIN_ANEW: a signal interrupted the request, such as the one that stops a
 * process which reads its terminal in the background; or a close did that asked
 * for it (FD3).  A close is not begun again: its number is gone. */
static int32_t op_result(struct weft__task *task,
			 const struct weft__request *request, uint64_t word,
			 unsigned flags, int why)
{
	int32_t result = (int32_t)(uint32_t)word;

	if (weft__likely(result >= 0))
		return result;
	if (!weft__op_was_interrupted(result) &&
	    !poll_has_failed(task, request, result))
		return result;
	if (why < 0)
		return why;
	if (weft__op_of(task)->flags & WEFT__OP_CLOSED)
		return -ECANCELED;
	return flags & WEFT__OP_SHIELDED ? result : BEGIN_ANEW;
}

/* The flags of an operation that begins again: the kernel may have carried out
 * what it says it was interrupted in. */
static unsigned op_repeats(struct weft__task *task, unsigned flags)
{
	unsigned now = weft__op_of(task)->flags;

	flags &= ~(unsigned)WEFT__OP_FAILED_MAX;
	flags |= now & WEFT__OP_FAILED_MAX;
	return now & WEFT__OP_ANEW ? flags : flags | WEFT__OP_REPEATS;
}

static int32_t op_wait(struct weft__worker *worker, struct weft__task *task,
		       const struct weft__request *request, unsigned flags)
{
	uint64_t word, reason = weft__op_reason_of(request);
	int why = 0;

	for (;;) {
		/* pairs: [op.end] */
		word = weft__load(&task->op, acquire);
		if (!(word & WEFT__OP_PENDING))
			return op_result(task, request, word, flags, why);
		if (!why && !(flags & WEFT__OP_SHIELDED))
			why = weft__interrupted(worker, task);
		if (weft__unlikely(why < 0))
			worker = op_cancel(worker, task, word, reason);
		else
			worker = weft__suspend(worker, reason);
	}
}

int32_t weft__op_run(const struct weft__request *request,
		     struct weft__fd *entry, unsigned flags)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = worker->current;
	int32_t result;
	int error;

	if (!(flags & WEFT__OP_SHIELDED))
		weft__wait_begin(worker, task);
	do {
		error = op_start(task, request, entry, flags);
		if (weft__unlikely(error < 0))
			return error;
		result = op_wait(weft__worker_self(), task, request, flags);
		if (weft__unlikely(result == BEGIN_ANEW))
			flags = op_repeats(task, flags);
	} while (weft__unlikely(result == BEGIN_ANEW)); /* mutate: retry */
	weft__memcheck_filled(request, result);
	return result;
}

/* ---- Awaiting, by a future ---------------------------------------------- */

int32_t weft__op_await_end(struct weft__worker *worker, struct weft__task *task,
			   int32_t result)
{
	/* A record that is freed shows no scopes. */
	weft__op_of(task)->reason = 0;
	return weft__await_end(worker, task, result);
}

static int32_t await_begin(enum weft__awaits what, struct weft__worker *worker,
			   struct weft__task *task,
			   const struct weft__request *request,
			   struct weft__fd *entry, unsigned flags)
{
	struct weft__shard *shard = weft__shard(worker);
	int error;

	/* Before the entry is looked for: arming an alarm may wake a worker,
	 * which takes an entry. */
	if (!(flags & WEFT__OP_SHIELDED))
		weft__await_begin(what, worker, task);
	if (weft__unlikely(!weft__ring_has_room(&shard->ring)))
		weft__shard_serve(worker, shard);
	if (weft__unlikely(!weft__ring_has_room(&shard->ring))) {
		if (!(flags & WEFT__OP_SHIELDED))
			(void)weft__await_end(worker, task, 0);
		return weft__await_turn(task);
	}
	task->awaits = (uint8_t)what;
	weft__op_of(task)->reason = weft__op_reason_of(request);
	error = op_start(task, request, entry, flags);
	return error < 0 ? weft__op_await_end(worker, task, error) :
			   WEFT_PENDING;
}

static int32_t await_cancel(struct weft__worker *worker,
			    struct weft__task *task, uint64_t word)
{
	if (op_cancel_now(worker, task, word)) /* mutate: recheck=true */
		return WEFT_PENDING;
	return weft__await_pause(worker, task, WEFT__CANCEL_AGAIN_NS);
}

int32_t weft__op_await(enum weft__awaits what, struct weft__worker *worker,
		       struct weft__task *task,
		       const struct weft__request *request,
		       struct weft__fd *entry, unsigned flags)
{
	int32_t result;
	uint64_t word;
	int why = 0;

	if (task->awaits != what)
		return await_begin(what, worker, task, request, entry, flags);
	weft__assert(!entry || weft__op_of(task)->fd == request->fd,
		     WEFT__AWAITS_ANOTHER);
	/* pairs: [op.end] */
	word = weft__load(&task->op, acquire);
	if (!(flags & WEFT__OP_SHIELDED))
		why = weft__future_interrupted(worker, task);
	if (word & WEFT__OP_PENDING)
		return why < 0 ? await_cancel(worker, task, word) :
				 WEFT_PENDING;
	result = weft__op_await_end(worker, task,
				    op_result(task, request, word, flags, why));
	/* Connecting can return either of two numbers for this state, and one
	 * of them means WEFT_PENDING. */
	if (result == WEFT_PENDING)
		return -EALREADY;
	if (result != BEGIN_ANEW) /* mutate: recheck=true */
		return result;
	return await_begin(what, worker, task, request, entry,
			   op_repeats(task, flags));
}

/* ---- Completing ------------------------------------------------------- */

/* Returns the task that closes the descriptor, if it has nothing left to wait
 * for, or 0. */
static uint64_t op_unlink(struct weft__reactor *reactor,
			  struct weft__task *task, uint32_t completion_flags)
{
	struct weft__fd *entry =
		weft__fd_find(&reactor->fds, weft__op_of(task)->fd);
	uint64_t closer;

	weft__lock_take(&entry->lock);
	closer = weft__fd_unlink(entry, task);
	if (completion_flags & WEFT__COMPLETION_NONEMPTY)
		weft__op_of(task)->flags |= WEFT__OP_MORE;
	weft__lock_drop(&entry->lock);
	return closer;
}

unsigned weft__op_complete(struct weft__worker *here,
			   const struct weft__completion *completion)
{
	struct weft__reactor *reactor = weft__reactor(here->runtime);
	struct weft__task *task =
		weft__task_at(here->runtime, completion->user_data);
	uint64_t id, word = 0, closer = 0;
	unsigned made_ready;

	if (weft__likely(task != NULL))
		/* pairs: [op.begin] */
		word = weft__load(&task->op, acquire);
	if (weft__unlikely(!(word & WEFT__OP_PENDING) ||
			   weft__op_sequence(word) !=
				   weft__sequence_of(completion->user_data))) {
		weft__reactor_stale(reactor);
		return 0;
	}
	id = weft__running_id(task);
	if (weft__op_of(task)->fd >= 0)
		closer = op_unlink(reactor, task, completion->flags);
	weft__op_end(task, completion->result);
	made_ready = weft__wake(here, task, id);
	if (weft__unlikely(closer != 0))
		made_ready += weft__wake(
			here, weft__task_at(here->runtime, closer), closer);
	return made_ready;
}
