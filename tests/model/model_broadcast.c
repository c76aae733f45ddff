/* SPDX-License-Identifier: MIT */
/*
 * Model of broadcasts and watches (runtime/sync/broadcast.c, watch.c).  A
 * subscriber gets the values that are sent, in the order of their numbers, or
 * learns how many it missed.  A read of a watch returns a whole value, and
 * never an older one than the read before.  The reader sees what the sender
 * wrote before.  No task is left asleep.
 */
#include "tests/model/waits.h"

#define memcpy copy_announced
#include "runtime/sync/broadcast.c"
#include "runtime/sync/watch.c"
#undef memcpy

enum { VALUES = 4 };

/* Its second word shows whether it is whole. */
struct value {
	uint64_t number, copy;
};

static struct weft_broadcast news;
static struct value room[2];
static struct weft_watch watch;
static struct value watched;
/* By value: the data that its sender wrote before; whether it was sent. */
static int64_t payload[VALUES];
static bool was_sent[VALUES];
/* Reports to the task whose wait was cancelled. */
static struct model_event closed;
/* By thread: its subscriber, the values that came, and how often in all. */
static struct weft_subscriber subscribers[MODEL_THREADS];
static uint64_t came[MODEL_THREADS][VALUES];
static unsigned came_count[MODEL_THREADS], missed_count[MODEL_THREADS];

static void setup_room(size_t capacity, unsigned tasks)
{
	waits_setup(tasks);
	memset(room, 0, sizeof(room));
	memset(payload, 0, sizeof(payload));
	memset(was_sent, 0, sizeof(was_sent));
	memset(&closed, 0, sizeof(closed));
	memset(came, 0, sizeof(came));
	memset(came_count, 0, sizeof(came_count));
	memset(missed_count, 0, sizeof(missed_count));
	(void)weft_broadcast_init(&news, room, capacity, sizeof(room[0]));
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		weft_subscribe(&news, &subscribers[i]);
	watched = (struct value){ 0 };
	watch = (struct weft_watch)WEFT_WATCH_INIT(watched);
	model_name(&broadcast_of(&news)->lock, "lock");
	model_name(&news, "broadcast");
	model_name(room, "room");
	model_name(&watch_of(&watch)->lock, "lock");
	model_name(&watch, "watch");
	model_name(&watched, "watched");
	model_name(payload, "payload");
}

static void setup_1(void *arg)
{
	(void)arg;
	setup_room(1, 3);
}

static void setup_2(void *arg)
{
	(void)arg;
	setup_room(2, 3);
}

static void setup_4(void *arg)
{
	(void)arg;
	setup_room(2, 4);
}

static void setup_foreign_0(void *arg)
{
	setup_2(arg);
	waits_foreign(0);
}

static void setup_foreign_1(void *arg)
{
	setup_2(arg);
	waits_foreign(1);
}

static void setup_elsewhere(void *arg)
{
	setup_2(arg);
	waits_elsewhere(1);
}

static void check_value(const struct value *v)
{
	model_assert(v->number < VALUES && v->copy == 3 * v->number,
		     "a value is whole");
	model_assert(!v->number || payload[v->number] == 5,
		     "what came before it is seen");
}

/*
 * Broadcast.
 */

static void send(uint64_t number)
{
	const struct value v = { number, 3 * number };
	int r;

	payload[number] = 5;
	r = weft_broadcast_send(&news, &v);
	model_assert(r == 0 || r == -EPIPE, "it is sent, or it is closed");
	was_sent[number] = r == 0;
}

static __attribute__((noinline)) int64_t recv_call(struct value *v)
{
	return weft_broadcast_recv(&subscribers[model_self()], v);
}

/* The result of the call, if it returned no value. */
static int64_t take(int64_t r, const struct value *v)
{
	unsigned self = model_self();

	if (r < 0)
		return r;
	check_value(v);
	model_assert(v->number > 0, "it is one that was sent");
	missed_count[self] += (unsigned)r;
	came[self][came_count[self]++] = v->number;
	return 0;
}

static int64_t recv_once(void)
{
	struct value v = { 0 };
	int64_t r = recv_call(&v);

	call_over();
	model_assert(r >= 0 || r == -EPIPE || r == -ECANCELED,
		     "it is received, or it is closed, or the wait is "
		     "cancelled");
	return take(r, &v);
}

static int64_t try_once(void)
{
	struct value v = { 0 };
	int64_t r = weft_broadcast_try_recv(&subscribers[model_self()], &v);

	model_assert(r >= 0 || r == -EPIPE || r == -EAGAIN,
		     "it is received, or it is closed, or there is none");
	return take(r, &v);
}

/* Receives until it is closed; if its waits are cancelled, what is there. */
static void recv_all(void)
{
	int64_t r = 0;

	while (r == 0)
		r = recv_once();
	if (r == -EPIPE)
		return;
	(void)model_wait(&closed);
	do
		r = try_once();
	while (r == 0);
	model_assert(r == -EPIPE, "it is closed");
}

static void close_news(void)
{
	weft_broadcast_close(&news);
	model_post(&closed);
}

THREAD(sends_2, send(1); send(2); close_news();)
THREAD(sends_3, send(1); send(2); send(3); close_news();)
THREAD(sends_1, send(1);)
THREAD(sends_another, send(2);)
THREAD(closes, close_news();)
THREAD(receives_all, recv_all();)
THREAD(receives_1, (void)recv_once();)
THREAD(receives_2, (void)recv_once(); (void)recv_once();)
THREAD(cancels_and_sends, cancel(0); send(1); close_news();)
THREAD(sends_and_cancels, send(1); cancel(0); close_news();)
THREAD(subscribes, weft_subscribe(&news, &subscribers[model_self()]);
       recv_all();)
THREAD(tries, (void)try_once(); recv_all();)

static void check_quiet(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(queue_empty(&broadcast_of(&news)->waiters),
		     "nobody waits");
}

static unsigned sent_count(void)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < VALUES; i++)
		sum += was_sent[i];
	return sum;
}

/* Each value that was sent came to this thread, or was counted as missed.  The
 * numbers of one sender rise. */
static void check_had_all(unsigned thread)
{
	unsigned n = came_count[thread];

	model_assert(n + missed_count[thread] == sent_count(),
		     "what was sent came, or was missed");
	model_assert(!n || was_sent[came[thread][n - 1]], "it was sent");
}

static void check_rises(unsigned thread)
{
	for (unsigned k = 1; k < came_count[thread]; k++)
		model_assert(came[thread][k] > came[thread][k - 1],
			     "they come in the order in which they were sent");
}

static void check_0(void *arg)
{
	check_quiet(arg);
	check_had_all(0);
	check_rises(0);
}

static void check_0_2(void *arg)
{
	check_0(arg);
	check_had_all(2);
	check_rises(2);
}

/* Thread 2 subscribed later, and got the last values. */
static void check_late(void *arg)
{
	unsigned n = came_count[2];

	check_0(arg);
	check_rises(2);
	model_assert(n + missed_count[2] <= sent_count(),
		     "no more than was sent");
	model_assert(!n || came[2][n - 1] == sent_count(),
		     "the last one is among them");
	model_assert(!n || came[2][0] + n - 1 + missed_count[2] >= sent_count(),
		     "none is left out without a word");
}

/* There are two senders, and there was room for all values. */
static void check_same(void *arg)
{
	check_quiet(arg);
	check_had_all(0);
	check_had_all(3);
	for (unsigned k = 0; k < 2; k++)
		model_assert(came[0][k] && came[0][k] == came[3][k],
			     "all get them in the same order");
	model_assert(came[0][0] != came[0][1], "each comes once");
}

static void check_told(void *arg)
{
	check_quiet(arg);
	model_assert(came_count[0] == 1, "a value came");
}

MODEL(send_meets_recv, setup_2, check_0, WAITS(3), receives_all, sends_2)
MODEL(recv_lags, setup_1, check_0, WAITS(3), receives_all, sends_2)
MODEL(recv_lags_more, setup_2, check_0, WAITS(2), receives_all, sends_3)
MODEL(two_receive, setup_1, check_0_2, WAITS_NEWEST(2), receives_all, sends_2,
      receives_all)
MODEL(one_value_wakes_all, setup_2, check_told, WAITS(2), receives_1, sends_1,
      receives_1)
MODEL(two_send, setup_4, check_same, WAITS_NEWEST(1), receives_2, sends_1,
      sends_another, receives_2)
MODEL(a_subscriber_comes, setup_1, check_late, WAITS_NEWEST(2), receives_all,
      sends_2, subscribes)
MODEL(close_meets_send, setup_2, check_0, WAITS(2), receives_all, sends_1,
      closes)
MODEL(recv_meets_cancel, setup_2, check_0, WAITS(2), receives_all,
      cancels_and_sends)
MODEL(recv_meets_cancel_late, setup_2, check_0, WAITS(2), receives_all,
      sends_and_cancels, receives_1)
MODEL(try_meets_send, setup_1, check_0, WAITS(3), tries, sends_2)
MODEL(thread_receives, setup_foreign_0, check_0, WAITS(3), receives_all,
      sends_2)
MODEL(thread_sends, setup_foreign_1, check_0, WAITS(3), receives_all, sends_2)
MODEL(runtimes_meet, setup_elsewhere, check_0, WAITS(3), receives_all, sends_2)

/*
 * Watch.  Value and version go up together.
 */

static void set(uint64_t number)
{
	const struct value v = { number, 3 * number };
	int r;

	payload[number] = 5;
	r = weft_watch_set(&watch, &v);
	model_assert(r == 0 || r == -EPIPE, "it is set, or it is closed");
	was_sent[number] = r == 0;
}

static void set_2_and_close(void)
{
	set(1);
	set(2);
	weft_watch_close(&watch);
}

static __attribute__((noinline)) int wait_call(uint64_t *version,
					       struct value *v)
{
	return weft_watch_wait(&watch, version, v);
}

/* Reads until it is closed, or the wait is cancelled: the last version. */
static int see_all(uint64_t *version)
{
	struct value v;
	uint64_t before;
	int r;

	for (;;) {
		before = *version;
		r = wait_call(version, &v);
		call_over();
		if (r < 0)
			break;
		check_value(&v);
		model_assert(*version > before, "a version is newer");
		model_assert(v.number == *version - 1,
			     "a value is that of its version");
	}
	model_assert(r == -EPIPE || r == -ECANCELED,
		     "it is closed, or the wait is cancelled");
	model_assert(*version == before, "who has nothing new keeps what was");
	return r;
}

static void waits(void *arg)
{
	uint64_t version = 0;
	int r = see_all(&version);

	(void)arg;
	came[model_self()][0] = version;
	model_assert(r == -ECANCELED || version == 3,
		     "who is told that it is closed has seen the last value");
}

static void looks(void *arg)
{
	uint64_t version, before = 0;
	struct value v;

	(void)arg;
	for (unsigned i = 0; i < 2; i++) {
		version = weft_watch_get(&watch, &v);
		check_value(&v);
		model_assert(v.number == version - 1 && version >= before,
			     "a value is that of its version, and no older");
		before = version;
	}
}

THREAD(sets_2, set_2_and_close();)
THREAD(cancels_and_sets_2, cancel(0); set_2_and_close();)

/* Two tasks set: one of them, or both, before it is closed. */
static void waits_for_any(void *arg)
{
	uint64_t version = 0;
	struct value v = { 0 };

	(void)arg;
	while (wait_call(&version, &v) == 0) {
		call_over();
		check_value(&v);
	}
	call_over();
	came[0][0] = version;
	came[0][1] = v.number;
}

THREAD(sets_1_and_closes, set(1); weft_watch_close(&watch);)
THREAD(sets_other, set(2);)

static void check_watch(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(queue_empty(&watch_of(&watch)->waiters), "nobody waits");
}

static void check_any(void *arg)
{
	check_watch(arg);
	model_assert(came[0][0] == sent_count() + 1,
		     "who is told that it is closed has seen all changes");
	model_assert(came[0][1] == watched.number, "the last value was seen");
}

MODEL(set_meets_wait, setup_1, check_watch, WAITS(3), waits, sets_2)
MODEL(set_wakes_all, setup_1, check_watch, WAITS_NEWEST(2), waits, sets_2,
      waits)
MODEL(set_meets_get, setup_1, check_watch, WAITS(2), looks, sets_2, waits)
MODEL(two_set, setup_1, check_any, WAITS(2), waits_for_any, sets_1_and_closes,
      sets_other)
MODEL(wait_meets_cancel, setup_1, check_watch, WAITS(2), waits, sets_2,
      cancel_0)
MODEL(wait_after_cancel, setup_1, check_watch, WAITS_NEWEST(2), waits,
      cancels_and_sets_2, waits)
MODEL(thread_waits, setup_foreign_0, check_watch, WAITS(3), waits, sets_2)
MODEL(thread_sets, setup_foreign_1, check_watch, WAITS(3), waits, sets_2)

int main(void)
{
	const TTest *const tests[] = {
		send_meets_recv,
		recv_lags,
		recv_lags_more,
		two_receive,
		one_value_wakes_all,
		two_send,
		a_subscriber_comes,
		close_meets_send,
		recv_meets_cancel,
		recv_meets_cancel_late,
		try_meets_send,
		thread_receives,
		thread_sends,
		runtimes_meet,
		set_meets_wait,
		set_wakes_all,
		set_meets_get,
		two_set,
		wait_meets_cancel,
		wait_after_cancel,
		thread_waits,
		thread_sets,
		NULL,
	};

	return kit_main("broadcast", tests);
}
