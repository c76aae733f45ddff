/* SPDX-License-Identifier: MIT */
/*
 * Suite io/crowd: a worker that serves while no more than one is to run.  What
 * completes at once, and ends its sleep, wakes nobody else.  And what is known
 * of the machine.
 */
#include <pthread.h>
#include <sys/eventfd.h>

#include "io/os/cpu_idle.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

enum { WORKERS = 2, MANY = 128, ROUNDS = 40 };

static int event;
static weft__atomic(bool) over;

static bool all_sleep(struct weft_runtime *runtime)
{
	return weft__idle_parked(weft__load(&runtime->idle.counts, seq_cst)) ==
	       WORKERS;
}

/* Another thread ends what all of them wait for, when all workers sleep. */
static void *end_waits(void *arg)
{
	struct weft_runtime *runtime = arg;

	/* relaxed: a flag. */
	while (!weft__load(&over, relaxed)) {
		thread_pause_ns(1000000);
		if (all_sleep(runtime))
			eventfd_write(event, 1);
	}
	return NULL;
}

static int64_t wait_for_event(void *arg)
{
	(void)arg;
	EXPECT(weft_poll(event, POLLIN) == POLLIN);
	return 0;
}

static void wait_together(void)
{
	eventfd_t value;

	WEFT_SCOPE (all, NULL)
		for (int i = 0; i < MANY; i++)
			EXPECT(weft_go(all, wait_for_event, NULL, 0) == 0);
	EXPECT(eventfd_read(event, &value) == 0);
}

static uint64_t wakes_sent(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	return stats.total.wakes_sent;
}

/* From here on, whatever the workers find. */
static void limit_workers(struct weft_runtime *runtime)
{
	/* relaxed: advice. */
	weft__store(&runtime->worker_limit.max, 1u, relaxed);
	/* relaxed: likewise. */
	weft__store(&runtime->worker_limit.changed_ns, UINT64_MAX, relaxed);
}

static uint64_t wakes_of_all_rounds(void)
{
	uint64_t before = wakes_sent();

	for (int i = 0; i < ROUNDS; i++)
		wait_together();
	return wakes_sent() - before;
}

static int64_t serve_together(void *arg)
{
	pthread_t thread;
	uint64_t wakes, tries = 0;

	(void)arg;
	limit_workers(weft_runtime_self());
	EXPECT(pthread_create(&thread, NULL, end_waits, weft_runtime_self()) == 0);
	wait_together();
	/* Now and then somebody is to look after others; and who has no
	 * processor for long seems to compute, for a while. */
	do
		wakes = wakes_of_all_rounds();
	while (wakes >= ROUNDS / 2 && ++tries < 5);
	EXPECT(wakes < ROUNDS / 2);
	/* relaxed: a flag. */
	weft__store(&over, true, relaxed);
	pthread_join(thread, NULL);
	return 0;
}

START_TEST(what_completes_at_once_wakes_nobody)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = WORKERS;
	event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ck_assert_int_ge(event, 0);
	ck_assert_int_eq(weft_run(serve_together, NULL, &opts), 0);
	close(event);
}
END_TEST

static uint64_t since_boot_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

START_TEST(machine_tells_how_long_it_was_idle)
{
	uint64_t processors = (uint64_t)sysconf(_SC_NPROCESSORS_CONF);
	int fd = weft__cpu_idle_open();
	uint64_t before = weft__cpu_idle_ns(fd), after;

	ck_assert_uint_gt(before, 0);
	thread_pause_ns(30000000);
	after = weft__cpu_idle_ns(fd);
	ck_assert_uint_ge(after, before);
	ck_assert_uint_le(after - before, processors * 10000000000u);
	ck_assert_uint_le(after, processors * since_boot_ns());
	close(fd);
}
END_TEST

START_TEST(what_cannot_be_told_is_0)
{
	int fd = open("/proc/version", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(weft__cpu_idle_ns(fd), 0);
	ck_assert_uint_eq(weft__cpu_idle_ns(-1), 0);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/crowd");
	TCase *tcase = tcase_create("limit");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, what_completes_at_once_wakes_nobody, 0, 5);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("machine");
	tcase_add_test(tcase, machine_tells_how_long_it_was_idle);
	tcase_add_test(tcase, what_cannot_be_told_is_0);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
