/* SPDX-License-Identifier: MIT */
/*
 * The time of day: a timerfd of CLOCK_REALTIME for each sleep, and the next
 * time of a calendar.
 *
 * The kernel moves a timer of an absolute time when the clock is set.  With
 * TFD_TIMER_CANCEL_ON_SET it also reports that, so a sleep of a calendar counts
 * again from the new time.  Only poll goes through the ring: read(2) of a
 * timerfd gives ECANCELED for a clock that was set, as weft_read() does for a
 * task that was cancelled.
 *
 * Rejected
 *   One timerfd for all sleeps: it saves descriptors that few programs lack,
 *   for a queue of its own.
 */
#include <weft/wall.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include <weft/io.h>

#include "io/request/call.h"
#include "runtime/base/own_fd.h"

#define NS_OF_SEC INT64_C(1000000000)

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 24 * HOUR_S };

int64_t weft_wall_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * NS_OF_SEC + now.tv_nsec;
}

/* ---- Sleeping ------------------------------------------------------------ */

#define LEAF __attribute__((noinline))

static LEAF int timer_open(void)
{
	return weft__fd_above_stdio(
		timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC));
}

/* Zero would disarm it. */
static LEAF int timer_arm(int fd, int64_t wall_ns)
{
	struct itimerspec at = {
		.it_value = {
			.tv_sec = (time_t)(wall_ns / NS_OF_SEC),
			.tv_nsec = (long)(wall_ns % NS_OF_SEC),
		},
	};
	int flags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;

	return timerfd_settime(fd, flags, &at, NULL) < 0 ? -errno : 0;
}

/* -ECANCELED: the clock was set.  -EAGAIN: it has not expired. */
static LEAF int timer_read(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) < 0 ? -errno : 0;
}

/* Returns 1 if the clock was set meanwhile, and 0 when the time has come. */
static int timer_wait(int fd, int64_t wall_ns)
{
	int r = timer_arm(fd, wall_ns);

	/* The clock was set since the last read: it is armed all the same. */
	while (r == 0 || r == -EAGAIN || r == -ECANCELED) {
		if (weft_wall_now() >= wall_ns)
			return 0;
		if (r == -ECANCELED)
			return 1;
		r = weft_poll(fd, POLLIN);
		if (r < 0)
			return r;
		r = timer_read(fd);
	}
	return r;
}

static int sleep_once(int64_t wall_ns)
{
	struct weft__worker *worker;
	int fd, r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	if (wall_ns <= weft_wall_now())
		return (int)weft__call_ready(worker, 0);
	fd = timer_open();
	if (fd < 0)
		return fd;
	r = timer_wait(fd, wall_ns);
	(void)weft_close(fd);
	return r;
}

int weft_sleep_until_wall(int64_t wall_ns)
{
	int r;

	do
		r = sleep_once(wall_ns);
	while (r == 1);
	return r;
}

/* ---- Calendars ----------------------------------------------------------- */

static bool is_valid(const struct weft_calendar *calendar)
{
	return calendar->size >= sizeof(*calendar) && calendar->hour >= -1 &&
	       calendar->hour < 24 && calendar->minute < 60 &&
	       calendar->minute >= (calendar->hour < 0 ? -1 : 0) &&
	       calendar->second >= 0 && calendar->second < 60 &&
	       calendar->weekdays < 1u << 7;
}

static bool has_day(const struct weft_calendar *calendar, int weekday)
{
	return !calendar->weekdays || (calendar->weekdays >> weekday & 1);
}

/* The seconds of a date and a time of day, without the zone. */
static time_t seconds_of(const struct tm *tm)
{
	struct tm utc = *tm;

	return timegm(&utc);
}

static struct tm at_time(const struct weft_calendar *calendar,
			 const struct tm *date, int dst)
{
	struct tm tm = *date;

	tm.tm_hour = calendar->hour;
	tm.tm_min = calendar->minute;
	tm.tm_sec = calendar->second;
	tm.tm_isdst = dst;
	return tm;
}

/* The time of day on the day of `day`: -1, or the time; *ret_weekday is the
 * weekday of the date. */
static time_t time_on(const struct weft_calendar *calendar,
		      const struct tm *day, int *ret_weekday)
{
	struct tm noon = *day, shown;
	time_t best = -1, wanted, t;

	noon.tm_hour = 12;
	noon.tm_min = noon.tm_sec = 0;
	noon.tm_isdst = -1;
	if (mktime(&noon) == -1)
		return -1;
	*ret_weekday = noon.tm_wday;
	shown = at_time(calendar, &noon, 0);
	wanted = seconds_of(&shown);
	/* Twice, once, or, in a gap, never. */
	for (int dst = 0; dst <= 1; dst++) {
		struct tm tm = at_time(calendar, &noon, dst);

		t = mktime(&tm);
		if (t != -1 && localtime_r(&t, &shown) &&
		    seconds_of(&shown) == wanted && (best == -1 || t < best))
			best = t;
	}
	if (best != -1)
		return best;
	/* It shows a time before the gap, or one behind it, which may be of the
	 * next day. */
	shown = at_time(calendar, &noon, -1);
	t = mktime(&shown);
	if (t != -1 && seconds_of(&shown) < wanted)
		t += wanted - seconds_of(&shown);
	return t;
}

static int next_daily(const struct weft_calendar *calendar, time_t after,
		      const struct tm *from, time_t *ret_time)
{
	/* From yesterday: its time may be in a gap that ends at midnight.  To
	 * the same weekday a week after the next: today's time may have passed,
	 * and a change of the zone may leave a day out. */
	for (int days = -1; days <= 15; days++) {
		struct tm day = *from;
		int weekday;
		time_t t;

		day.tm_mday += days;
		t = time_on(calendar, &day, &weekday);
		if (t == -1)
			return -EOVERFLOW;
		if (t <= after || !has_day(calendar, weekday))
			continue;
		*ret_time = t;
		return 0;
	}
	return -EOVERFLOW;
}

/* Steps through the minutes or hours that pass.  A zone may change by half an
 * hour. */
static int next_often(const struct weft_calendar *calendar, time_t after,
		      time_t *ret_time)
{
	bool hourly = calendar->minute >= 0;
	int step = hourly ? HOUR_S : MINUTE_S;
	int wanted = (hourly ? calendar->minute * 60 : 0) + calendar->second;
	time_t t = after;

	/* A week more, for a day that a change of the zone leaves out. */
	for (int tries = 0; tries < 15 * DAY_S / MINUTE_S; tries++) {
		struct tm tm;
		bool fits;
		int at;

		if (!localtime_r(&t, &tm))
			return -EOVERFLOW;
		at = (hourly ? tm.tm_min * 60 : 0) + tm.tm_sec;
		fits = has_day(calendar, tm.tm_wday);
		if (at == wanted && t > after && fits) {
			*ret_time = t;
			return 0;
		}
		/* Not over the end of an hour, where the zone may change. */
		t += fits && at < wanted ? wanted - at : step - at;
	}
	return -EOVERFLOW;
}

int weft_calendar_next(const struct weft_calendar *calendar, int64_t after_ns,
		       int64_t *ret_ns)
{
	/* Rounded down: times before 1970 as well. */
	time_t after = (time_t)(after_ns / NS_OF_SEC -
				(after_ns % NS_OF_SEC < 0)), next;
	struct tm tm;
	int r;

	if (!calendar || !ret_ns)
		return -EFAULT;
	if (!is_valid(calendar))
		return -EINVAL;
	tzset();
	if (!localtime_r(&after, &tm))
		return -EOVERFLOW;
	r = calendar->hour < 0 ? next_often(calendar, after, &next) :
				 next_daily(calendar, after, &tm, &next);
	if (r < 0)
		return r;
	if (next > INT64_MAX / NS_OF_SEC)
		return -EOVERFLOW;
	*ret_ns = (int64_t)next * NS_OF_SEC;
	return 0;
}

int weft_calendar_wait(const struct weft_calendar *calendar, int64_t *when_ns)
{
	if (!when_ns)
		return -EFAULT;
	for (;;) {
		int64_t now_ns = weft_wall_now(), next_ns;
		int64_t after_ns = *when_ns;
		int r;

		if (after_ns > now_ns + DAY_S * NS_OF_SEC)
			after_ns = now_ns;
		r = weft_calendar_next(calendar, after_ns, &next_ns);
		if (r == 0)
			r = sleep_once(next_ns);
		if (r < 0)
			return r;
		if (r > 0)
			continue;
		now_ns = weft_wall_now();
		*when_ns = next_ns < now_ns - NS_OF_SEC ? now_ns : next_ns;
		return 0;
	}
}
