/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/chan_waits: the wait of a thread that runs no task, for a channel,
 * ends: by a close, at a time, by another channel.  It has then sent or
 * received nothing.
 */
#include <pthread.h>

#include "runtime/sync/chan.h"
#include "tests/support/chan_threads.h"

/* The thread's wait: in a call of its own, or in a select. */
static struct {
	struct weft_chan data, quit;
	uint64_t room[1], value;
	bool sends, selects;
	weft_nsec at_ns;
	int r, result;
} wait;

enum { DATA, QUIT, TIME };

static void wait_set(bool sends, bool selects, weft_nsec at_ns)
{
	struct weft_chan data = WEFT_CHAN_INIT(wait.room);
	struct weft_chan quit = WEFT_CHAN_DIRECT(int);

	wait.data = data;
	wait.quit = quit;
	wait.sends = sends;
	wait.selects = selects;
	wait.at_ns = at_ns;
	wait.value = 7;
	/* So that a send has to wait. */
	if (sends)
		ck_assert_int_eq(weft_chan_send(&wait.data, &(uint64_t){ 1 }),
				 0);
}

static void *wait_in_thread(void *arg)
{
	struct weft_case cases[] = {
		WEFT_SEND(&wait.data, &wait.value),
		WEFT_RECV(&wait.quit, &wait.result),
		WEFT_AT(wait.at_ns),
	};

	if (!wait.sends)
		cases[DATA].kind = WEFT_CASE_RECV;
	if (wait.selects) {
		wait.r = weft_select(cases, 3);
		wait.result = cases[DATA].result;
	} else {
		wait.r = wait.sends ? weft_chan_send(&wait.data, &wait.value) :
				      weft_chan_recv(&wait.data, &wait.value);
	}
	return arg;
}

static bool has_waiter(struct weft_chan *chan)
{
	struct weft__chan *c = weft__chan(chan);
	bool has;

	weft__lock_take(&c->lock);
	has = c->senders.head || c->receivers.head;
	weft__lock_drop(&c->lock);
	return has;
}

static pthread_t wait_begin(void)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, wait_in_thread, NULL),
			 0);
	while (!has_waiter(&wait.data))
		sched_yield();
	return thread;
}

/* Nothing was sent or received, and the channel has no waiter left. */
static void expect_nothing(void)
{
	uint64_t value = 0;

	ck_assert(!has_waiter(&wait.data) && !has_waiter(&wait.quit));
	ck_assert_uint_eq(wait.value, 7);
	ck_assert_uint_eq(weft_chan_count(&wait.data), wait.sends);
	if (wait.sends) {
		ck_assert_int_eq(weft_chan_try_recv(&wait.data, &value), 0);
		ck_assert_uint_eq(value, 1);
	}
	ck_assert_int_lt(weft_chan_try_recv(&wait.data, &value), 0);
}

START_TEST(close_ends_the_wait_of_a_thread)
{
	pthread_t thread;

	wait_set(_i & 1, _i & 2, WEFT_NEVER);
	thread = wait_begin();
	weft_chan_close(&wait.data);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	if (wait.selects) {
		ck_assert_int_eq(wait.r, DATA);
		ck_assert_int_eq(wait.result, -EPIPE);
	} else {
		ck_assert_int_eq(wait.r, -EPIPE);
	}
	expect_nothing();
}
END_TEST

START_TEST(time_ends_the_wait_of_a_thread)
{
	weft_nsec lengths[] = { WEFT_MS(20), 0, WEFT_SEC(-1) };

	for (int i = 0; i < 3; i++) {
		wait_set(_i, true, weft_now() + lengths[i]);
		(void)wait_in_thread(NULL);
		ck_assert_int_eq(wait.r, TIME);
		ck_assert_int_ge((int64_t)(weft_now() - wait.at_ns), 0);
		expect_nothing();
	}
}
END_TEST

START_TEST(another_channel_ends_the_wait_of_a_thread)
{
	pthread_t thread;

	wait_set(_i, true, WEFT_NEVER);
	thread = wait_begin();
	weft_chan_close(&wait.quit);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(wait.r, QUIT);
	expect_nothing();
}
END_TEST

START_TEST(time_that_never_comes_does_not_end_the_wait)
{
	pthread_t thread;
	uint64_t value = 0;

	wait_set(_i, true, weft_now() + WEFT_NEVER);
	thread = wait_begin();
	if (wait.sends)
		ck_assert_int_eq(weft_chan_recv(&wait.data, &value), 0);
	else
		ck_assert_int_eq(weft_chan_send(&wait.data,
						&(uint64_t){ 9 }),
				 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(wait.r, DATA);
	ck_assert_int_eq(wait.result, 0);
	ck_assert_uint_eq(wait.value, wait.sends ? 7 : 9);
}
END_TEST

/* ---- A time meets the other side ---------------------------------------- */

static struct {
	struct weft_chan chan;
	weft__atomic(bool) over;
	uint64_t sent, received; /* values, and their sums */
	uint64_t sent_sum, received_sum;
} meeting;

static void *receive_for_short_times(void *arg)
{
	bool over = false;
	uint64_t value;
	int r;

	while (!over) {
		struct weft_case cases[] = {
			WEFT_RECV(&meeting.chan, &value),
			WEFT_AT(weft_now() + WEFT_US(5)),
		};

		/* pairs: [test.over]; the last look is after it */
		over = weft__load(&meeting.over, acquire);
		r = weft_select(cases, 2);
		ck_assert_int_ge(r, 0);
		if (r == 0 && cases[0].result == 0) {
			meeting.received++;
			meeting.received_sum += value;
			over = false;
		}
	}
	return arg;
}

/* Both sides give up all the time; no value is lost or doubled. */
START_TEST(value_is_passed_or_the_time_has_come)
{
	struct weft_chan chan = WEFT_CHAN_DIRECT(uint64_t);
	uint64_t many = often(20000);
	pthread_t thread;

	meeting.chan = chan;
	ck_assert_int_eq(pthread_create(&thread, NULL, receive_for_short_times,
					NULL),
			 0);
	for (uint64_t i = 1; i <= many; i++) {
		struct weft_case cases[] = {
			WEFT_AT(weft_now() + WEFT_US(i % 9)),
			WEFT_SEND(&meeting.chan, &i),
		};

		if (weft_select(cases, 2) == 1) {
			meeting.sent++;
			meeting.sent_sum += i;
		}
	}
	/* pairs: [test.over] */
	weft__store(&meeting.over, true, release);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(meeting.received, meeting.sent);
	ck_assert_uint_eq(meeting.received_sum, meeting.sent_sum);
	ck_assert(!has_waiter(&meeting.chan));
}
END_TEST

static Suite *waits_suite(void)
{
	Suite *suite = suite_create("sync/chan_waits");
	TCase *tc = tcase_create("waits");

	tcase_add_loop_test(tc, close_ends_the_wait_of_a_thread, 0, 4);
	tcase_add_loop_test(tc, time_ends_the_wait_of_a_thread, 0, 2);
	tcase_add_loop_test(tc, another_channel_ends_the_wait_of_a_thread, 0,
			    2);
	tcase_add_loop_test(tc, time_that_never_comes_does_not_end_the_wait, 0,
			    2);
	tcase_add_test(tc, value_is_passed_or_the_time_has_come);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	return io_tests_run(waits_suite());
}
