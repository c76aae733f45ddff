/* SPDX-License-Identifier: MIT */
/*
 * The time of day: nanoseconds since 1970 UTC (CLOCK_REALTIME), which may be
 * set, and goes on while the machine is suspended.
 *
 *	struct weft_calendar nightly = WEFT_CALENDAR_INIT;
 *	int64_t when_ns = weft_wall_now();
 *
 *	nightly.hour = 3;
 *	nightly.minute = 30;
 *	while (weft_calendar_wait(&nightly, &when_ns) == 0)
 *		...
 *
 * Everything else in weft uses weft_nsec, of CLOCK_MONOTONIC: see weft/time.h.
 */
#ifndef WEFT_WALL_H
#define WEFT_WALL_H

#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Does not suspend; from any thread. */
WEFT_API int64_t weft_wall_now(void);

/* Suspends until the clock shows that time or a later one, also if it is set
 * meanwhile; after the machine was suspended, immediately when it goes on.
 * Returns 0, -ECANCELED, -ETIMEDOUT, -EPERM, -EMFILE, -ENFILE, -ENOMEM. */
WEFT_API int weft_sleep_until_wall(int64_t wall_ns) WEFT_WARN_UNUSED;

/*
 * Times that come again, in the local time of the process (TZ).
 *
 *	hour 3, minute 30	every day at 3:30
 *	hour -1, minute 30	every hour at :30
 *	hour -1, minute -1	every minute
 *
 * Where daylight saving begins, a time of day that the clocks leave out comes
 * later, by as much as they are put forward: 2:30 is 3:30 on that day.  Where
 * it ends, a time of day that comes twice counts the first time.  An hourly
 * time comes in each hour that passes.  Another zone counts from the next call
 * on; while a call waits, from when the clock is set.
 */
struct weft_calendar {
	size_t size;
	int hour;	   /* 0 to 23; -1: every hour */
	int minute;	   /* 0 to 59; -1: every minute, with hour -1 */
	int second;	   /* 0 to 59 */
	unsigned weekdays; /* 1 << 0 for Sunday, to 1 << 6; 0: all */
};

/* Every minute. */
#define WEFT_CALENDAR_INIT \
	{ sizeof(struct weft_calendar), -1, -1, 0, 0 }

/* The first time after that one.  Does not suspend; from any thread.  Returns
 * 0, -EINVAL (a field is out of range, or all zero), -EFAULT, or -EOVERFLOW
 * (there is no such time). */
WEFT_API int weft_calendar_next(const struct weft_calendar *calendar,
				int64_t after_ns,
				int64_t *ret_ns) WEFT_WARN_UNUSED;

/*
 * Sleeps until the first time after *when_ns, and stores it there, for the next
 * call.  If that time has passed already, because the caller was busy, the
 * clock was set or the machine suspended, the call returns immediately, and
 * stores the time now: several times that were missed come as one.  If the
 * clock is set back, a time that has come does not come again; unless *when_ns
 * is more than a day ahead of the clock, which then counts from now.
 *
 * Suspends.  Returns 0, or an error of weft_calendar_next() or
 * weft_sleep_until_wall(); *when_ns is unchanged then.
 */
WEFT_API int weft_calendar_wait(const struct weft_calendar *calendar,
				int64_t *when_ns) WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
