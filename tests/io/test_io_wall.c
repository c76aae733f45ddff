/* SPDX-License-Identifier: MIT */
/*
 * The time of day.  The clock of the machine is not set: clock_gettime(),
 * read() and the calls of timerfd are replaced where a test says so.
 */
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include "tests/support/io_kit.h"

#define NS_OF_SEC INT64_C(1000000000)

/* ---- A clock that is set ------------------------------------------------- */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
ssize_t __real_read(int fd, void *buf, size_t bytes);
ssize_t __wrap_read(int fd, void *buf, size_t bytes);
int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *old);

static weft__atomic(int64_t) fake_s; /* 0: the clock is real */
static weft__atomic(int) fake_timer = -1;
static weft__atomic(int) armed;
static weft__atomic(int64_t) armed_s;

/* relaxed: one task at a time, and the kernel orders it with the timer. */
#define LOAD(word) weft__load(&(word), relaxed)
#define STORE(word, value) weft__store(&(word), (value), relaxed)

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	int64_t s = LOAD(fake_s);

	if (clock != CLOCK_REALTIME || !s)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){ .tv_sec = s };
	return 0;
}

int __wrap_timerfd_create(int clock, int flags)
{
	int fd;

	if (clock != CLOCK_REALTIME || !LOAD(fake_s))
		return __real_timerfd_create(clock, flags);
	fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	STORE(fake_timer, fd);
	return fd;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
			   struct itimerspec *old)
{
	if (fd != LOAD(fake_timer))
		return __real_timerfd_settime(fd, flags, at, old);
	ck_assert_int_eq(flags, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
	STORE(armed_s, at->it_value.tv_sec);
	STORE(armed, LOAD(armed) + 1);
	return 0;
}

/* 2 in the eventfd: the clock was set. */
ssize_t __wrap_read(int fd, void *buf, size_t bytes)
{
	ssize_t n = __real_read(fd, buf, bytes);

	if (fd == LOAD(fake_timer) && n == 8 && *(uint64_t *)buf == 2) {
		errno = ECANCELED;
		return -1;
	}
	return n;
}

/* The timer is set for the count-th time, to that time. */
static void expect_arm(int count, int64_t to_s)
{
	wait_until(LOAD(armed) == count);
	ck_assert_int_eq(LOAD(armed_s), to_s);
}

static void clock_set(int64_t to_s, bool expired)
{
	uint64_t count = expired ? 1 : 2;

	STORE(fake_s, to_s);
	ck_assert_int_eq(write(LOAD(fake_timer), &count, 8), 8);
}

static void fake_begin(int64_t s)
{
	STORE(armed, 0);
	STORE(fake_s, s);
}

static int64_t fake_end(void)
{
	STORE(fake_s, 0);
	STORE(fake_timer, -1);
	return 0;
}

static struct weft_calendar calendar_of(int hour, int minute, unsigned weekdays)
{
	struct weft_calendar calendar = WEFT_CALENDAR_INIT;

	calendar.hour = hour;
	calendar.minute = minute;
	calendar.weekdays = weekdays;
	return calendar;
}

/* ---- Sleeps -------------------------------------------------------------- */

IO_TEST(sleep_ends_when_the_clock_shows_the_time)
{
	int64_t now_ns = weft_wall_now(), until_ns = now_ns + 5000000;

	ck_assert_int_ge(now_ns, INT64_C(1600000000) * NS_OF_SEC);
	ck_assert_int_eq(weft_sleep_until_wall(until_ns), 0);
	ck_assert_int_ge(weft_wall_now(), until_ns);
	ck_assert_int_eq(weft_sleep_until_wall(now_ns), 0);
	ck_assert_int_eq(weft_sleep_until_wall(-5), 0);
	return 0;
}

static int64_t sleep_long(void *arg)
{
	return weft_sleep_until_wall(*(int64_t *)arg);
}

static int64_t wait_long(void *arg)
{
	return weft_calendar_wait(*(struct weft_calendar **)arg,
				  &(int64_t){ weft_wall_now() });
}

/* Cancels both when each has its timer. */
static void expect_cancelled(int64_t until_ns, struct weft_calendar *calendar)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task tasks[2];
	int before = fds_open();

	WEFT_SUPERVISE(scope) {
		opts.ret_task = &tasks[0];
		ck_assert_int_eq(weft_go_opts(scope, sleep_long, &until_ns,
					      sizeof(until_ns), &opts),
				 0);
		opts.ret_task = &tasks[1];
		ck_assert_int_eq(weft_go_opts(scope, wait_long, &calendar,
					      sizeof(calendar), &opts),
				 0);
		wait_until(fds_open() >= before + 2);
		weft_scope_cancel(scope);
		for (int i = 0; i < 2; i++) {
			int64_t r = 0;

			ck_assert_int_eq(weft_join(tasks[i], &r), 0);
			ck_assert_int_eq(r, -ECANCELED);
		}
	}
}

/* io_run() looks whether the descriptors are closed. */
IO_TEST(sleep_is_ended_by_deadline_and_cancel)
{
	int64_t until_ns = weft_wall_now() + 3600 * NS_OF_SEC;
	int64_t when_ns = until_ns;
	struct weft_calendar calendar = calendar_of(0, 0, 1u << 0);

	WEFT_WITHIN(WEFT_MS(2))
		ck_assert_int_eq(weft_sleep_until_wall(until_ns), -ETIMEDOUT);
	WEFT_WITHIN(WEFT_MS(2))
		ck_assert_int_eq(weft_calendar_wait(&calendar, &when_ns),
				 -ETIMEDOUT);
	ck_assert_int_eq(when_ns, until_ns);
	expect_cancelled(until_ns, &calendar);
	return 0;
}

static int64_t sleep_until(void *arg)
{
	return weft_sleep_until_wall(*(int64_t *)arg * NS_OF_SEC);
}

IO_TEST(clock_that_is_set_forward_ends_the_sleep)
{
	int64_t until_s = 2000;

	fake_begin(1000);
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(WEFT_GO(scope, sleep_until, until_s), 0);
		expect_arm(1, 2000);
		/* Back, and not far enough: it goes on. */
		clock_set(500, false);
		expect_arm(2, 2000);
		clock_set(1999, false);
		expect_arm(3, 2000);
		clock_set(5000, false);
	}
	return fake_end();
}

static int64_t when_s;

static int64_t wait_daily(void *arg)
{
	struct weft_calendar daily = calendar_of(3, 30, 0);
	int64_t when_ns = when_s * NS_OF_SEC;
	int r;

	(void)arg;
	r = weft_calendar_wait(&daily, &when_ns);
	when_s = when_ns / NS_OF_SEC;
	return r;
}

enum { DAY = 86400, HALF_PAST_3 = 3 * 3600 + 30 * 60 };

IO_TEST(calendar_counts_again_when_the_clock_is_set)
{
	setenv("TZ", "UTC0", 1);
	fake_begin(1000);
	when_s = 1000;
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go(scope, wait_daily, NULL, 0), 0);
		expect_arm(1, HALF_PAST_3);
		/* Several days were missed: they come as one, now. */
		clock_set(5 * DAY, false);
	}
	ck_assert_int_eq(when_s, 5 * DAY);
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go(scope, wait_daily, NULL, 0), 0);
		expect_arm(2, 5 * DAY + HALF_PAST_3);
		clock_set(5 * DAY + HALF_PAST_3, true);
	}
	ck_assert_int_eq(when_s, 5 * DAY + HALF_PAST_3);
	/* Set back a little: it does not come again on that day. */
	STORE(fake_s, 5 * DAY);
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go(scope, wait_daily, NULL, 0), 0);
		expect_arm(3, 6 * DAY + HALF_PAST_3);
		/* By days: it counts from there. */
		clock_set(2 * DAY, false);
		expect_arm(4, 2 * DAY + HALF_PAST_3);
		clock_set(2 * DAY + HALF_PAST_3, true);
	}
	return fake_end();
}

/* The clock is set to where it was, which reports that as well. */
IO_TEST(zone_that_changes_counts_when_the_clock_is_set)
{
	setenv("TZ", "UTC0", 1);
	fake_begin(1000);
	when_s = 1000;
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go(scope, wait_daily, NULL, 0), 0);
		expect_arm(1, HALF_PAST_3);
		setenv("TZ", "EAST-2", 1);
		clock_set(1000, false);
		expect_arm(2, HALF_PAST_3 - 2 * 3600);
		clock_set(HALF_PAST_3 - 2 * 3600, true);
	}
	ck_assert_int_eq(when_s, HALF_PAST_3 - 2 * 3600);
	/* The next call counts in the zone of then. */
	setenv("TZ", "WEST3", 1);
	WEFT_SCOPE(scope, NULL) {
		ck_assert_int_eq(weft_go(scope, wait_daily, NULL, 0), 0);
		expect_arm(3, HALF_PAST_3 + 3 * 3600);
		clock_set(HALF_PAST_3 + 3 * 3600, true);
	}
	ck_assert_int_eq(when_s, HALF_PAST_3 + 3 * 3600);
	return fake_end();
}

/* ---- Calendars ----------------------------------------------------------- */

static int64_t at_utc(int year, int month, int day, int hour, int minute)
{
	struct tm tm = {
		.tm_year = year - 1900,
		.tm_mon = month - 1,
		.tm_mday = day,
		.tm_hour = hour,
		.tm_min = minute,
	};

	return timegm(&tm);
}

static int64_t next_s(int hour, int minute, unsigned weekdays, int64_t after_s)
{
	struct weft_calendar calendar = calendar_of(hour, minute, weekdays);
	int64_t next_ns = 0;

	ck_assert_int_eq(weft_calendar_next(&calendar, after_s * NS_OF_SEC,
					    &next_ns),
			 0);
	return next_ns / NS_OF_SEC;
}

/* Central Europe, as a rule in TZ: no table of zones is needed. */
static const char europe[] = "CET-1CEST,M3.5.0,M10.5.0/3";

START_TEST(daily_time_follows_the_local_clock)
{
	setenv("TZ", europe, 1);
	/* Winter: 3:30 is 2:30 UTC. */
	ck_assert_int_eq(next_s(3, 30, 0, at_utc(2026, 1, 10, 0, 0)),
			 at_utc(2026, 1, 10, 2, 30));
	ck_assert_int_eq(next_s(3, 30, 0, at_utc(2026, 1, 10, 2, 30)),
			 at_utc(2026, 1, 11, 2, 30));
	/* Over the change to summer time, on March 29: 1:30 UTC. */
	ck_assert_int_eq(next_s(3, 30, 0, at_utc(2026, 3, 28, 2, 30)),
			 at_utc(2026, 3, 29, 1, 30));
	/* The end of a month and of a year. */
	ck_assert_int_eq(next_s(0, 0, 0, at_utc(2025, 12, 31, 12, 0)),
			 at_utc(2025, 12, 31, 23, 0));
}
END_TEST

START_TEST(time_in_the_gap_comes_later_by_the_gap)
{
	setenv("TZ", europe, 1);
	/* 2:30 on March 29 is 3:30 in summer time: 1:30 UTC. */
	ck_assert_int_eq(next_s(2, 30, 0, at_utc(2026, 3, 28, 12, 0)),
			 at_utc(2026, 3, 29, 1, 30));
	ck_assert_int_eq(next_s(2, 30, 0, at_utc(2026, 3, 29, 1, 30)),
			 at_utc(2026, 3, 30, 0, 30));
}
END_TEST

START_TEST(time_that_comes_twice_counts_once)
{
	setenv("TZ", europe, 1);
	/* 2:30 on October 25: 0:30 UTC, and again 1:30 UTC. */
	ck_assert_int_eq(next_s(2, 30, 0, at_utc(2026, 10, 24, 12, 0)),
			 at_utc(2026, 10, 25, 0, 30));
	ck_assert_int_eq(next_s(2, 30, 0, at_utc(2026, 10, 25, 0, 30)),
			 at_utc(2026, 10, 26, 1, 30));
	ck_assert_int_eq(next_s(2, 30, 0, at_utc(2026, 10, 25, 1, 0)),
			 at_utc(2026, 10, 26, 1, 30));
}
END_TEST

START_TEST(hourly_time_comes_in_each_hour_that_passes)
{
	int64_t t = at_utc(2026, 10, 24, 20, 0);

	setenv("TZ", europe, 1);
	for (int i = 0; i < 12; i++, t += 3600)
		ck_assert_int_eq(next_s(-1, 15, 0, t), t + 15 * 60);
	/* Zones of half an hour, and a change by one. */
	setenv("TZ", "IST-5:30", 1);
	t = at_utc(2026, 1, 1, 0, 0);
	ck_assert_int_eq(next_s(-1, 15, 0, t), t + 45 * 60);
	setenv("TZ", "LHST-10:30LHDT-11,M10.1.0,M4.1.0", 1);
	t = at_utc(2026, 4, 4, 14, 50); /* 1:50; 15:00 UTC is 1:30 */
	ck_assert_int_eq(next_s(-1, 45, 0, t), at_utc(2026, 4, 4, 15, 15));
	ck_assert_int_eq(next_s(-1, -1, 0, t), t + 60);
}
END_TEST

START_TEST(weekdays_are_those_of_the_local_date)
{
	enum { MONDAY = 1 << 1, FRIDAY = 1 << 5 };

	setenv("TZ", europe, 1);
	/* January 9, 2026 is a Friday.  0:30 on it is Thursday in UTC. */
	ck_assert_int_eq(next_s(0, 30, FRIDAY, at_utc(2026, 1, 6, 0, 0)),
			 at_utc(2026, 1, 8, 23, 30));
	ck_assert_int_eq(next_s(0, 30, MONDAY | FRIDAY,
				at_utc(2026, 1, 8, 23, 30)),
			 at_utc(2026, 1, 11, 23, 30));
	ck_assert_int_eq(next_s(-1, 0, FRIDAY, at_utc(2026, 1, 9, 23, 30)),
			 at_utc(2026, 1, 15, 23, 0));
}
END_TEST

/* The nights of Greenland: on March 29, 2025, after 22:59:59 comes midnight. */
START_TEST(time_in_a_gap_before_midnight_comes_on_the_next_day)
{
	enum { SATURDAY = 1 << 6 };
	unsigned weekdays[] = { 0, SATURDAY };

	setenv("TZ", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1);
	for (int i = 0; i < 2; i++) {
		/* 23:30 is 0:30 on the 30th: 1:30 UTC. */
		ck_assert_int_eq(next_s(23, 30, weekdays[i],
					at_utc(2025, 3, 29, 12, 0)),
				 at_utc(2025, 3, 30, 1, 30));
		/* From 0:10 on. */
		ck_assert_int_eq(next_s(23, 30, weekdays[i],
					at_utc(2025, 3, 30, 1, 10)),
				 at_utc(2025, 3, 30, 1, 30));
	}
	ck_assert_int_eq(next_s(23, 30, 0, at_utc(2025, 3, 30, 1, 30)),
			 at_utc(2025, 3, 31, 0, 30));
	ck_assert_int_eq(next_s(0, 0, 0, at_utc(2025, 3, 29, 12, 0)),
			 at_utc(2025, 3, 30, 1, 0));
	ck_assert_int_eq(next_s(22, 59, 0, at_utc(2025, 3, 29, 12, 0)),
			 at_utc(2025, 3, 30, 0, 59));
	/* Midnight itself is in the gap: after 23:59:59 comes 1:00. */
	setenv("TZ", "<-04>4<-03>,M9.1.6/24,M4.1.6/24", 1);
	ck_assert_int_eq(next_s(0, 30, 0, at_utc(2025, 9, 6, 12, 0)),
			 at_utc(2025, 9, 7, 4, 30));
	ck_assert_int_eq(next_s(0, 30, 0, at_utc(2025, 9, 7, 4, 30)),
			 at_utc(2025, 9, 8, 3, 30));
}
END_TEST

START_TEST(second_of_each_minute_may_have_a_weekday)
{
	struct weft_calendar calendar = WEFT_CALENDAR_INIT;
	int64_t after_s = at_utc(2026, 10, 27, 0, 0), next_ns = 0;

	setenv("TZ", "UTC0", 1);
	calendar.second = 30;
	calendar.weekdays = 1u << 1;
	/* October 26, 2026 is a Monday. */
	for (int day = 0; day < 6; day++, after_s += DAY) {
		ck_assert_int_eq(weft_calendar_next(&calendar,
						    after_s * NS_OF_SEC,
						    &next_ns),
				 0);
		ck_assert_int_eq(next_ns / NS_OF_SEC,
				 at_utc(2026, 11, 2, 0, 0) + 30);
	}
}
END_TEST

START_TEST(mistakes_are_refused)
{
	static const int wrong[][3] = {
		{ 24, 0, 0 }, { -2, 0, 0 }, { 0, 60, 0 },
		{ 0, -1, 0 }, { 0, 0, 60 }, { 0, 0, -1 },
	};
	struct weft_calendar calendar = { 0 };
	int64_t ns = 0;

	ck_assert_int_eq(weft_calendar_next(&calendar, 0, &ns), -EINVAL);
	for (int i = 0; i < 6; i++) {
		calendar = calendar_of(wrong[i][0], wrong[i][1], 0);
		calendar.second = wrong[i][2];
		ck_assert_int_eq(weft_calendar_next(&calendar, 0, &ns),
				 -EINVAL);
	}
	calendar = (struct weft_calendar)WEFT_CALENDAR_INIT;
	ck_assert_int_eq(weft_calendar_next(&calendar, INT64_MAX, &ns),
			 -EOVERFLOW);
	calendar.weekdays = 1u << 7;
	ck_assert_int_eq(weft_calendar_next(&calendar, 0, &ns), -EINVAL);
	ck_assert_int_eq(weft_calendar_next(NULL, 0, &ns), -EFAULT);
	ck_assert_int_eq(weft_calendar_next(&calendar, 0, NULL), -EFAULT);
	ck_assert_int_eq(weft_calendar_wait(&calendar, NULL), -EFAULT);
	ck_assert_int_eq(weft_sleep_until_wall(0), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/wall");
	TCase *sleeps = tcase_create("sleeps");
	TCase *calendars = tcase_create("calendars");

	io_add_test(sleeps, sleep_ends_when_the_clock_shows_the_time);
	io_add_test(sleeps, sleep_is_ended_by_deadline_and_cancel);
	io_add_test(sleeps, clock_that_is_set_forward_ends_the_sleep);
	io_add_test(sleeps, calendar_counts_again_when_the_clock_is_set);
	io_add_test(sleeps, zone_that_changes_counts_when_the_clock_is_set);
	suite_add_tcase(suite, sleeps);
	tcase_add_test(calendars, daily_time_follows_the_local_clock);
	tcase_add_test(calendars, time_in_the_gap_comes_later_by_the_gap);
	tcase_add_test(calendars, time_that_comes_twice_counts_once);
	tcase_add_test(calendars, hourly_time_comes_in_each_hour_that_passes);
	tcase_add_test(calendars, weekdays_are_those_of_the_local_date);
	tcase_add_test(calendars,
		       time_in_a_gap_before_midnight_comes_on_the_next_day);
	tcase_add_test(calendars, second_of_each_minute_may_have_a_weekday);
	tcase_add_test(calendars, mistakes_are_refused);
	suite_add_tcase(suite, calendars);
	return io_tests_run(suite);
}
