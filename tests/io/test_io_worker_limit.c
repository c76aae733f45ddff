/* SPDX-License-Identifier: MIT */
/*
 * Suite io/worker_limit: what the driver measures on this machine for the
 * worker limit.
 */
#include "io/os/cpu_idle.h"
#include "tests/support/io_kit.h"

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
	Suite *suite = suite_create("io/worker_limit");
	TCase *tcase = tcase_create("machine");

	tcase_add_test(tcase, machine_tells_how_long_it_was_idle);
	tcase_add_test(tcase, what_cannot_be_told_is_0);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
