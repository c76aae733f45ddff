/* SPDX-License-Identifier: MIT */
/*
 * Join - waiting for a task's result: by the task that started it, which
 * suspends, and by foreign threads, which sleep on a futex.
 *
 * A task that is joined while it is still in the hand-off slot is switched to
 * immediately.  The joiner never runs other tasks on its own stack: that nests
 * without bound, and deadlocks when the helped task waits for the joiner.
 */
#include <errno.h>

#include "runtime/base/futex.h"
#include "runtime/base/nsec.h"
#include "runtime/sched/runtime_ref.h"
#include "runtime/sched/spin.h"
#include "runtime/sched/task_pool.h"
#include "runtime/sched/wait.h"
#include "runtime/task/go.h"
#include "runtime/task/join.h"
#include "runtime/task/scope.h"

/* Takes the result of a task that is done, and frees its record. */
static int join_take(struct weft__worker *worker, struct weft__task *task,
		     int64_t *ret_result)
{
	if (ret_result)
		*ret_result = task->result;
	*task->handle_link = task->handle_next;
	if (task->handle_next)
		task->handle_next->handle_link = task->handle_link;
	weft__task_free(worker->runtime, worker, task);
	return 0;
}

/* Takes the task that the joiner waits for out of this worker's hand-off slot,
 * if it is there and may be switched to. */
static inline bool join_claim(struct weft__worker *worker,
			      struct weft__task *self, struct weft__task *task)
{
	return weft__handoff_slot_has(&worker->lifo) == task &&
	       weft__interrupted(worker, self) == 0 &&
	       weft__fuse_lasts(worker) && weft__lifo_take(worker);
}

static int join_wait(struct weft__worker *worker, struct weft__task *self,
		     struct weft__task *task, int64_t *ret_result)
{
	uint64_t state;
	int error;

	if (join_claim(worker, self, task)) {
		worker->fuse--;
		self->next = task;
		worker = weft__switch_to(worker, task, WEFT__LEFT_JOIN);
	} else if (weft__task_join(task) & WEFT__DONE) {
		return join_take(worker, task, ret_result);
	}
	/* pairs: [task.done] */
	while (!((state = weft__load(&task->state, acquire)) & WEFT__DONE)) {
		error = weft__interrupted(worker, self);
		if (weft__unlikely(error < 0)) {
			state = weft__task_unjoin(task);
			if (state & WEFT__DONE)
				break;
			return error;
		}
		worker = weft__suspend(
			worker, weft__reason(WEFT__REASON_JOIN, task));
	}
	if (weft__likely(state & WEFT__JOINED))
		weft__scope(task->scope)->started--;
	return join_take(worker, task, ret_result);
}

/* The record of a task that `self` may join, and its state; -errno. */
static inline int join_find(struct weft__worker *worker,
			    struct weft__task *self, struct weft_task handle,
			    struct weft__task **ret_task, uint64_t *ret_state)
{
	struct weft__task *task =
		weft__record_at(worker->runtime, handle.id);
	uint64_t state;

	if (weft__unlikely(!task))
		return -ESRCH;
	/* pairs: [task.done], [task.free] */
	state = weft__load(&task->state, acquire);
	if (weft__unlikely(!weft__state_is(state, handle.id) ||
			   (state & WEFT__FREE)))
		return -ESRCH;
	if (weft__unlikely(task == self))
		return -EDEADLK;
	if (weft__unlikely(!weft__task_is(task, WEFT__TASK_HANDLE) ||
			   weft__scope(task->scope)->owner != self))
		return -EPERM;
	*ret_task = task;
	*ret_state = state;
	return 0;
}

int weft_join(struct weft_task handle, int64_t *ret_result)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *self = weft__running(worker);
	struct weft__task *task;
	uint64_t state;
	int error;

	if (weft__unlikely(!self))
		return -EPERM;
	error = join_find(worker, self, handle, &task, &state);
	if (weft__unlikely(error < 0))
		return error;
	if (state & WEFT__DONE)
		return join_take(worker, task, ret_result);
	weft__wait_begin(worker, self);
	return join_wait(worker, self, task, ret_result);
}

int weft__join_look(struct weft__worker *worker, struct weft_task handle)
{
	struct weft__task *task;
	uint64_t state;
	int error = join_find(worker, weft__self(worker), handle, &task,
			      &state);

	if (error < 0)
		return error;
	return (state & WEFT__DONE) ? 0 : -EAGAIN;
}

bool weft__join_mark(struct weft__worker *worker, struct weft_task handle)
{
	return weft__task_join_late(
		weft__record_at(worker->runtime, handle.id));
}

void weft__join_unmark(struct weft__worker *worker, struct weft_task handle)
{
	struct weft__task *task =
		weft__record_at(worker->runtime, handle.id);

	/* mutate: recheck=true */
	if (weft__task_unjoin(task) & WEFT__DONE)
		weft__scope(task->scope)->started--; /* mutate: wake */
}

/* ---- Foreign threads ----------------------------------------------------- */

/* Takes a submitter's count off the root scope.  The last one ends the runtime.
 * From then on other threads may end it too, so a reference keeps it. */
static void submit_end(struct weft_runtime *runtime)
{
	weft__atomic(int64_t) *pending = &weft__scope(&runtime->root)->pending;
	/* relaxed: decided by the CAS. */
	int64_t old = weft__load(pending, relaxed);
	bool last;

	do {
		last = old == 1;
		if (last)
			weft__runtime_ref(runtime);
		/* pairs: [runtime.stop] */
		if (weft__cas(pending, &old, old - 1, acq_rel))
			break;
		if (last)
			weft__runtime_unref(runtime);
	} while (true); /* mutate: retry */
	if (last) {
		weft__runtime_drained(runtime);
		weft__runtime_unref(runtime);
	}
}

/* The flags' half of a state word, for futexes. */
static weft__atomic(uint32_t) *state_flags(struct weft__task *task)
{
	weft__atomic(uint32_t) *half = (void *)&task->state;

	return half + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

void weft__task_wake_threads(struct weft__task *task)
{
	weft__futex_wake(state_flags(task), INT32_MAX);
}

/* Finds a task of the root scope.  The handles of another scope belong to its
 * owner alone. */
static struct weft__task *foreign_find(struct weft_runtime *runtime,
				       struct weft_task handle)
{
	struct weft__task *task = weft__task_at(runtime, handle.id);
	uint64_t state;

	if (!task)
		return NULL;
	/* relaxed: the holder of a handle keeps the generation. */
	state = weft__load(&task->state, relaxed);
	if (!weft__state_is(state, handle.id) ||
	    (state & (WEFT__FREE | WEFT__DROPPED)) ||
	    !weft__task_is(task, WEFT__TASK_HANDLE) ||
	    task->scope != &runtime->root)
		return NULL;
	return task;
}

/* Spends a handle: the thread that sets `mark` frees the record, or the task
 * does.  0 and the state before; -EBUSY: another thread waits; -ESRCH. */
static int foreign_claim(struct weft__task *task, struct weft_task handle,
			 uint64_t mark, uint64_t *ret_state)
{
	/* relaxed: decided by the CAS. */
	uint64_t state = weft__load(&task->state, relaxed);

	do {
		if (!weft__state_is(state, handle.id) ||
		    (state & (WEFT__FREE | WEFT__DROPPED)))
			return -ESRCH;
		if (state & WEFT__JOINED)
			return -EBUSY;
		/* pairs: [task.done] */
	} while (!weft__cas(&task->state, &state, state | mark, acquire));
	*ret_state = state;
	return 0;
}

int weft_submit(struct weft_runtime *runtime, weft_fn fn, const void *arg,
		size_t arg_bytes, const struct weft_task_opts *opts)
{
	static const struct weft_task_opts defaults = WEFT_TASK_OPTS_INIT;
	struct weft__scope *root;
	int error;

	if (!opts)
		opts = &defaults;
	if (!runtime || weft__go_wrong(fn, arg, arg_bytes, opts))
		return -EINVAL;
	root = weft__scope(&runtime->root);
	/* Counted first, so that the runtime cannot end in between.
	 * pairs: [runtime.stop] */
	weft__add(&root->pending, (int64_t)1, acquire);
	/* relaxed: the count acquires it, if need be. */
	if (weft__load(&runtime->stopping, relaxed) >= WEFT__STOP_DRAINS)
		error = -ESHUTDOWN;
	else
		error = weft__root_go(runtime, weft__worker_self(), fn, arg,
				      arg_bytes, opts, false);
	submit_end(runtime);
	return error;
}

/* For a short task the two wakes, of the worker and of the thread, take longer
 * than everything else; looking saves the second. */
#define JOIN_LOOK_NS 50000u

static bool task_has_ended(void *arg)
{
	struct weft__task *task = arg;

	/* relaxed: a look; the wait acquires. */
	return weft__load(&task->state, relaxed) & WEFT__DONE;
}

static void look_first(struct weft_runtime *runtime, struct weft__task *task,
		       uint64_t deadline_ns)
{
	/* A wait that is shorter shows nothing. */
	if (runtime->spins &&
	    deadline_ns >= runtime->ops->now(runtime) + JOIN_LOOK_NS)
		(void)weft__spin(runtime, &runtime->join_spin, JOIN_LOOK_NS,
				 task_has_ended, task);
}

/* Sleeps while the state is that, until the deadline at most.  False: the
 * deadline has passed. */
static bool foreign_sleep(struct weft_runtime *runtime, struct weft__task *task,
			  uint64_t state, uint64_t deadline_ns)
{
	uint64_t now_ns;

	if (deadline_ns == WEFT_NEVER) {
		weft__futex_wait(state_flags(task), (uint32_t)state);
		return true;
	}
	now_ns = runtime->ops->now(runtime);
	if (now_ns >= deadline_ns)
		return false;
	weft__futex_wait_for(state_flags(task), (uint32_t)state,
			     deadline_ns - now_ns);
	return true;
}

/* The thread stops waiting, unless the task has ended.  Returns the state
 * before. */
static uint64_t foreign_unclaim(struct weft__task *task)
{
	uint64_t state;

	do {
		/* pairs: [task.done] */
		state = weft__load(&task->state, acquire);
		if (state & WEFT__DONE)
			break;
		/* relaxed: publishes nothing; the handle is valid again. */
	} while (!weft__cas(&task->state, &state, state & ~WEFT__JOINED,
			    relaxed)); /* mutate: retry */
	return state;
}

static int foreign_wait(struct weft_runtime *runtime, struct weft_task handle,
			uint64_t deadline_ns, int64_t *ret_result)
{
	struct weft__task *task = foreign_find(runtime, handle);
	bool is_loop = weft__loop_is_here(runtime);
	uint64_t state;
	int error;

	if (!task)
		return -ESRCH;
	if (!is_loop)
		look_first(runtime, task, deadline_ns);
	error = foreign_claim(task, handle, WEFT__JOINED, &state);
	if (error < 0)
		return error;
	state |= WEFT__JOINED;
	/* A wait of the loop's thread would have no end. */
	while (!(state & (WEFT__DONE | WEFT__GIVEN_UP)) && !is_loop &&
	       foreign_sleep(runtime, task, state, deadline_ns))
		/* pairs: [task.done] */
		state = weft__load(&task->state, acquire);
	if (!(state & WEFT__DONE))
		state = foreign_unclaim(task);
	/* The task may still run: its record stays. */
	if (!(state & WEFT__DONE))
		return is_loop && runtime->ops->now(runtime) < deadline_ns ?
			       -EDEADLK :
			       -ETIMEDOUT;
	if (ret_result)
		*ret_result = task->result;
	weft__task_free(runtime, NULL, task);
	return 0;
}

/* False: the task has ended. */
static bool give_up(struct weft__task *task)
{
	/* relaxed: decided by the CAS. */
	uint64_t state = weft__load(&task->state, relaxed);

	do {
		if (state & (WEFT__DONE | WEFT__FREE))
			return false;
		/* relaxed: the flag carries no other data. */
	} while (!weft__cas(&task->state, &state, state | WEFT__GIVEN_UP,
			    relaxed)); /* mutate: retry */
	return true;
}

void weft__waits_give_up(struct weft_runtime *runtime)
{
	/* relaxed: submissions ended long ago; each is waited for or given
	 * up. */
	uint32_t used = weft__load(&runtime->tasks.used, relaxed);

	for (uint32_t i = 0; i < used; i++)
		if (give_up(weft__task_at(runtime, i)))
			/* mutate: wake */
			weft__task_wake_threads(weft__task_at(runtime, i));
}

int weft_wait_until(struct weft_runtime *runtime, struct weft_task handle,
		    weft_nsec deadline_ns, int64_t *ret_result)
{
	int error;

	if (!runtime)
		return -EINVAL;
	if (weft__self(weft__worker_self()))
		return -EDEADLK;
	weft__runtime_ref(runtime);
	error = foreign_wait(runtime, handle, weft__nsec_point(deadline_ns),
			     ret_result);
	weft__runtime_unref(runtime);
	return error;
}

int weft_wait(struct weft_runtime *runtime, struct weft_task handle,
	      int64_t *ret_result)
{
	return weft_wait_until(runtime, handle, WEFT_NEVER, ret_result);
}

int weft_detach(struct weft_runtime *runtime, struct weft_task handle)
{
	struct weft__task *task;
	uint64_t state;
	int error;

	if (!runtime)
		return -EINVAL;
	task = foreign_find(runtime, handle);
	if (!task)
		return -ESRCH;
	error = foreign_claim(task, handle, WEFT__DROPPED, &state);
	if (!error && (state & WEFT__DONE))
		weft__task_free(runtime, NULL, task);
	return error;
}
