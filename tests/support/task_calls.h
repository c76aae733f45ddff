/* SPDX-License-Identifier: MIT */
/*
 * Calls that wait for tasks, and for threads of the pool, for the table in
 * io_calls.h.
 *
 * A child task waits for the event of its place, and the thread of the pool for
 * its flag: so letting go of the place ends the wait.
 */
#ifndef WEFT_TESTS_SUPPORT_TASK_CALLS_H
#define WEFT_TESTS_SUPPORT_TASK_CALLS_H

#include "tests/support/io_transfers.h"

/* Beside a channel that nothing comes by. */
static inline ssize_t select_one(struct weft_case which)
{
	struct weft_chan never = WEFT_CHAN_DIRECT(int);
	int none;
	struct weft_case cases[] = { WEFT_RECV(&never, &none), which };
	int r = weft_select(cases, 2);

	EXPECT(r == 1 || r < 0);
	return r < 0 ? r : cases[1].result;
}

/* Until it is let go, or no task waits for it any more. */
struct child {
	struct place *place;
	weft__atomic(bool) given_up;
};

static inline int64_t be_child(void *arg)
{
	struct child *child = *(struct child **)arg;

	WEFT_SHIELD
		while (!weft_event_is_set(&child->place->event) &&
		       !weft__load(&child->given_up, acquire))
			EXPECT(weft_sleep(WEFT_US(50)) == 0);
	return 7;
}

static inline int start_child(struct weft_scope *scope, struct child *child,
			      struct weft_task *ret_task)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.ret_task = ret_task;
	return weft_go_opts(scope, be_child, &child, sizeof(child), &opts);
}

/* A caller that gave up may ask again: the result is there still. */
static inline ssize_t wait_for_child(struct place *place, bool selects)
{
	struct child child = { .place = place };
	struct weft_task task;
	int64_t result = 0;
	ssize_t r = 0;

	WEFT_SUPERVISE(scope) {
		/* Of a cancelled task nothing is started. */
		r = start_child(scope, &child, &task);
		if (r < 0)
			break;
		if (selects)
			r = select_one((struct weft_case)WEFT_JOINED(task));
		else
			r = weft_join(task, &result);
		weft__store(&child.given_up, true, release);
		if (r < 0 || selects)
			WEFT_SHIELD
				EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == 7);
	}
	return r;
}
static inline ssize_t make_join(struct place *place)
{
	return wait_for_child(place, false);
}
static inline ssize_t make_select_joined(struct place *place)
{
	return wait_for_child(place, true);
}

/* The children of a task that was cancelled before are not started. */
static inline ssize_t make_scope_end(struct place *place)
{
	struct weft_scope scope;

	EXPECT(weft_supervisor_begin(&scope) == 0);
	(void)!WEFT_GO(&scope, wait_for_event, place);
	weft__add(&place->entered, 1u, acq_rel);
	return weft_scope_end(&scope);
}

static inline int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}
static inline ssize_t make_go(struct place *place)
{
	return weft_go(place->scope, nothing, NULL, 0);
}
static inline ssize_t make_wait_room(struct place *place)
{
	return weft_scope_wait_room(place->scope);
}

static inline int64_t hold_thread(void *arg)
{
	struct place *place = arg;

	weft__add(&place->entered, 1u, acq_rel);
	while (!weft__load(&place->let_go, acquire))
		thread_pause_ns(50000);
	return 7;
}
static inline int64_t pass_thread(void *arg)
{
	weft__add(&((struct place *)arg)->entered, 1u, acq_rel);
	return 7;
}
static inline int64_t hold_from_task(void *arg)
{
	struct place *place = *(struct place **)arg;

	WEFT_SHIELD
		EXPECT(weft_blocking(hold_thread, place) == 7);
	return 0;
}

/* The only thread there may be is taken; who comes then waits for it. */
static inline void thread_taken_open(struct place *place)
{
	place_scope_begin(place);
	EXPECT(WEFT_GO(place->scope, hold_from_task, place) == 0);
	wait_until(weft__load(&place->entered, acquire) == 1);
}

static inline void file_and_thread_open(struct place *place)
{
	place->file = stream_file();
	thread_taken_open(place);
}

/* Whose wait was given up did not run. */
static inline ssize_t passed(struct place *place, int64_t r)
{
	place->taken += r == 7;
	EXPECT(weft__load(&place->entered, acquire) == place->taken + 1);
	return r;
}
static inline ssize_t make_blocking(struct place *place)
{
	return passed(place, weft_blocking(pass_thread, place));
}
static inline ssize_t make_blocking_lane(struct place *place)
{
	return passed(place,
		      weft_blocking_lane(&place->lane, pass_thread, place));
}
static inline ssize_t make_blocking_begun(struct place *place)
{
	unsigned before = weft__load(&place->entered, acquire);
	int64_t r = weft_blocking(hold_thread, place);

	EXPECT(weft__load(&place->entered, acquire) == before + (r == 7));
	return r;
}

#endif
