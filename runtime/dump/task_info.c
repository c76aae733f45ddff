/* SPDX-License-Identifier: MIT */
/* Task info - first of tasks that are held, then of any; see the header. */
#include "runtime/dump/task_info.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "runtime/base/nsec.h"
#include "runtime/blocking/job_queue.h"
#include "runtime/sched/task_pool.h"
#include "runtime/sync/inspect.h"
#include "runtime/sync/mutex.h"
#include "runtime/sync/select.h"
#include "runtime/task/scope.h"
#include "runtime/task/within.h"

enum { PAGE_BYTES = 4096 }; /* at least */

/* ---- Tasks that are held ------------------------------------------------- */

static void name_copy(char *to, const char *from)
{
	strncpy(to, from ? from : "", WEFT__NAME_BYTES - 1);
	to[WEFT__NAME_BYTES - 1] = '\0';
}

/* The id of the task at that address; 0: no task of this runtime. */
static uint64_t id_of(struct weft_runtime *runtime, uint64_t address)
{
	struct weft__task_slabs *slabs = &runtime->tasks;
	/* pairs: [task.chunk] */
	uint32_t used = weft__load(&slabs->used, acquire);

	for (uint32_t i = 0; i < used; i += WEFT__TASK_CHUNK) {
		struct weft__task *first = weft__record_at(runtime, i);
		uint64_t offset = address - (uint64_t)(uintptr_t)first;

		if (offset < WEFT__TASK_CHUNK * sizeof(*first))
			return weft__running_id(
				first + offset / sizeof(*first));
	}
	return 0;
}

/* The owner does not end meanwhile: at most it releases the object. */
static void task_info_owner(struct weft_runtime *runtime,
			    struct weft__task_info *info, uint64_t owner)
{
	info->taken = owner;
	info->other = owner && owner != WEFT__OWNER_THREAD ?
				id_of(runtime, owner) :
				0;
}

static void case_look(struct weft__task_info_case *to,
		      const struct weft_case *from)
{
	to->kind = from->kind;
	to->number = from->number;
	to->events = from->events;
	if (from->kind != WEFT_CASE_SEND && from->kind != WEFT_CASE_RECV)
		return;
	to->chan = from->chan;
	to->have = weft_chan_count(from->chan);
	to->max = weft__chan(from->chan)->capacity;
}

/* The select lies in the frame of its call, and the cases stay until the call
 * returns.  A task that grants a case writes only its result, which is not
 * read. */
static void task_info_select(struct weft__task_info *info,
			     const struct weft__select *s)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct weft_case *which = &s->cases[i];

		if (which->kind == WEFT_CASE_NONE)
			continue;
		info->cases_hope |= which->kind == WEFT_CASE_READY ||
				      (which->kind == WEFT_CASE_AT &&
				       weft__nsec_point(which->number) !=
					       WEFT_NEVER);
		if (info->cases_count < WEFT__CASES_SHOWN)
			case_look(&info->cases[info->cases_count], which);
		info->cases_count++;
	}
}

/* Reads the object's state.  Taking its lock is safe: the object exists while a
 * call on it is under way, and the held task is in such a call. */
static void task_info_object(struct weft__task_info *info)
{
	const void *object = info->object;

	switch (info->on) {
	case WEFT__ON_SEND:
	case WEFT__ON_RECEIVE:
		info->have = weft_chan_count(object);
		info->max = weft__chan(object)->capacity;
		break;
	case WEFT__ON_SEMAPHORE:
		info->have = weft_sem_count(object);
		break;
	case WEFT__ON_COUNT:
		info->have = weft__count_left(object);
		break;
	case WEFT__ON_BARRIER:
		info->have = weft__barrier_came(object, &info->max);
		break;
	case WEFT__ON_SELECT:
		task_info_select(info, object);
		break;
	default:
		break;
	}
}

static void task_info_wait(struct weft_runtime *runtime,
			   struct weft__task_info *info,
			   const struct weft__wait *wait)
{
	info->on = wait->on;
	info->object = wait->object;
	task_info_object(info);
	if (wait->on == WEFT__ON_MUTEX) {
		task_info_owner(runtime, info, weft__mutex_owner(wait->object));
	} else if (wait->on == WEFT__ON_READ_LOCK ||
		   wait->on == WEFT__ON_WRITE_LOCK) {
		task_info_owner(runtime, info,
				weft__rwlock_writer(wait->object, &info->have));
	} else if (wait->on == WEFT__ON_ONCE) {
		task_info_owner(runtime, info, weft__once_owner(wait->object));
	} else if (wait->on == WEFT__ON_JOB) {
		const struct weft__job *job = wait->object;

		info->job = job->fn;
		name_copy(info->lane, job->lane->name);
	}
}

static void task_info_reason(struct weft_runtime *runtime,
			     struct weft__task_info *info)
{
	void *object = weft__reason_object(info->reason);

	if (!object)
		return;
	switch (weft__reason_kind(info->reason)) {
	case WEFT__REASON_JOIN:
		info->other = weft__running_id(object);
		break;
	case WEFT__REASON_WAIT:
		task_info_wait(runtime, info, object);
		break;
	case WEFT__REASON_TIME:
		info->until_ns = *(const uint64_t *)object;
		break;
	case WEFT__REASON_SCOPE:
		info->object = object;
		/* relaxed: a momentary value. */
		info->count = (uint64_t)(weft__load(
			&((struct weft__scope *)object)->pending, relaxed) -
			WEFT__SCOPE_WAITING);
		break;
	default:
		break;
	}
}

void weft__task_info_held(struct weft_runtime *runtime, struct weft__task *task,
		       uint64_t state, struct weft__task_info *info)
{
	struct weft__scope *scope = weft__scope(task->scope);

	memset(info, 0, sizeof(*info));
	info->id = weft__task_id(task, state);
	info->state = state;
	info->fn = weft__task_function(task->fn, task->arg);
	info->has_begun = true;
	info->has_stack = task->stack;
	info->since_ns = info->has_stack ? task->stack->since_ns :
					       task->since_ns;
	name_copy(info->name, task->name);
	info->deadline_ns = weft__within_deadline(task);
	info->reason = task->reason;
	task_info_reason(runtime, info);
	if (scope->owner) {
		info->scope = scope;
		info->owner = scope->owner_id;
	}
}

/* ---- Any tasks ----------------------------------------------------------- */

/* Copies a name whose memory may be gone, or may end before the name would. */
static void name_peek(char *to, const char *from)
{
	struct iovec local = { to, WEFT__NAME_BYTES - 1 };
	size_t here = PAGE_BYTES - ((uintptr_t)from & (PAGE_BYTES - 1));
	size_t first = here < local.iov_len ? here : local.iov_len;
	struct iovec remote[2] = {
		{ (void *)(uintptr_t)from, first },
		{ (void *)((uintptr_t)from + first), local.iov_len - first },
	};
	ssize_t n = 0;

	if (from)
		n = process_vm_readv(getpid(), &local, 1, remote, 2, 0);
	to[n < 0 ? 0 : n] = '\0';
}

/* The task may write to the record, or end, meanwhile. */
static __attribute__((noinline, no_sanitize("thread"))) const char *
record_read(const struct weft__task *task, struct weft__task_info *info,
	    void **ret_arg)
{
	const volatile struct weft__task *t = task;
	const volatile struct weft__stack *stack = t->stack;
	bool is_future = info->state & WEFT__FUTURE;

	info->fn = t->fn;
	info->has_stack = stack;
	info->has_begun = stack || (is_future &&
				      t->awaits != WEFT__AWAITS_BEGIN);
	info->since_ns = stack ? stack->since_ns : t->since_ns;
	*ret_arg = t->arg_heap;
	return t->name;
}

bool weft__task_info(struct weft__task *task, struct weft__task_info *info)
{
	void *arg;
	/* pairs: [task.free] */
	uint64_t state = weft__load(&task->state, acquire);

	if (state & (WEFT__FREE | WEFT__DONE))
		return false;
	memset(info, 0, sizeof(*info));
	info->id = weft__task_id(task, state);
	info->state = state;
	info->deadline_ns = WEFT_NEVER;
	name_peek(info->name, record_read(task, info, &arg));
	/* A read-modify-write, so that no read above moves below it.
	 * pairs: [task.done] */
	state = weft__or(&task->state, (uint64_t)0, acq_rel);
	if (!weft__state_is(state, info->id) ||
	    (state & (WEFT__FREE | WEFT__DONE)))
		return false;
	info->fn = weft__task_function(info->fn, &arg);
	return true;
}
