/* SPDX-License-Identifier: MIT */
/*
 * Sleep - a task that waits for an alarm on its stack, under the deadlines and
 * cancellations that hold for it.
 */
#include "timer/sleep.h"

#include <weft/time.h>

#include "runtime/base/nsec.h"
#include "timer/timer_shard.h"

enum { GO_ON = 1 };

/* The state of the wait: 0, -errno, or GO_ON. */
static int wait_state(struct weft__worker *worker, struct weft__task *task,
		      const struct weft__alarm *alarm, uint64_t deadline_ns)
{
	uint64_t block_ns, now_ns;
	int error;

	/* An alarm is never early.  So the clock is read only if a deadline
	 * may decide; reading it takes longer than the switch. */
	if (weft__likely(!weft__task_is(task, WEFT__TASK_WITHIN))) {
		if (weft__timer_shards_fired(alarm))
			return 0;
		if (weft__interrupted(worker, task) == 0)
			return GO_ON;
	}
	block_ns = task->within ? weft_deadline() : WEFT_NEVER;
	now_ns = worker->ops->now(worker->runtime);
	/* Both times may have passed before the task ran: the earlier one
	 * decides, even if its alarm has not fired yet. */
	if (now_ns >= block_ns && block_ns < deadline_ns)
		/* relaxed: the task reads its own word. */
		weft__or(&task->state, WEFT__EXPIRED, relaxed);
	else if (now_ns >= deadline_ns)
		return 0;
	error = weft__interrupted(worker, task);
	return error < 0 ? error : GO_ON;
}

int weft__sleep_wait(struct weft__worker *worker, struct weft__task *task,
		     const struct weft__alarm *alarm, uint64_t deadline_ns)
{
	int state = weft__interrupted(worker, task);

	/* A wait that has ended already is not begun: a loop of very short
	 * sleeps must end, too. */
	if (weft__unlikely(state < 0))
		return state;
	weft__wait_begin(worker, task);
	while ((state = wait_state(worker, task, alarm, deadline_ns)) == GO_ON)
		worker = weft__suspend(
			worker, weft__reason(WEFT__REASON_TIME, &deadline_ns));
	return state;
}

static int sleep_until(struct weft__worker *worker, struct weft__task *task,
		       uint64_t deadline_ns)
{
	struct weft__alarm alarm = {
		.task = weft__running_id(task),
		.kind = WEFT__ALARM_WAKE,
	};
	struct weft_runtime *runtime = worker->runtime;
	int error;

	if (deadline_ns != WEFT_NEVER)
		worker->ops->arm(worker, &alarm, deadline_ns);
	error = weft__sleep_wait(worker, task, &alarm, deadline_ns);
	/* The alarm lies on this stack.  Disarmed through the runtime: the
	 * worker may be another one by now. */
	if (alarm.armed)
		(void)runtime->ops->disarm(runtime, &alarm);
	return error;
}

int weft_sleep(weft_nsec length_ns)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	uint64_t now_ns;

	if (weft__unlikely(!task))
		return -EPERM;
	if ((int64_t)length_ns <= 0)
		return weft_yield();
	now_ns = worker->ops->now(worker->runtime);
	return sleep_until(worker, task, weft__nsec_after(now_ns, length_ns));
}

int weft_sleep_until(weft_nsec deadline_ns)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);

	if (weft__unlikely(!task))
		return -EPERM;
	deadline_ns = weft__nsec_point(deadline_ns);
	if (deadline_ns <= worker->ops->now(worker->runtime))
		return weft_yield();
	return sleep_until(worker, task, deadline_ns);
}
