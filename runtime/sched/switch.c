/* SPDX-License-Identifier: MIT */
/*
 * Switch - the parts of a switch between tasks that are not in line.
 */
#include "runtime/sched/switch.h"

#include "runtime/sched/wait.h"

struct weft__worker *weft__switch_with_exceptions(struct weft__worker *worker,
						  struct weft__task *next,
						  enum weft__left how)
{
	struct weft__exceptions taken = weft__exceptions_take(worker);

	worker = weft__switch_plain(worker, next, how);
	weft__exceptions_give(worker, taken);
	return worker;
}

struct weft__worker *weft__suspend(struct weft__worker *worker,
				   uint64_t reason)
{
	/* The task is in no queue, nor in `joining`. */
	worker->current->reason = reason;
	return weft__switch_to(worker, weft__pick(worker), WEFT__LEFT_PARK);
}

struct weft__worker *weft__give_way(struct weft__worker *worker)
{
	if (weft__turn_at_once(worker))
		return worker;
	return weft__switch_to(worker, weft__pick(worker), WEFT__LEFT_YIELD);
}

enum weft__left weft__left_unbound(struct weft__task *next,
				   enum weft__left how)
{
	if (how != WEFT__LEFT_JOIN)
		return how;
	/* The slot `joining` is for a joiner of the task that runs.  This
	 * joiner's task may run by now on another worker. */
	return weft__task_join_late(next) ? WEFT__LEFT_PARK : WEFT__LEFT_YIELD;
}

void weft__joining_park(struct weft__worker *worker)
{
	struct weft__task *joiner = weft__joining_take(worker);

	if (joiner && !weft__joiner_park(joiner))
		weft__push(worker, joiner); /* mutate: wake */
}
