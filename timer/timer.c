/* SPDX-License-Identifier: MIT */
/*
 * Timer - a point in time that is not tied to a call.
 *
 *	UNSET --set--> SET --goes off--> OFF
 *	  ^             |                 |
 *	  '--- clear ---'<- wait, clear --'
 *
 * `armed` of the alarm means SET or OFF.  An alarm that fires while its task
 * does something else wakes the task needlessly; every wait allows for that.
 */
#include <errno.h>

#include <weft/time.h>

#include "runtime/base/nsec.h"
#include "timer/sleep.h"

struct timer_words {
	struct weft__alarm alarm;
	uint64_t deadline_ns;
} __attribute__((may_alias));

_Static_assert(sizeof(struct timer_words) <= sizeof(struct weft_timer),
	       "the public struct has room for it");

static struct timer_words *words_of(struct weft_timer *timer)
{
	return (struct timer_words *)(void *)timer;
}

/* To the wheel only the end of time is no time. */
static uint64_t wheel_ns(uint64_t deadline_ns)
{
	if (weft__unlikely(deadline_ns == WEFT_NEVER))
		return UINT64_MAX;
	return deadline_ns;
}

static void timer_arm(struct weft__worker *worker, struct weft__task *task,
		      struct timer_words *t)
{
	t->alarm.task = weft__running_id(task);
	t->alarm.kind = WEFT__ALARM_WAKE;
	worker->ops->arm(worker, &t->alarm, wheel_ns(t->deadline_ns));
}

static bool timer_disarm(struct weft_runtime *runtime, struct timer_words *t)
{
	return t->alarm.armed && runtime->ops->disarm(runtime, &t->alarm);
}

int weft_timer_set(struct weft_timer *timer, weft_nsec deadline_ns)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	struct timer_words *t = words_of(timer);

	if (weft__unlikely(!task))
		return -EPERM;
	(void)timer_disarm(worker->runtime, t);
	t->deadline_ns = weft__nsec_point(deadline_ns);
	timer_arm(worker, task, t);
	return 0;
}

bool weft_timer_clear(struct weft_timer *timer)
{
	struct weft__worker *worker = weft__worker_self();

	weft__assert(weft__self(worker) || !words_of(timer)->alarm.armed,
		     "a timer was cleared outside of a task");
	return worker && timer_disarm(worker->runtime, words_of(timer));
}

int weft_timer_wait(struct weft_timer *timer)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	struct timer_words *t = words_of(timer);
	struct weft_runtime *runtime;
	int error;

	if (weft__unlikely(!task))
		return -EPERM;
	if (!t->alarm.armed)
		return -EINVAL;
	runtime = worker->runtime;
	/* Another task has set the timer: from now on it is for this one. */
	if (t->alarm.task != weft__running_id(task)) {
		(void)timer_disarm(runtime, t);
		timer_arm(worker, task, t);
	}
	error = weft__sleep_wait(worker, task, &t->alarm, t->deadline_ns);
	if (error == 0)
		(void)timer_disarm(runtime, t);
	return error;
}
