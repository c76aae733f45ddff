/* SPDX-License-Identifier: MIT */
/*
 * Model of futures that await a channel, an event or permits
 * (runtime/sync/await_grant.c, chan.c, event.c, sem.c).  A grant meets a
 * cancellation, a deadline and a close.  One receiver gets each value.  No
 * memory of a future is touched when the future has ended.
 */
#define TASKS_CLOCK
#define TASKS_TIME
#include "tests/model/waits.h"

#include "runtime/sync/chan.c"
#include "runtime/sync/event.c"
#include "runtime/sync/sem.c"

#include "tests/model/futures.h"
#include "tests/model/values.h"

/*
 * Time passes under its lock, as alarms are under the lock of their shard.
 */

enum { DEADLINE_NS = 1000 };

static struct model_mutex time_lock;
static uint64_t time_ns;
static struct weft__alarm *armed[VALUES];

static uint64_t driver_now(struct weft_runtime *of)
{
	uint64_t now_ns;

	(void)of;
	model_lock(&time_lock);
	now_ns = time_ns;
	model_unlock(&time_lock);
	return now_ns;
}

static void alarm_goes_off(struct weft__alarm *alarm)
{
	uint64_t id = alarm->task;

	armed[(uint32_t)id] = NULL;
	model_unlock(&time_lock);
	(void)weft__wake(weft__worker_self(), &records[(uint32_t)id], id);
	model_lock(&time_lock);
}

static void driver_arm(struct weft__worker *worker, struct weft__alarm *alarm,
		       uint64_t deadline_ns)
{
	(void)worker;
	alarm->armed = true;
	model_lock(&time_lock);
	armed[(uint32_t)alarm->task] = alarm;
	if (time_ns >= deadline_ns)
		alarm_goes_off(alarm);
	model_unlock(&time_lock);
}

static bool driver_disarm(struct weft_runtime *of, struct weft__alarm *alarm)
{
	bool was_armed;

	(void)of;
	alarm->armed = false;
	model_lock(&time_lock);
	was_armed = armed[(uint32_t)alarm->task];
	armed[(uint32_t)alarm->task] = NULL;
	model_unlock(&time_lock);
	return was_armed;
}

static void time_passes(void)
{
	model_lock(&time_lock);
	time_ns = DEADLINE_NS;
	for (unsigned i = 0; i < VALUES; i++)
		if (armed[i])
			alarm_goes_off(armed[i]);
	model_unlock(&time_lock);
}

/*
 * The steps of futures.
 */

static struct weft_chan chan;
static struct weft_event event;
static struct weft_sem sem;
static uint64_t room[1];
/* By future: the value that the channel may touch, and the number of values to
 * come. */
static uint64_t items[RECORDS];
static unsigned left[RECORDS];

static bool is_end(int r)
{
	return r == -EPIPE || r == -ECANCELED || r == -ETIMEDOUT;
}

/* The await is over: the memory that it waited with is overwritten. */
static void await_over(unsigned i)
{
	model_data_write(&futures[i].room.wait);
	model_data_write(&futures[i].room.waiter);
}

/* The values from the number of the future on. */
static int64_t sends(unsigned i)
{
	int r;

	for (; left[i]; left[i]--, items[i]++) {
		if (future_self()->awaits == WEFT__AWAITS_NOTHING)
			value_make(items[i]);
		r = weft_await_chan_send(&chan, &items[i]);
		if (r == WEFT_PENDING)
			return r;
		await_over(i);
		model_assert(r == 0 || is_end(r), "it is sent, or not");
		if (r < 0)
			break;
		was_sent[items[i]] = true;
	}
	items[i] = 0;
	return 0;
}

static int64_t receives(unsigned i)
{
	int r;

	for (; left[i]; left[i]--) {
		r = weft_await_chan_recv(&chan, &items[i]);
		if (r == WEFT_PENDING)
			return r;
		await_over(i);
		model_assert(r == 0 || is_end(r), "it is received, or not");
		if (r < 0)
			break;
		value_take(items[i]);
	}
	items[i] = 0;
	return 0;
}

static int64_t sends_0(void)
{
	return sends(0);
}

static int64_t receives_0(void)
{
	return receives(0);
}

static int64_t receives_1(void)
{
	return receives(1);
}

/* Work that is done before the event is set. */
static uint64_t published;

static int64_t awaits_event(void)
{
	int r = weft_await_event(&event);

	if (r == WEFT_PENDING)
		return r;
	await_over(0);
	model_assert(r == 0 || is_end(r), "it is set, or not");
	if (r == 0)
		model_assert(published == 1, "what an event says is done");
	return 0;
}

/* By future: the number of permits that it wants. */
static unsigned wants[RECORDS];

static int64_t acquires(unsigned i)
{
	int r = weft_await_sem_acquire(&sem, wants[i]);

	if (r == WEFT_PENDING)
		return r;
	await_over(i);
	model_assert(r == 0 || is_end(r), "it has them, or none");
	if (r < 0)
		return 0;
	guarded++;
	weft_sem_release(&sem, wants[i]);
	return 0;
}

static int64_t acquires_0(void)
{
	return acquires(0);
}

static int64_t acquires_1(void)
{
	return acquires(1);
}

static void setup(unsigned capacity)
{
	waits_setup(3);
	futures_clear();
	(void)weft_chan_init(&chan, capacity ? room : NULL, capacity,
			     sizeof(*room));
	memset(room, 0, sizeof(room));
	memset(&event, 0, sizeof(event));
	memset(&sem, 0, sizeof(sem));
	memset(wants, 0, sizeof(wants));
	published = 0;
	memset(items, 0, sizeof(items));
	memset(left, 0, sizeof(left));
	memset(&time_lock, 0, sizeof(time_lock));
	memset(armed, 0, sizeof(armed));
	time_ns = 0;
	values_setup();
	model_name(&time_lock, "time");
	model_name(&weft__chan(&chan)->lock, "lock");
	model_name(&chan, "channel");
	model_name(&event, "event");
	model_name(&sem, "sem");
}

static void setup_sender(unsigned i, unsigned first, unsigned count)
{
	future_setup(i, sends_0);
	items[i] = first;
	left[i] = count;
}

static void setup_receiver(unsigned i, unsigned count)
{
	future_setup(i, i ? receives_1 : receives_0);
	left[i] = count;
}

static void setup_within(unsigned i)
{
	futures[i].room.own_ns = DEADLINE_NS;
	records[i].flags |= WEFT__TASK_WITHIN;
}

static void setup_acquirer(unsigned i, unsigned n)
{
	future_setup(i, i ? acquires_1 : acquires_0);
	wants[i] = n;
}

static void permits(unsigned n)
{
	sem = (struct weft_sem)WEFT_SEM_INIT(n);
}

/* The variants of the setup: which thread polls a future, and the channel's
 * room. */
#define SETUP(name, capacity, ...)  \
	static void name(void *arg) \
	{                           \
		(void)arg;          \
		setup(capacity);    \
		__VA_ARGS__         \
	}

SETUP(setup_receiver_0, 0, setup_receiver(0, VALUES);)
SETUP(setup_receiver_of_1, 0, setup_receiver(0, 1); foreign[1] = true;)
SETUP(setup_receiver_1, 1, setup_receiver(0, VALUES);)
SETUP(setup_sender_0, 0, setup_sender(0, 1, 1);)
SETUP(setup_sender_1, 1, setup_sender(0, 1, 2);)
SETUP(setup_both_0, 0, setup_sender(0, 1, 2); setup_receiver(1, VALUES);)
SETUP(setup_both_1, 1, setup_sender(0, 1, 2); setup_receiver(1, VALUES);)
SETUP(setup_receiver_within, 0, setup_receiver(0, VALUES); setup_within(0);)
SETUP(setup_receiver_within_1, 1, setup_receiver(0, 1); setup_within(0);)
SETUP(setup_sender_within, 0, setup_sender(0, 1, 1); setup_within(0);)

SETUP(setup_event, 0, future_setup(0, awaits_event);)
SETUP(setup_event_within, 0, future_setup(0, awaits_event); setup_within(0);)
SETUP(setup_sem, 0, permits(1); setup_acquirer(0, 1); setup_acquirer(1, 1);)
SETUP(setup_sem_of_two, 0, permits(1); setup_acquirer(0, 2);
      setup_acquirer(1, 1);)
SETUP(setup_sem_within, 0, permits(0); setup_acquirer(0, 1); setup_within(0);)

static void check(void *arg)
{
	(void)arg;
	futures_check();
	for (unsigned i = 0; i < VALUES; i++)
		model_assert(!armed[i], "no alarm is left");
	for (uint64_t value = 1; value < VALUES; value++)
		value_check(value, chan_holds(weft__chan(&chan), value));
}

static void check_sem(void *arg)
{
	check(arg);
	model_assert(weft_sem_count(&sem) == 1, "all permits are back");
}

/*
 * The tasks and threads.
 */

VALUE_CALL(chan_send, weft_chan_send(&chan, value))
VALUE_CALL(chan_recv, weft_chan_recv(&chan, value))
VALUE_CALL(chan_try_send, weft_chan_try_send(&chan, value))

static bool send(uint64_t value)
{
	int r;

	value_make(value);
	r = chan_send(&value);
	call_over();
	model_assert(r == 0 || r == -EPIPE, "it is sent, or it is closed");
	was_sent[value] = r == 0;
	return r == 0;
}

static void try_send(uint64_t value)
{
	int r;

	value_make(value);
	r = chan_try_send(&value);
	model_assert(r == 0 || r == -EAGAIN, "it is sent, or nobody waits");
	was_sent[value] = r == 0;
}

static bool recv_once(void)
{
	uint64_t value = 0;
	int r = chan_recv(&value);

	call_over();
	model_assert(r == 0 || r == -EPIPE, "it is received, or it is closed");
	if (r == 0)
		value_take(value);
	return r == 0;
}

static void cancel_future(void)
{
	(void)weft_cancel(handle_of(0));
}

THREAD(polls_0, future_serve(0);)
THREAD(polls_1, future_serve(1);)
THREAD(sends_1, (void)send(1);)
THREAD(sends_1_and_closes, (void)send(1); weft_chan_close(&chan);)
THREAD(sends_both_and_closes, if (send(1))(void) send(2);
       weft_chan_close(&chan);)
THREAD(tries, try_send(1);)
THREAD(receives_all, while (recv_once());)
THREAD(receives_one, (void)recv_once();)
THREAD(closes, weft_chan_close(&chan);)
THREAD(cancels, cancel_future();)
THREAD(cancels_and_closes, cancel_future(); weft_chan_close(&chan);)
THREAD(passes, time_passes();)
THREAD(passes_and_closes, time_passes(); weft_chan_close(&chan);)

THREAD(sets, published = 1; weft_event_set(&event);)
THREAD(releases, weft_sem_release(&sem, 1);)

/* One future that receives. */
MODEL(recv_meets_send, setup_receiver_0, check, WAITS(2), polls_0,
      sends_both_and_closes, polls_0)
MODEL(recv_meets_send_with_room, setup_receiver_1, check, WAITS(2), polls_0,
      sends_both_and_closes, polls_0)
MODEL(recv_meets_thread_and_cancel, setup_receiver_of_1, check, WAITS(2),
      polls_0, tries, cancels)
MODEL(recv_meets_cancel, setup_receiver_0, check, WAITS(2), polls_0, sends_1,
      cancels_and_closes)
MODEL(recv_meets_close, setup_receiver_0, check, WAITS(2), polls_0, sends_1,
      closes)
MODEL(recv_meets_close_and_cancel, setup_receiver_1, check, WAITS(2), polls_0,
      closes, cancels)
MODEL(recv_meets_deadline, setup_receiver_within, check, WAITS(2), polls_0,
      sends_1, passes_and_closes)
MODEL(recv_until_deadline, setup_receiver_within_1, check, WAITS(2), polls_0,
      passes, polls_0)
MODEL(recv_meets_deadline_and_cancel, setup_receiver_within_1, check, WAITS(2),
      polls_0, passes, cancels)

/* One future that sends. */
MODEL(send_meets_recv, setup_sender_1, check, WAITS(2), polls_0, receives_all,
      closes)
MODEL(send_meets_cancel, setup_sender_0, check, WAITS(2), polls_0,
      receives_all, cancels_and_closes)
MODEL(send_meets_deadline, setup_sender_within, check, WAITS(2), polls_0,
      receives_all, passes_and_closes)

/* Both are futures. */
MODEL(futures_meet, setup_both_0, check, WAITS(2), polls_0, polls_1, closes)
MODEL(futures_meet_with_room, setup_both_1, check, WAITS(2), polls_0, polls_1,
      cancels_and_closes)

/* Checks of what is left over, and of what was taken. */
MODEL(event_meets_set, setup_event, check, WAITS(2), polls_0, sets, polls_0)
MODEL(event_meets_cancel, setup_event, check, WAITS(2), polls_0, sets, cancels)
MODEL(event_meets_deadline, setup_event_within, check, WAITS(2), polls_0,
      passes, sets)
MODEL(permit_is_passed_on, setup_sem, check_sem, WAITS(2), polls_0, polls_1,
      polls_0)
MODEL(permit_meets_cancel, setup_sem, check_sem, WAITS(2), polls_0, polls_1,
      cancels)
MODEL(those_behind_one_that_gives_up_go_on, setup_sem_of_two, check_sem,
      WAITS(2), polls_0, polls_1, cancels)
MODEL(permit_meets_deadline, setup_sem_within, check_sem, WAITS(2), polls_0,
      releases, passes)

int main(void)
{
	const TTest *const tests[] = {
		recv_meets_send,
		recv_meets_send_with_room,
		recv_meets_thread_and_cancel,
		recv_meets_cancel,
		recv_meets_close,
		recv_meets_close_and_cancel,
		recv_meets_deadline,
		recv_until_deadline,
		recv_meets_deadline_and_cancel,
		send_meets_recv,
		send_meets_cancel,
		send_meets_deadline,
		futures_meet,
		futures_meet_with_room,
		event_meets_set,
		event_meets_cancel,
		event_meets_deadline,
		permit_is_passed_on,
		permit_meets_cancel,
		those_behind_one_that_gives_up_go_on,
		permit_meets_deadline,
		NULL,
	};

	return kit_main("await", tests);
}
