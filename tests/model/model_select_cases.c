/* SPDX-License-Identifier: MIT */
/*
 * Model of select over cases that are not channels
 * (runtime/sync/select_cases.c): ends of tasks, points in time and descriptors,
 * beside channels.  One case comes, and a received value is not lost to another
 * case.  The case that comes first wakes the task.  When the call returns, no
 * task is marked, no alarm is armed, and no waiter is left in a channel.
 */
#define TASKS_CLOCK
#define TASKS_TIME
#include "tests/model/waits.h"

#include <unistd.h>

#include "runtime/sync/chan.c"

/* The model chooses which of two ready cases is taken. */
#define weft__random(worker) ((void)(worker), model_choose(4))
#include "runtime/sync/select_cases.c"
#include "runtime/sync/select.c"
#undef weft__random

#include "tests/model/values.h"

enum { LATE_NS = 1000, CASES_MAX = 3 };

/*
 * Time: an alarm goes off once it is armed and its time has come, under a lock
 * like the lock of a timer shard.
 */

/* relaxed: looked at again whenever the task is woken. */
static weft__atomic(uint64_t) clock_ns;
static struct model_mutex shard;
static struct weft__alarm *armed; /* under shard, like the rest */
static bool is_late;
static struct model_event due;
static uint64_t due_task;

static uint64_t driver_now(struct weft_runtime *of)
{
	(void)of;
	return weft__load(&clock_ns, relaxed);
}

static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	(void)worker;
	model_assert(deadline_ns == LATE_NS, "the earliest time is armed");
	model_lock(&shard);
	if (is_late) {
		due_task = alarm->task;
		model_post(&due);
	} else {
		armed = alarm;
	}
	model_unlock(&shard);
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	bool was_armed;

	(void)of;
	model_lock(&shard);
	was_armed = armed == alarm;
	if (was_armed)
		armed = NULL;
	model_unlock(&shard);
	alarm->armed = false;
	return was_armed;
}

static void wake_due(uint64_t id)
{
	if (weft__task_notify(&records[0], id))
		weft__push(weft__worker_self(), &records[0]);
}

/* Time passes; alarms that are armed too late then go off immediately. */
static void time_passes(void *arg)
{
	uint64_t id = 0;

	(void)arg;
	weft__store(&clock_ns, (uint64_t)LATE_NS, relaxed);
	model_lock(&shard);
	is_late = true;
	if (armed)
		id = armed->task;
	armed = NULL;
	model_unlock(&shard);
	if (id)
		wake_due(id);
	model_daemon();
	(void)model_wait(&due);
	model_lock(&shard);
	id = due_task;
	model_unlock(&shard);
	wake_due(id);
}

/*
 * Setting up: thread 0 selects; thread 1 is a child of its task, in its scope.
 */

static struct weft_chan chan;
static uint64_t room;
static struct weft_scope scope;
static int64_t written_by_child;
/* Informs the child. */
static struct model_event chosen;

static void setup_room(unsigned capacity)
{
	waits_setup(3);
	values_setup();
	(void)weft_chan_init(&chan, capacity ? &room : NULL, capacity,
			     sizeof(room));
	room = 0;
	written_by_child = 0;
	clock_ns = 0;
	armed = NULL;
	is_late = false;
	due_task = 0;
	memset(&shard, 0, sizeof(shard));
	memset(&due, 0, sizeof(due));
	memset(&chosen, 0, sizeof(chosen));
	weft__scope_unlink(&records[1]);
	records[1].flags = 0;
	open_scope(&scope, 0, WEFT__SCOPE_SUPERVISOR);
	start_in(&scope, 1, true);
	model_name(&chan, "channel");
	model_name(&weft__chan(&chan)->lock, "lock");
	model_name(&scope, "scope");
	model_name(&room, "room");
	model_name(&clock_ns, "clock");
}

static void setup_0(void *arg)
{
	(void)arg;
	setup_room(0);
}

static void setup_1(void *arg)
{
	(void)arg;
	setup_room(1);
}

static void setup_foreign_2(void *arg)
{
	setup_0(arg);
	waits_foreign(2);
}

/* Without a child. */
static void setup_alone(void *arg)
{
	(void)arg;
	setup_room(0);
	weft__scope(&scope)->started = 0;
	weft__scope(&scope)->handles = NULL;
}

/* A thread that runs no task selects. */
static void setup_thread_alone(void *arg)
{
	setup_alone(arg);
	waits_foreign(0);
}

static void check_end(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(!armed, "no alarm is left");
	for (uint64_t value = 1; value < VALUES; value++)
		value_check(value, chan_holds(weft__chan(&chan), value));
}

static void check_child(void *arg)
{
	check_end(arg);
	check_freed_once(1);
}

/*
 * The calls.
 */

static __attribute__((noinline)) int select_call(struct weft_case *cases,
						 size_t count)
{
	return weft_select(cases, count);
}

/* Selects one of these, whose memory is overwritten afterwards. */
static int select_of(struct weft_case *cases, size_t count, bool tries)
{
	int r = tries ? weft_try_select(cases, count) :
			select_call(cases, count);
	int result = r < 0 ? 0 : cases[r].result;

	call_over();
	for (size_t i = 0; i < count; i++)
		model_data_write(&cases[i]);
	model_assert(r >= 0 || r == (tries ? -EAGAIN : -ECANCELED),
		     "a case comes, or it is cancelled");
	model_assert(result == 0 || result == -EPIPE,
		     "it is done, or the channel is closed");
	return r < 0 ? r : result < 0 ? result : r;
}

/* The child's end came: a join does not wait, and gets its result. */
static void join_ended(void)
{
	int64_t result = 0;

	/* relaxed: the join acquires. */
	model_assert(weft__load(&records[1].state, relaxed) & WEFT__DONE,
		     "it has ended");
	model_assert(weft_join(handle_of(1), &result) == 0 && result == 7,
		     "its result is seen");
	model_assert(written_by_child == 5, "what it wrote is seen");
}

/* The scope waits for a child that no task joined. */
static void end_scope(void)
{
	model_assert(weft_scope_end(&scope) == 0, "nobody failed");
	model_assert(written_by_child == 5, "what a child wrote is seen");
	model_free(&scope, sizeof(scope));
}

enum { VALUE, CHILD, TIME };

/* A value, or the end of the child. */
static int value_or_child(bool tries)
{
	uint64_t value = 0;
	struct weft_case cases[2] = { WEFT_RECV(&chan, &value),
				      WEFT_JOINED(handle_of(1)) };
	int r = select_of(cases, 2, tries);

	if (r == VALUE)
		value_take(value);
	else if (r == CHILD)
		join_ended();
	model_assert(value == 0 || r == VALUE, "one case was done");
	return r;
}

static void close_chan(void)
{
	weft_chan_close(&chan);
}

static int recv_once(void)
{
	uint64_t value = 0;
	int r = weft_chan_recv(&chan, &value);

	if (r == 0)
		value_take(value);
	return r;
}

static void send_value(uint64_t value)
{
	int r;

	value_make(value);
	r = weft_chan_send(&chan, &value);
	call_over();
	model_assert(r == 0 || r == -EPIPE, "it is sent, or it is closed");
	was_sent[value] = r == 0;
}

THREAD(selects_child,
       model_assert(value_or_child(false) == CHILD, "nothing else comes");
       end_scope();)
THREAD(selects_once, (void)value_or_child(false); close_chan(); end_scope();)
THREAD(tries_once, (void)value_or_child(true); close_chan(); end_scope();)

/* The other value too. */
static void selects_both(void *arg)
{
	int r = value_or_child(false);

	(void)arg;
	if (r == VALUE) {
		uint64_t value = 0;
		struct weft_case cases[2] = { WEFT_JOINED(handle_of(1)),
					      WEFT_RECV(&chan, &value) };

		model_assert(select_of(cases, 2, false) == 0, "it ends");
		join_ended();
	} else {
		model_assert(r == CHILD && recv_once() == 0, "a value comes");
	}
	end_scope();
}

/* A cancelled wait returns nothing, or the end of the child. */
static void selects_until_cancelled(void *arg)
{
	int r = value_or_child(false);

	(void)arg;
	model_assert(r == CHILD || r == -ECANCELED, "nothing else comes");
	model_post(&chosen);
	end_scope();
}

THREAD(child_ends, written_by_child = 5; end_with(7);)
THREAD(child_sends_and_ends, send_value(1); child_ends(arg);)
THREAD(child_ends_after_it, (void)model_wait(&chosen); child_ends(arg);)
THREAD(sends_1, send_value(1);)
THREAD(closes, close_chan();)
THREAD(cancels_and_sends_1, cancel(0); send_value(1);)

MODEL(child_meets_select, setup_0, check_child, WAITS(3), selects_child,
      child_ends)
MODEL(child_and_sender_meet, setup_0, check_child, WAITS_NEWEST(2),
      selects_both, child_ends, sends_1)
MODEL(child_and_sender_meet_with_room, setup_1, check_child, WAITS_NEWEST(2),
      selects_both, child_ends, sends_1)
MODEL(child_or_sender_meets, setup_0, check_child, WAITS(2), selects_once,
      child_ends, sends_1)
MODEL(child_and_thread_meet, setup_foreign_2, check_child, WAITS_NEWEST(2),
      selects_both, child_ends, sends_1)
MODEL(child_sends, setup_0, check_child, WAITS(2), selects_both,
      child_sends_and_ends)
MODEL(close_meets_child, setup_0, check_child, WAITS(2), selects_once,
      child_ends, closes)
MODEL(cancel_meets_child, setup_0, check_child, WAITS(2),
      selects_until_cancelled, child_ends, cancel_0)
MODEL(cancel_comes_first, setup_0, check_child, WAITS(2),
      selects_until_cancelled, child_ends_after_it, cancel_0)
MODEL(cancel_meets_child_and_sender, setup_0, check_child, WAITS_NEWEST(2),
      selects_once, child_ends, cancels_and_sends_1)
MODEL(try_meets_child_and_sender, setup_0, check_child, WAITS(2), tries_once,
      child_ends, sends_1)

/* Only a value wakes it. */
static void selects_value(void *arg)
{
	(void)arg;
	model_assert(value_or_child(false) == VALUE, "nothing else comes");
	model_post(&chosen);
	end_scope();
}

/* A call that does not wait looks at every case. */
static void tries_when_ended(void *arg)
{
	(void)arg;
	(void)model_wait(&chosen);
	model_assert(value_or_child(true) == CHILD, "what has ended is found");
	end_scope();
}

THREAD(child_ends_and_tells, child_ends(arg); model_post(&chosen);)

MODEL(a_value_comes_first, setup_0, check_child, WAITS(2), selects_value,
      child_ends_after_it, sends_1)
MODEL(try_finds_what_has_ended, setup_0, check_child, WAITS(3),
      tries_when_ended, child_ends_and_tells)

/*
 * Time.
 */

/* A value, or the later of two times. */
static int value_or_time(void)
{
	uint64_t value = 0;
	struct weft_case cases[3] = { WEFT_RECV(&chan, &value),
				      WEFT_AT(2 * LATE_NS), WEFT_AT(LATE_NS) };
	int r = select_of(cases, 3, false);

	if (r == VALUE)
		value_take(value);
	if (r == TIME)
		model_assert(weft__load(&clock_ns, relaxed) >= LATE_NS,
			     "it is never early");
	return r;
}

static void selects_time(void *arg)
{
	(void)arg;
	model_assert(value_or_time() == TIME, "nothing else comes");
}

static void selects_value_and_time(void *arg)
{
	int r = value_or_time();

	(void)arg;
	if (r == VALUE)
		model_assert(value_or_time() == TIME, "time passes");
	else
		model_assert(r == TIME && recv_once() == 0, "a value comes");
}

/* The child's end, or a time. */
static void selects_child_or_time(void *arg)
{
	struct weft_case cases[2] = { WEFT_AT(LATE_NS),
				      WEFT_JOINED(handle_of(1)) };
	int r = select_of(cases, 2, false);

	(void)arg;
	if (r == 1)
		join_ended();
	end_scope();
}

/* A thread may have slept when the time came: then only a value wakes it. */
static void selects_value_or_time(void *arg)
{
	int r = value_or_time();

	(void)arg;
	if (r == TIME)
		model_assert(recv_once() == 0, "a value comes");
	else
		model_assert(r == VALUE, "nothing else comes");
}

THREAD(selects_time_once, (void)value_or_time(); close_chan();)

MODEL(time_comes, setup_alone, check_end, WAITS(3), selects_time, time_passes)
MODEL(time_and_sender_meet, setup_alone, check_end, WAITS_NEWEST(2),
      selects_value_and_time, sends_1, time_passes)
MODEL(time_and_sender_meet_in_a_thread, setup_thread_alone, check_end,
      WAITS(3), selects_value_or_time, sends_1, time_passes)
MODEL(time_and_close_meet_in_a_thread, setup_thread_alone, check_end, WAITS(3),
      selects_time_once, closes, time_passes)
MODEL(time_and_child_meet, setup_0, check_child, WAITS(2),
      selects_child_or_time, child_ends, time_passes)
MODEL(time_meets_cancel, setup_alone, check_end, WAITS(2), selects_time_once,
      cancel_0, time_passes)
MODEL(time_meets_close, setup_alone, check_end, WAITS(2), selects_time_once,
      closes, time_passes)

/*
 * Descriptors: task 3, which the select starts, waits for one.  Thread 0 then
 * has the worker of thread 2, which runs no task.
 */

enum { POLLER = 3 };

static int never_ready;
/* relaxed: looked at again whenever the task is woken. */
static weft__atomic(uint32_t) is_ready;
static struct model_event poll_started;

static void setup_ready(void *arg)
{
	setup_alone(arg);
	waits_foreign(2);
	is_ready = 0;
	memset(&poll_started, 0, sizeof(poll_started));
	pool[0].caches.tasks = &records[POLLER];
	pool[0].caches.tasks_count = 1;
	model_name(&is_ready, "ready");
}

static int poll_in_model(int fd, short events)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *self = worker->current;
	int error;

	model_assert(fd == never_ready && events == POLLIN,
		     "it waits for what was asked for");
	weft__wait_begin(worker, self);
	model_post(&poll_started);
	while (!weft__load(&is_ready, relaxed)) {
		error = weft__interrupted(worker, self);
		if (error < 0)
			return error;
		worker = weft__suspend(worker, WEFT__REASON_UNREPORTED);
	}
	return POLLIN;
}

/* The select may not start it at all. */
static void poller(void *arg)
{
	(void)arg;
	model_daemon();
	model_assert(model_wait(&runs[POLLER]) == 1, "a task was queued twice");
	weft__worker_self()->current = &records[POLLER];
	end_with(run_body(&records[POLLER]));
}

static void becomes_ready(void *arg)
{
	(void)arg;
	model_daemon();
	(void)model_wait(&poll_started);
	weft__store(&is_ready, 1u, relaxed);
	if (weft__task_notify(&records[POLLER], handle_of(POLLER).id))
		weft__enqueue(&runtime, NULL, &records[POLLER]);
}

/* The index, whatever the result is. */
static int value_or_ready(void)
{
	uint64_t value = 0;
	struct weft_case cases[2] = { WEFT_RECV(&chan, &value),
				      WEFT_READY(never_ready, POLLIN) };
	int r;

	cases[1].poll = poll_in_model;
	r = select_call(cases, 2);
	call_over();
	model_assert(r >= 0 || r == -ECANCELED,
		     "a case comes, or it is cancelled");
	if (r == VALUE && cases[VALUE].result == 0)
		value_take(value);
	else
		model_assert(value == 0, "one case was done");
	model_assert(r != 1 || cases[1].result == POLLIN, "it is ready");
	model_data_write(&cases);
	return r;
}

THREAD(selects_ready, model_assert(value_or_ready() == 1, "it is ready");)
THREAD(selects_ready_once, (void)value_or_ready(); close_chan();)
THREAD(sends_nothing, (void)arg;)

/* The descriptor's case is not ready, and the value ends the poll. */
static void selects_value_not_ready(void *arg)
{
	(void)arg;
	model_assert(value_or_ready() == VALUE, "nothing else comes");
}

static void check_poller(void *arg)
{
	check_end(arg);
	model_assert(records[POLLER].state & WEFT__FREE,
		     "the task that waits for it has ended");
}

MODEL(ready_comes, setup_ready, check_poller, WAITS_NEWEST(2), selects_ready,
      sends_nothing, becomes_ready, poller)
MODEL(ready_and_sender_meet, setup_ready, check_poller, WAITS_NEWEST(1),
      selects_ready_once, sends_1, becomes_ready, poller)
MODEL(a_value_ends_the_poll, setup_ready, check_poller, WAITS_NEWEST(1),
      selects_value_not_ready, sends_1, sends_nothing, poller)
MODEL(cancel_ends_the_poll, setup_ready, check_poller, WAITS_NEWEST(1),
      selects_ready_once, cancel_0, becomes_ready, poller)

int main(void)
{
	const TTest *const tests[] = {
		child_meets_select,
		child_and_sender_meet,
		child_and_sender_meet_with_room,
		child_or_sender_meets,
		child_and_thread_meet,
		child_sends,
		close_meets_child,
		cancel_meets_child,
		cancel_comes_first,
		cancel_meets_child_and_sender,
		try_meets_child_and_sender,
		a_value_comes_first,
		try_finds_what_has_ended,
		time_comes,
		time_and_sender_meet,
		time_and_sender_meet_in_a_thread,
		time_and_close_meet_in_a_thread,
		time_and_child_meet,
		time_meets_cancel,
		time_meets_close,
		ready_comes,
		ready_and_sender_meet,
		a_value_ends_the_poll,
		cancel_ends_the_poll,
		NULL,
	};
	int ends[2];

	/* Nothing is written to it. */
	if (pipe(ends) < 0)
		return EXIT_FAILURE;
	never_ready = ends[0];

	return kit_main("cases", tests);
}
