/* SPDX-License-Identifier: MIT */
/*
 * Model of the objects that tasks wait for (runtime/sync): events,
 * notifications, wait groups, barriers, and functions that run once.  A waiter
 * does not miss what it waits for, in any order of arrival.  An interrupted
 * wait loses nothing.  The waiter sees what was written before.  A task that
 * has waited may free the object.
 */
#define TASKS_CLOCK
#include "tests/model/waits.h"

#include "runtime/sync/wait_group.c"
#include "runtime/sync/event.c"
#include "runtime/sync/once.c"

/* relaxed: passed on by the interruption, as far as it is. */
static weft__atomic(uint64_t) clock_ns;

static uint64_t driver_now(struct weft_runtime *of)
{
	(void)of;
	return weft__load(&clock_ns, relaxed);
}

static struct weft_event event;
static struct weft_notify notify;
static struct weft_once once;
static struct weft_wait_group count;
static struct weft_barrier barrier;
/* Each thread's own, published by its call. */
static int64_t written[MODEL_THREADS];

static void setup_n(unsigned tasks)
{
	waits_setup(tasks);
	memset(&event, 0, sizeof(event));
	memset(&notify, 0, sizeof(notify));
	memset(&once, 0, sizeof(once));
	memset(&count, 0, sizeof(count));
	memset(&barrier, 0, sizeof(barrier));
	memset(written, 0, sizeof(written));
	clock_ns = 0;
	model_name(&clock_ns, "clock");
	model_name(&event, "event");
	model_name(&notify, "notify");
	model_name(&once, "once");
	model_name(&count, "count");
	model_name(&barrier, "barrier");
}

static void setup(void *arg)
{
	(void)arg;
	setup_n(3);
}

static void setup_foreign_1_2(void *arg)
{
	setup(arg);
	waits_foreign(1);
	waits_foreign(2);
}

static void setup_foreign_0(void *arg)
{
	setup(arg);
	waits_foreign(0);
}

static void setup_elsewhere(void *arg)
{
	setup(arg);
	waits_elsewhere(1);
}

/*
 * Event and notification.
 */

CALL(int, event_wait, weft_event_wait(&event))
CALL(int, notify_wait, weft_notify_wait(&notify))

static void see_event(void)
{
	model_assert(guarded == 5, "what came before the event is seen");
}

/* A task that has waited may use the event's memory for something else. */

static void wait_and_free(void *arg)
{
	(void)arg;
	if (done(event_wait())) {
		see_event();
		model_data_write(&event);
	}
}

THREAD(wait_for_event, if (done(event_wait())) see_event();)
THREAD(set_event, guarded = 5; weft_event_set(&event);)
THREAD(set_and_clear, weft_event_clear(&event); guarded = 5;
       weft_event_set(&event);)

static void check_event(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(queue_empty(&event_of(&event)->waiters), "nobody waits");
	model_assert(weft_event_is_set(&event), "it stays set");
}

static void check_tasks(void *arg)
{
	(void)arg;
	tasks_check();
}

MODEL(event_set_meets_wait, setup, check_tasks, WAITS(3), wait_and_free,
      set_event)
MODEL(event_set_by_thread, setup_foreign_1_2, check_tasks, WAITS(3),
      wait_and_free, set_event)
MODEL(event_set_for_thread, setup_foreign_0, check_tasks, WAITS(3),
      wait_and_free, set_event)
MODEL(event_set_elsewhere, setup_elsewhere, check_tasks, WAITS(3),
      wait_and_free, set_event)
MODEL(event_set_meets_waits, setup, check_event, WAITS(2), wait_for_event,
      wait_for_event, set_and_clear)
MODEL(event_set_meets_cancel, setup, check_event, WAITS(3), wait_for_event,
      set_event, cancel_0)

/* A deadline passes. */
static struct weft_within within;

static void setup_deadline(void *arg)
{
	setup(arg);
	memset(&within, 0, sizeof(within));
	within_push(&within, &records[0], 1000, false);
}

static void wait_until_deadline(void *arg)
{
	int r = event_wait();

	(void)arg;
	call_over();
	model_assert(r == 0 || r == -ETIMEDOUT, "a wait ends, or is too long");
	if (r == 0)
		see_event();
}

THREAD(alarm_rings, weft__store(&clock_ns, 1000, relaxed);
       if (weft__task_interrupt(&records[0], handle_of(0).id, WEFT__EXPIRED))
	       weft__push(weft__worker_self(), &records[0]);)

MODEL(event_set_meets_deadline, setup_deadline, check_event, WAITS(3),
      wait_until_deadline, set_event, alarm_rings)

/* A notification that is taken is passed on. */
THREAD(wait_and_notify, if (done(notify_wait())) weft_notify_one(&notify);)
THREAD(wait_for_notify, (void)done(notify_wait());)
THREAD(wait_twice, (void)done(notify_wait()); (void)done(notify_wait());)
THREAD(notify_once, weft_notify_one(&notify);)
THREAD(notify_and_cancel_0, weft_notify_one(&notify); cancel(0);)
THREAD(cancel_0_and_notify, cancel(0); weft_notify_one(&notify);)
THREAD(notify_all_then_one, weft_notify_all(&notify); weft_notify_one(&notify);)

static void check_notify(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(queue_empty(&notify_of(&notify)->waiters), "nobody waits");
}

static void check_notify_taken(void *arg)
{
	check_notify(arg);
	model_assert(!notify_of(&notify)->set, "a notification is taken once");
}

MODEL(notify_meets_wait, setup, check_notify_taken, WAITS(3), wait_for_notify,
      notify_once)
MODEL(notify_meets_cancel, setup, check_notify, WAITS(2), wait_and_notify,
      wait_for_notify, notify_and_cancel_0)
MODEL(notify_after_cancel, setup, check_notify, WAITS(2), wait_and_notify,
      wait_for_notify, cancel_0_and_notify)
MODEL(notify_all_meets_wait, setup, check_notify, WAITS(3), wait_for_notify,
      notify_all_then_one)
MODEL(notify_of_threads, setup_foreign_0, check_notify, WAITS(3),
      wait_for_notify, notify_once)

/*
 * Once.
 */

/* The number of tries that fail. */
static unsigned failures;

static int64_t once_body(void *arg)
{
	int64_t result = guarded < failures ? -EIO : 7;

	(void)arg;
	hold(true);
	if (result == 7)
		written[0] = 5;
	return result;
}

CALL(int64_t, once_call, weft_once_run(&once, once_body, NULL))

static void once_see(void)
{
	int64_t result = once_call();

	call_over();
	model_assert(result == 7 || result == -EIO || result == -ECANCELED,
		     "it is done, has failed, or the wait was cancelled");
	if (result == 7)
		model_assert(written[0] == 5, "what was done is seen");
	had[model_self()] += result == -EIO;
}

THREAD(call_once, once_see();)
THREAD(cancel_0_and_call, cancel(0); once_see();)

static void setup_once(void *arg)
{
	setup(arg);
	failures = 0;
}

static void setup_once_fails(void *arg)
{
	setup(arg);
	failures = 1;
}

static void setup_once_foreign(void *arg)
{
	setup_once_fails(arg);
	waits_foreign(1);
	waits_foreign(2);
}

static void check_once(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(guarded == 1 + failures, "it is done once");
	model_assert(had_all() == failures, "each failure is told once");
	model_assert(queue_empty(&once_of(&once)->waiters), "nobody waits");
}

MODEL(once_done, setup_once, check_once, WAITS(2), call_once, call_once,
      call_once)
MODEL(once_fails, setup_once_fails, check_once, WAITS(2), call_once, call_once,
      call_once)
MODEL(once_meets_cancel, setup_once_fails, check_once, WAITS(2), call_once,
      call_once, cancel_0_and_call)
MODEL(once_of_threads, setup_once_foreign, check_once, WAITS(2), call_once,
      call_once, call_once)

/*
 * Wait group and barrier.
 */

CALL(int, count_wait, weft_wait_group_wait(&count))
CALL(int, barrier_come, weft_barrier_wait(&barrier))

static void setup_count(void *arg)
{
	setup(arg);
	count_of(&count)->left = 2;
}

static void wait_for_both(void *arg)
{
	(void)arg;
	if (!done(count_wait()))
		return;
	model_assert(written[1] == 5 && written[2] == 5,
		     "what came before is seen");
	model_data_write(&count);
}

static void wait_for_both_or_cancel(void *arg)
{
	(void)arg;
	if (done(count_wait()))
		model_assert(written[1] == 5 && written[2] == 5,
			     "what came before is seen");
}

THREAD(one_is_done, written[model_self()] = 5; weft_wait_group_done(&count);)
THREAD(adds_and_done, weft_wait_group_add(&count, 1);
       weft_wait_group_done(&count); one_is_done(arg);)
THREAD(one_is_done_and_cancel_0, one_is_done(arg); cancel(0);)

static void check_count(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(queue_empty(&count_of(&count)->waiters), "nobody waits");
}

MODEL(count_done_meets_wait, setup_count, check_tasks, WAITS(3), wait_for_both,
      one_is_done, adds_and_done)
MODEL(count_done_meets_cancel, setup_count, check_count, WAITS(2),
      wait_for_both_or_cancel, one_is_done, one_is_done_and_cancel_0)

/* Reports the result of a wait. */
static struct model_event came_in;

static void setup_barrier(void *arg)
{
	setup(arg);
	barrier_of(&barrier)->parties = 2;
	memset(&came_in, 0, sizeof(came_in));
}

/* Twice: the second turn overwrites what the other task read in the first. */
static void come_twice(void *arg)
{
	unsigned self = model_self();

	(void)arg;
	for (int64_t turn = 1; turn <= 2; turn++) {
		int r;

		written[self] = turn;
		r = barrier_come();
		call_over();
		model_assert(r == 0 || r == 1, "it waits for the other");
		had[self] += (unsigned)r;
		model_assert(written[!self] == turn, "who came is seen");
		r = barrier_come();
		call_over();
		had[self] += (unsigned)r;
	}
}

/* Its result shows another task whether to come in its place. */
static void come_unless_cancelled(void *arg)
{
	int r = barrier_come();

	(void)arg;
	call_over();
	guarded = r;
	model_post(&came_in);
}

THREAD(come_once, (void)done(barrier_come());)
THREAD(cancel_0_and_replace, cancel(0); (void)model_wait(&came_in);
       if (guarded < 0)(void) done(barrier_come());)

static void check_barrier(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(barrier_of(&barrier)->came == 0 &&
			     queue_empty(&barrier_of(&barrier)->waiters),
		     "nobody waits");
}

static void check_barrier_twice(void *arg)
{
	check_barrier(arg);
	model_assert(had_all() == 4, "one of two is told each time");
}

MODEL(barrier_of_two, setup_barrier, check_barrier_twice, WAITS(2), come_twice,
      come_twice)
MODEL(barrier_meets_cancel, setup_barrier, check_barrier, WAITS(2),
      come_unless_cancelled, come_once, cancel_0_and_replace)

int main(void)
{
	const TTest *const tests[] = {
		event_set_meets_wait,
		event_set_by_thread,
		event_set_for_thread,
		event_set_elsewhere,
		event_set_meets_waits,
		event_set_meets_cancel,
		event_set_meets_deadline,
		notify_meets_wait,
		notify_meets_cancel,
		notify_after_cancel,
		notify_all_meets_wait,
		notify_of_threads,
		once_done,
		once_fails,
		once_meets_cancel,
		once_of_threads,
		count_done_meets_wait,
		count_done_meets_cancel,
		barrier_of_two,
		barrier_meets_cancel,
		NULL,
	};

	return kit_main("event", tests);
}
