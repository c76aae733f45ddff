/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/chan_ends: a runtime ends as soon as it has what a thread, or
 * another runtime, handed to it over a channel.
 *
 * The other side may still be inside its call at that moment, and must not
 * touch the channel, the task or the runtime any more.  With WEFT_TEST_LONG in
 * the environment there are thirty times as many runtimes.
 */
#include <pthread.h>

#include "tests/support/chan_threads.h"

/* The task waits for one of these before the runtime ends. */
enum last { LAST_RECV, LAST_SEND, LAST_CLOSE, LAST_SELECT, LASTS };

struct order {
	struct weft_chan *chan;
	enum last last;
};

static struct weft_chan orders;

/* When a call here returns, the task may have gone on, freed the channel and
 * returned, and its runtime may have ended. */
static void serve_orders(void)
{
	struct order order;
	uint64_t value = 7;

	while (weft_chan_recv(&orders, &order) == 0) {
		if (order.last == LAST_CLOSE)
			weft_chan_close(order.chan);
		else if (order.last == LAST_SEND)
			EXPECT(weft_chan_recv(order.chan, &value) == 0);
		else
			EXPECT(weft_chan_send(order.chan, &value) == 0);
		EXPECT(value == 7);
	}
}

static void *serve_thread(void *arg)
{
	(void)arg;
	serve_orders();
	return NULL;
}

static int64_t serve_task(void *arg)
{
	(void)arg;
	serve_orders();
	return 0;
}

static int wait_for_last(struct weft_chan *chan, enum last last)
{
	uint64_t value = last == LAST_SEND ? 7 : 0;
	struct weft_case none = { .kind = WEFT_CASE_NONE };
	struct weft_case cases[] = { none, WEFT_RECV(chan, &value) };
	int r;

	if (last == LAST_SELECT) {
		EXPECT(weft_select(cases, 2) == 1);
		r = cases[1].result;
	} else if (last == LAST_SEND) {
		r = weft_chan_send(chan, &value);
	} else {
		r = weft_chan_recv(chan, &value);
	}
	EXPECT(r < 0 || value == 7);
	return r;
}

/* The channel is freed immediately: the side that handed over a value, or
 * closed the channel, must not touch it any more. */
static int64_t wait_and_end(void *arg)
{
	struct order order = { malloc(sizeof(struct weft_chan)),
			       *(enum last *)arg };
	int r;

	EXPECT(order.chan &&
	       weft_chan_init(order.chan, NULL, 0, sizeof(uint64_t)) == 0);
	EXPECT(weft_chan_send(&orders, &order) == 0);
	r = wait_for_last(order.chan, order.last);
	EXPECT(r == (order.last == LAST_CLOSE ? -EPIPE : 0));
	free(order.chan);
	return 0;
}

static void end_many_runtimes(void)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	for (uint32_t i = 0; i < often(1000); i++) {
		enum last last = (enum last)(i % LASTS);

		opts.workers = 1 + i / LASTS % 2;
		EXPECT(weft_run(wait_and_end, &last, &opts) == 0);
	}
	weft_chan_close(&orders);
}

static void orders_begin(void)
{
	EXPECT(weft_chan_init(&orders, NULL, 0, sizeof(struct order)) == 0);
}

START_TEST(runtime_may_end_with_what_a_thread_sent_last)
{
	pthread_t thread;

	orders_begin();
	EXPECT(pthread_create(&thread, NULL, serve_thread, NULL) == 0);
	end_many_runtimes();
	pthread_join(thread, NULL);
}
END_TEST

START_TEST(runtime_may_end_with_what_another_one_sent_last)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	struct weft_task task;

	orders_begin();
	opts.workers = 1;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	task = submit(runtime, serve_task, 0);
	end_many_runtimes();
	ck_assert_int_eq(weft_wait(runtime, task, NULL), 0);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sync/chan_ends");
	TCase *tc = tcase_create("ends");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, runtime_may_end_with_what_a_thread_sent_last);
	tcase_add_test(tc, runtime_may_end_with_what_another_one_sent_last);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
