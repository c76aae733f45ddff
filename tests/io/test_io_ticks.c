/* SPDX-License-Identifier: MIT */
/*
 * Suite io/ticks: what the driver does in each tick and before each sleep
 * (ledger V49, V51, L16).
 *
 * No worker looks up unless it is woken: a monitor would make up for what the
 * other workers have missed.
 */
#include <pthread.h>
#include <sched.h>

#include "runtime/sched/idle.h"
#include "tests/support/io_kit.h"

/*
 * V51: a completion is taken in the tick that follows.
 */

static struct {
	int fds[2];
	bool waits, done;
	uint64_t ticks; /* when the byte was read */
} byte;

static uint64_t ticks_now(void)
{
	/* relaxed: the worker's own. */
	return weft__load(&weft__worker_self()->counts[WEFT__N_TICKS],
			  relaxed);
}

static int64_t read_byte(void *arg)
{
	char got;

	(void)arg;
	byte.waits = true;
	ck_assert_int_eq(weft_read(byte.fds[0], &got, 1), 1);
	byte.ticks = ticks_now();
	byte.done = true;
	return 0;
}

static uint64_t ticks_of_a_byte(void)
{
	uint64_t ticks = 0;

	byte.waits = byte.done = false;
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go(scope, read_byte, NULL, 0), 0);
		while (!byte.waits)
			ck_assert_int_eq(weft_yield(), 0);
		/* Its request is submitted in the meantime. */
		for (ticks = ticks_now(); ticks_now() < ticks + 3;)
			ck_assert_int_eq(weft_yield(), 0);
		ticks = ticks_now();
		ck_assert_int_eq(write(byte.fds[1], "x", 1), 1);
		while (!byte.done)
			ck_assert_int_eq(weft_yield(), 0);
	}
	return byte.ticks - ticks;
}

/* A tick that another program's work makes long ends before the task runs. */
static int64_t send_bytes(void *arg)
{
	int late = 0;

	(void)arg;
	socket_pair(byte.fds);
	for (int i = 0; i < 50; i++)
		late += ticks_of_a_byte() > 1;
	ck_assert_int_le(late, 10);
	close_both(byte.fds);
	return 0;
}

/* The thread that writes is the worker's own, so the kernel has nothing else to
 * wait for. */
START_TEST(completion_is_taken_in_the_next_tick)
{
	setenv("WEFT_TEST_MONITOR", "off", 1);
	io_run(send_bytes, NULL, 1);
}
END_TEST

/*
 * L16: another worker arms an alarm while worker 0 sleeps for long, and then
 * sleeps, too.
 */

static struct {
	struct weft_runtime *runtime;
	weft__atomic(uint32_t) naps;
	weft__atomic(bool) done;
	weft__atomic(bool) rescued;
	bool found;
} asleep;

enum { NAPS = 50, PATIENCE_NS = 100000000, PATIENCE = 200 };

/* Wakes worker 0 if there is no further nap for 20 s: so the test fails, and
 * does not hang. */
static void *rescue(void *arg)
{
	uint32_t seen = 0;

	(void)arg;
	for (int i = 0; !weft__load(&asleep.done, acquire); i++) {
		uint32_t naps = weft__load(&asleep.naps, acquire);

		thread_pause_ns(PATIENCE_NS);
		if (naps != seen) {
			i = 0;
			seen = naps;
		} else if (i >= PATIENCE) {
			weft__store(&asleep.rescued, true, release);
			weft__unpark(NULL, asleep.runtime->workers[0]);
			i = 0;
		}
	}
	return NULL;
}

/* Stays on its worker. */
static int64_t nap_beside_worker_0(void *arg)
{
	struct weft__worker *worker = weft__worker_self();

	(void)arg;
	if (worker->index == 0)
		return sched_yield(); /* the other one comes */
	if (asleep.found)
		return 0;
	asleep.found = true;
	for (uint32_t i = 0;
	     i < NAPS && !weft__load(&asleep.rescued, acquire); i++) {
		while (!weft__idle_listed(&worker->runtime->idle, 0))
			sched_yield();
		ck_assert_int_eq(weft_sleep(WEFT_US(300)), 0);
		weft__store(&asleep.naps, i + 1, release);
	}
	return 0;
}

static int64_t find_another_worker(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	pthread_t thread;

	(void)arg;
	asleep.runtime = weft_runtime_self();
	ck_assert_int_eq(pthread_create(&thread, NULL, rescue, NULL), 0);
	opts.flags = WEFT_PINNED;
	while (!asleep.found)
		WEFT_SCOPE(scope, NULL)
			for (int i = 0; i < 8; i++)
				ck_assert_int_eq(
					weft_go_opts(scope, nap_beside_worker_0,
						     NULL, 0, &opts), 0);
	weft__store(&asleep.done, true, release);
	pthread_join(thread, NULL);
	ck_assert(!weft__load(&asleep.rescued, acquire));
	return 0;
}

START_TEST(alarm_armed_elsewhere_ends_the_sleep_of_worker_0)
{
	setenv("WEFT_TEST_MONITOR", "off", 1);
	io_run(find_another_worker, NULL, 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/ticks");
	TCase *tc = tcase_create("ticks");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, completion_is_taken_in_the_next_tick);
	tcase_add_test(tc, alarm_armed_elsewhere_ends_the_sleep_of_worker_0);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
