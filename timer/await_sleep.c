/* SPDX-License-Identifier: MIT */
/*
 * Await sleep - a future sleeps: the alarm is in its record, and is set for its
 * deadline if that is earlier.
 */
#include <string.h>

#include "runtime/base/nsec.h"
#include "runtime/future/future.h"
#include "timer/timer_shard.h"

_Static_assert(offsetof(struct weft__timer, deadline_ns) ==
		       WEFT__SLEEP_UNTIL * sizeof(uint64_t),
	       "a look at a sleeping future finds its time there");

static int sleep_begin(struct weft__worker *worker, struct weft__task *task,
		       uint64_t until_ns)
{
	struct weft__alarm *alarm = weft__future_alarm(task);
	uint64_t deadline_ns = WEFT_NEVER;

	if (weft__unlikely(weft__task_is(task, WEFT__TASK_WITHIN)))
		deadline_ns = weft__future_deadline(task);
	alarm->kind = WEFT__ALARM_FUTURE;
	alarm->early = deadline_ns < until_ns;
	alarm->armed = false;
	task->awaits = WEFT__AWAITS_TIME;
	if (alarm->early)
		until_ns = deadline_ns;
	task->sleep[WEFT__SLEEP_UNTIL] = until_ns;
	if (until_ns != WEFT_NEVER)
		worker->ops->arm(worker, alarm, until_ns);
	return WEFT_PENDING;
}

static int sleep_end(struct weft__worker *worker, struct weft__task *task,
		     int r)
{
	struct weft__alarm *alarm = weft__future_alarm(task);

	if (alarm->armed) /* mutate: recheck=false */
		(void)worker->ops->disarm(worker->runtime, alarm);
	/* A record has its scopes in the same words, and none when it is
	 * freed. */
	memset(alarm, 0, WEFT__ALARM_FUTURE_BYTES);
	task->awaits = WEFT__AWAITS_NOTHING;
	return r;
}

static int sleep_go_on(struct weft__worker *worker, struct weft__task *task)
{
	struct weft__alarm *alarm = weft__future_alarm(task);
	int error;

	if (weft__likely(weft__timer_shards_fired(alarm) && !alarm->early)) {
		alarm->armed = false;
		return sleep_end(worker, task, 0);
	}
	error = weft__future_interrupted(worker, task);
	return error < 0 ? sleep_end(worker, task, error) : WEFT_PENDING;
}

int weft_await_sleep_until(weft_nsec deadline_ns)
{
	struct weft__worker *worker;
	struct weft__task *task;
	int r = weft__await_enter(WEFT__AWAITS_TIME, NULL, 0, &worker, &task);

	if (r < 0)
		return r;
	if (task->awaits == WEFT__AWAITS_TIME)
		return sleep_go_on(worker, task);
	return sleep_begin(worker, task, weft__nsec_point(deadline_ns));
}

int weft_await_sleep(weft_nsec length_ns)
{
	struct weft__task *task = weft__polled(weft__worker_self());
	uint64_t until_ns = WEFT_NEVER;

	/* Only the call that begins the wait reads the clock. */
	if (task && task->awaits != WEFT__AWAITS_TIME)
		until_ns = weft__deadline_after(length_ns);
	return weft_await_sleep_until(until_ns);
}
