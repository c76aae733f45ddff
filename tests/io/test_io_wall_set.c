/* SPDX-License-Identifier: MIT */
/*
 * The time of day on a machine of its own, whose clock and zone the tests
 * really set: tests/tools/qemu.py says so in WEFT_TEST_OWN_MACHINE.  Elsewhere
 * they are left out.
 *
 * A task sleeps.  Before the clock is set its timer is armed, which
 * /proc/self/fdinfo shows.  The time that it waits for is an hour away and
 * more, so no test depends on how fast the machine is.
 */
#include <inttypes.h>

#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

#define NS_OF_SEC INT64_C(1000000000)

enum { HOUR = 3600, DAY = 24 * HOUR };

/* ---- The machine --------------------------------------------------------- */

static bool machine_is_ours(const char *test)
{
	return test_needs(getenv("WEFT_TEST_OWN_MACHINE") != NULL, test,
			  "a machine whose clock it may set");
}

static int64_t wall_s(void)
{
	return weft_wall_now() / NS_OF_SEC;
}

static void clock_set(int64_t to_s)
{
	struct timespec to = { .tv_sec = to_s };

	ck_assert_int_eq(clock_settime(CLOCK_REALTIME, &to), 0);
}

/* The zone of the machine, so many seconds east of UTC, as tzfile(5). */
static void zone_set(int32_t east_s)
{
	uint32_t east = (uint32_t)east_s;
	unsigned char file[44 + 6 + 4] = "TZif";
	FILE *to = fopen("/etc/zone", "we");

	file[39] = 1; /* a type */
	file[43] = 4; /* characters of its name */
	for (int i = 0; i < 4; i++)
		file[44 + i] = (unsigned char)(east >> (24 - 8 * i));
	memcpy(file + 50, "ZON", 4);
	ck_assert_ptr_nonnull(to);
	ck_assert_uint_eq(fwrite(file, sizeof(file), 1, to), 1);
	ck_assert_int_eq(fclose(to), 0);
	ck_assert_int_eq(rename("/etc/zone", "/etc/localtime"), 0);
}

/* In seconds until the timer of the time of day that is armed; -1: none is. */
static int64_t armed_in_fd(int fd)
{
	char path[64], line[128];
	int64_t left_s = -1;
	int clock = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		(void)!sscanf(line, "clockid: %d", &clock);
		(void)!sscanf(line, "it_value: (%" SCNd64, &left_s);
	}
	fclose(file);
	return clock == CLOCK_REALTIME && left_s > 0 ? left_s : -1;
}

static int64_t armed_in(void)
{
	int64_t left_s = -1;

	for (int fd = 3; fd < 64 && left_s < 0; fd++)
		left_s = armed_in_fd(fd);
	return left_s;
}

/* The task's timer is armed, for about that long. */
#define wait_for_arm(in_s)                                              \
	wait_until(armed_in() >= (in_s) - 60 && armed_in() <= (in_s) + 60)

/* ---- Sleeps -------------------------------------------------------------- */

static weft__atomic(bool) ended;
static int64_t ended_s;

static int64_t sleep_until(void *arg)
{
	int r = weft_sleep_until_wall(*(int64_t *)arg * NS_OF_SEC);

	ended_s = wall_s();
	/* pairs: [test.ended] */
	weft__store(&ended, true, release);
	return r;
}

static bool has_ended(void)
{
	/* pairs: [test.ended] */
	return weft__load(&ended, acquire);
}

/* For an hour. */
static void sleep_begin(struct weft_scope *scope, int64_t now_s)
{
	int64_t until_s = now_s + HOUR;

	/* relaxed: before the task is started. */
	weft__store(&ended, false, relaxed);
	ck_assert_int_eq(WEFT_GO(scope, sleep_until, until_s), 0);
	wait_for_arm(HOUR);
}

IO_TEST(sleep_ends_when_the_clock_is_set_behind_it)
{
	int64_t now_s = wall_s();

	if (!machine_is_ours("sleep_ends_when_the_clock_is_set_behind_it"))
		return 0;
	WEFT_SCOPE(scope, NULL) {
		sleep_begin(scope, now_s);
		/* On the way there, and not yet. */
		clock_set(now_s + HOUR / 2);
		wait_for_arm(HOUR / 2);
		ck_assert(!has_ended());
		clock_set(now_s + 2 * HOUR);
		wait_until(has_ended());
	}
	ck_assert_int_ge(ended_s, now_s + 2 * HOUR);
	clock_set(now_s);
	return 0;
}

IO_TEST(sleep_goes_on_when_the_clock_is_set_back)
{
	int64_t now_s = wall_s();

	if (!machine_is_ours("sleep_goes_on_when_the_clock_is_set_back"))
		return 0;
	WEFT_SCOPE(scope, NULL) {
		sleep_begin(scope, now_s);
		for (int hours = 1; hours < 4; hours++) {
			clock_set(now_s - hours * HOUR);
			wait_for_arm((1 + hours) * HOUR);
			ck_assert(!has_ended());
		}
		clock_set(now_s + HOUR - 1);
		wait_until(has_ended());
	}
	ck_assert_int_ge(ended_s, now_s + HOUR);
	clock_set(now_s);
	return 0;
}

/* ---- Calendars ----------------------------------------------------------- */

static int64_t when_s;

/* At 3:30 in local time. */
static int64_t wait_daily(void *arg)
{
	struct weft_calendar daily = WEFT_CALENDAR_INIT;
	int64_t when_ns = when_s * NS_OF_SEC;
	int r;

	(void)arg;
	daily.hour = 3;
	daily.minute = 30;
	r = weft_calendar_wait(&daily, &when_ns);
	when_s = when_ns / NS_OF_SEC;
	return r;
}

/* A machine that is slow may find more than a second missed. */
static void expect_when(int64_t wanted_s)
{
	ck_assert_int_ge(when_s, wanted_s);
	ck_assert_int_le(when_s, wanted_s + 60);
}

static const int64_t first_s = INT64_C(1800000000) / DAY * DAY;

enum { HALF_PAST_3 = 3 * HOUR + 30 * 60 };

/* In UTC, at the first of a day. */
static bool calendar_begin(const char *test)
{
	if (!machine_is_ours(test))
		return false;
	setenv("TZ", "UTC0", 1);
	clock_set(first_s);
	when_s = first_s;
	return true;
}

static void wait_begin(struct weft_scope *scope, int64_t in_s)
{
	ck_assert_int_eq(weft_go(scope, wait_daily, NULL, 0), 0);
	wait_for_arm(in_s);
}

IO_TEST(missed_times_come_as_one)
{
	if (!calendar_begin("missed_times_come_as_one"))
		return 0;
	WEFT_SCOPE(scope, NULL) {
		wait_begin(scope, HALF_PAST_3);
		clock_set(first_s + 3 * DAY);
	}
	expect_when(first_s + 3 * DAY);
	/* The next is the next of then. */
	WEFT_SCOPE(scope, NULL) {
		wait_begin(scope, HALF_PAST_3);
		clock_set(first_s + 3 * DAY + HALF_PAST_3 - 1);
	}
	expect_when(first_s + 3 * DAY + HALF_PAST_3);
	return 0;
}

IO_TEST(calendar_counts_from_a_clock_that_is_set_back)
{
	if (!calendar_begin("calendar_counts_from_a_clock_that_is_set_back"))
		return 0;
	WEFT_SCOPE(scope, NULL) {
		wait_begin(scope, HALF_PAST_3);
		/* By a little: it waits for the time that it waited for. */
		clock_set(first_s - HOUR);
		wait_for_arm(HALF_PAST_3 + HOUR);
		/* By days: for the next of then. */
		clock_set(first_s - 10 * DAY + HOUR);
		wait_for_arm(HALF_PAST_3 - HOUR);
		clock_set(first_s - 10 * DAY + HALF_PAST_3 - 1);
	}
	expect_when(first_s - 10 * DAY + HALF_PAST_3);
	return 0;
}

IO_TEST(zone_of_the_machine_counts_when_the_clock_is_set)
{
	static const char name[] =
		"zone_of_the_machine_counts_when_the_clock_is_set";

	if (!machine_is_ours(name))
		return 0;
	unsetenv("TZ");
	zone_set(0);
	clock_set(first_s);
	when_s = first_s;
	WEFT_SCOPE(scope, NULL) {
		wait_begin(scope, HALF_PAST_3);
		zone_set(2 * HOUR);
		clock_set(first_s);
		wait_for_arm(HALF_PAST_3 - 2 * HOUR);
		clock_set(first_s + HALF_PAST_3 - 2 * HOUR - 1);
	}
	expect_when(first_s + HALF_PAST_3 - 2 * HOUR);
	/* The next call counts in the zone of then. */
	zone_set(-3 * HOUR);
	WEFT_SCOPE(scope, NULL) {
		wait_begin(scope, 5 * HOUR);
		clock_set(first_s + HALF_PAST_3 + 3 * HOUR - 1);
	}
	expect_when(first_s + HALF_PAST_3 + 3 * HOUR);
	ck_assert_int_eq(unlink("/etc/localtime"), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/wall set");
	TCase *sleeps = tcase_create("sleeps");
	TCase *calendars = tcase_create("calendars");

	io_add_test(sleeps, sleep_ends_when_the_clock_is_set_behind_it);
	io_add_test(sleeps, sleep_goes_on_when_the_clock_is_set_back);
	suite_add_tcase(suite, sleeps);
	io_add_test(calendars, missed_times_come_as_one);
	io_add_test(calendars, calendar_counts_from_a_clock_that_is_set_back);
	io_add_test(calendars,
		    zone_of_the_machine_counts_when_the_clock_is_set);
	suite_add_tcase(suite, calendars);
	return io_tests_run(suite);
}
