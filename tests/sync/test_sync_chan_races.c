/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/chan_races: two sides meet at a channel again and again, so that
 * each step of one side also happens between two steps of the other.
 *
 * With WEFT_TEST_LONG in the environment it runs thirty times as often.
 */
#include <pthread.h>

#include "tests/support/chan_threads.h"

enum { ROOM_MAX = 64 };

/* ---- Order --------------------------------------------------------------- */

/* One sender passes numbers to one receiver. */
static struct {
	struct weft_chan chan, unsent, unreceived;
	uint64_t room[ROOM_MAX];
	uint32_t total;
	int put_tries, take_tries; /* tries before it waits */
} line;

/* One side tries many times and the other waits immediately, so that the first
 * comes at any moment of the second. */
enum { TRIES = 2000 };

static int line_put(uint64_t number)
{
	struct weft_case cases[] = { WEFT_SEND(&line.chan, &number),
				     WEFT_SEND(&line.unreceived, &number) };
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < line.put_tries; i++)
		r = weft_chan_try_send(&line.chan, &number);
	if (r != -EAGAIN)
		return r;
	if (number % 2)
		return weft_chan_send(&line.chan, &number);
	EXPECT(weft_select(cases, 2) == 0);
	return cases[0].result;
}

static int line_take(uint64_t *number, uint32_t n)
{
	uint64_t other;
	struct weft_case cases[] = { WEFT_RECV(&line.unsent, &other),
				     WEFT_RECV(&line.chan, number) };
	int r = -EAGAIN;

	for (int i = 0; r == -EAGAIN && i < line.take_tries; i++)
		r = weft_chan_try_recv(&line.chan, number);
	if (r != -EAGAIN)
		return r;
	if (n % 2)
		return weft_chan_recv(&line.chan, number);
	EXPECT(weft_select(cases, 2) == 1);
	return cases[1].result;
}

static int64_t put_all(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < line.total; i++)
		EXPECT(line_put(i) == 0);
	weft_chan_close(&line.chan);
	return 0;
}

static int64_t take_all(void *arg)
{
	uint64_t number;
	uint32_t n = 0;

	(void)arg;
	while (line_take(&number, n) == 0)
		EXPECT(number == n++);
	EXPECT(n == line.total);
	return 0;
}

static void *put_thread(void *arg)
{
	put_all(arg);
	return NULL;
}

static void *take_thread(void *arg)
{
	take_all(arg);
	return NULL;
}

static int64_t put_and_take(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(all) {
		EXPECT(weft_go(all, put_all, NULL, 0) == 0);
		EXPECT(weft_go(all, take_all, NULL, 0) == 0);
	}
	return 0;
}

static void line_begin(size_t capacity, int who_tries)
{
	EXPECT(weft_chan_init(&line.chan, line.room, capacity,
			      sizeof(uint64_t)) == 0);
	EXPECT(weft_chan_init(&line.unsent, NULL, 0, sizeof(uint64_t)) == 0);
	EXPECT(weft_chan_init(&line.unreceived, NULL, 0, sizeof(uint64_t)) ==
	       0);
	line.total = often(10000);
	line.put_tries = who_tries == 0 ? TRIES : 0;
	line.take_tries = who_tries == 1 ? TRIES : 0;
}

static void thread_with(void *(*thread_fn)(void *arg), weft_fn fn)
{
	pthread_t thread;

	EXPECT(pthread_create(&thread, NULL, thread_fn, NULL) == 0);
	io_run(fn, NULL, 1);
	pthread_join(thread, NULL);
}

/* If a value that arrived just before the receiver's wait were left behind, a
 * later one could overtake it. */
START_TEST(values_come_in_order_between_threads)
{
	static const size_t capacities[] = { 0, 1, 64 };
	pthread_t thread;

	line_begin(capacities[_i / 4 % 3], _i / 12);
	switch (_i % 4) {
	case 0:
		thread_with(put_thread, take_all);
		break;
	case 1:
		thread_with(take_thread, put_all);
		break;
	case 2:
		io_run(put_and_take, NULL, 2);
		break;
	default:
		EXPECT(pthread_create(&thread, NULL, put_thread, NULL) == 0);
		take_all(NULL);
		pthread_join(thread, NULL);
		break;
	}
}
END_TEST

/* ---- Locks --------------------------------------------------------------- */

enum { CHANS = 16 };

static struct weft_chan crossed[CHANS];

/* The channels are empty: each call only locks all of them and looks. */
static void cross(bool backwards)
{
	struct weft_case cases[CHANS];
	uint64_t value;

	for (int i = 0; i < CHANS; i++)
		cases[i] = (struct weft_case)WEFT_RECV(
			&crossed[backwards ? CHANS - 1 - i : i], &value);
	for (uint32_t n = 0; n < often(100000); n++)
		EXPECT(weft_try_select(cases, CHANS) == -EAGAIN);
}

static void *cross_thread(void *arg)
{
	(void)arg;
	cross(true);
	return NULL;
}

START_TEST(selects_in_opposite_orders_pass_each_other)
{
	pthread_t thread;

	for (int i = 0; i < CHANS; i++)
		EXPECT(weft_chan_init(&crossed[i], NULL, 0, sizeof(uint64_t)) ==
		       0);
	EXPECT(pthread_create(&thread, NULL, cross_thread, NULL) == 0);
	cross(false);
	pthread_join(thread, NULL);
}
END_TEST

/* ---- Closing ------------------------------------------------------------- */

enum { WAITERS = 24 };

static struct weft_chan closed;
static weft__atomic(uint32_t) waiting;

/* Overwrites the stack memory that held the waiter. */
static __attribute__((noinline)) void scrub(void)
{
	volatile char stack[2048];

	for (size_t i = 0; i < sizeof(stack); i++)
		stack[i] = 0x5a;
}

static int64_t wait_for_close(void *arg)
{
	uint64_t value;

	(void)arg;
	/* relaxed: a count. */
	weft__add(&waiting, 1u, relaxed);
	EXPECT(weft_chan_recv(&closed, &value) == -EPIPE);
	scrub();
	return 0;
}

static void *close_thread(void *arg)
{
	(void)arg;
	weft_chan_close(&closed);
	return NULL;
}

/* A thread closes the channel, so that its grants are far apart in time. */
static int64_t close_on_waiters(void *arg)
{
	pthread_t thread;

	(void)arg;
	for (uint32_t n = 0; n < often(200); n++) {
		EXPECT(weft_chan_init(&closed, NULL, 0, sizeof(uint64_t)) ==
		       0);
		/* relaxed: none of them has begun. */
		weft__store(&waiting, 0u, relaxed);
		WEFT_SUPERVISE(all) {
			for (int i = 0; i < WAITERS; i++)
				EXPECT(weft_go(all, wait_for_close, NULL, 0) ==
				       0);
			/* relaxed: a count. */
			while (weft__load(&waiting, relaxed) < WAITERS)
				EXPECT(weft_yield() == 0);
			EXPECT(pthread_create(&thread, NULL, close_thread,
					      NULL) == 0);
		}
		pthread_join(thread, NULL);
	}
	return 0;
}

START_TEST(who_was_closed_out_may_be_gone_at_once)
{
	io_run(close_on_waiters, NULL, 1 + (unsigned)_i);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sync/chan_races");
	TCase *tc = tcase_create("races");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, values_come_in_order_between_threads, 0, 36);
	tcase_add_test(tc, selects_in_opposite_orders_pass_each_other);
	tcase_add_loop_test(tc, who_was_closed_out_may_be_gone_at_once, 0, 2);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
