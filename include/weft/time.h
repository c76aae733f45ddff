/* SPDX-License-Identifier: MIT */
/*
 * Time: the clock, sleeping, deadlines for a block, intervals and timers.
 */
#ifndef WEFT_TIME_H
#define WEFT_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Nanoseconds: a point in time of CLOCK_MONOTONIC, or a length.  Every call and
 * option reads the number as signed.  A negative one lies in the past: such a
 * point has passed, and such a length is over immediately.  So end_ns -
 * weft_now() is a length even after end_ns, and WEFT_MS(-1) is one.  WEFT_NEVER
 * (146 years) and all numbers above it never come, not even added to the time
 * now. */
typedef uint64_t weft_nsec;

#define WEFT_NEVER (WEFT__NUMBER(weft_nsec, 1) << 62)

/* A length of n units, for any number n; WEFT_NEVER if it is too long.  A
 * constant expression if n is one. */
#define WEFT_US(n) WEFT__NSEC(n, 1000)
#define WEFT_MS(n) WEFT__NSEC(n, 1000000)
#define WEFT_SEC(n) WEFT__NSEC(n, 1000000000)

/* In 128 bits no product overflows. */
__extension__ typedef __int128 weft__wide;
#define WEFT__NSEC_MAX (WEFT__NUMBER(weft__wide, 1) << 62)
#define WEFT__NSEC_BOUND(ns)                                    \
	WEFT__NUMBER(weft_nsec,                                 \
		     (ns) > WEFT__NSEC_MAX  ? WEFT__NSEC_MAX :  \
		     (ns) < -WEFT__NSEC_MAX ? -WEFT__NSEC_MAX : \
					      (ns))
#ifdef __cplusplus
constexpr
#endif
static inline weft_nsec weft__nsec(weft__wide weft__ns)
{
	return WEFT__NSEC_BOUND(weft__ns);
}
#ifdef __cplusplus
#define WEFT__NSEC(n, unit_ns) \
	weft__nsec(WEFT__NUMBER(weft__wide, n) * (unit_ns))
#else
/* In C a constant expression calls no function. */
#define WEFT__NSEC(n, unit_ns)                                      \
	__builtin_choose_expr(__builtin_constant_p(n),              \
		WEFT__NSEC_BOUND((weft__wide)(n) * (unit_ns)),      \
		weft__nsec((weft__wide)(n) * (unit_ns)))
#endif

/* The time now, of CLOCK_MONOTONIC.  From any thread; does not suspend. */
WEFT_API weft_nsec weft_now(void);

/* Suspends the task for at least that long, as a rule 0.1 ms longer.  A length
 * of 0 or less lets other tasks run, as weft_yield() does.  Returns 0,
 * -ECANCELED, -ETIMEDOUT, or -EPERM (not in a task). */
WEFT_API int weft_sleep(weft_nsec length_ns);

/* The same, until a point in time. */
WEFT_API int weft_sleep_until(weft_nsec deadline_ns);

/*
 * A deadline for the calls in the block: each suspending call inside that is
 * not done by then returns -ETIMEDOUT, and so does each later one in the block.
 * After the block the task goes on as before.  With a length of 0 or less the
 * deadline has passed from the start: calls that would wait fail instead.
 *
 * Blocks nest.  A call in an inner block that meets the deadline of an outer
 * block returns -ECANCELED, so that a loop that retries on -ETIMEDOUT does end.
 * Tasks started inside inherit the deadline, and get -ECANCELED from it.  The
 * block may be left at its end, or by return, goto, break or continue (the last
 * two leave only this block).
 *
 *	WEFT_WITHIN(WEFT_MS(500))
 *		n = weft_read(fd, buf, sizeof(buf));
 */
#define WEFT_WITHIN(length_ns) \
	WEFT__WITHIN(weft__deadline_after(length_ns), __COUNTER__)
#define WEFT_WITHIN_UNTIL(deadline_ns) WEFT__WITHIN(deadline_ns, __COUNTER__)

struct weft_within {
	uint64_t private_words[12];
};

/* The same as two calls, where there is no block.  The same task calls both;
 * pairs nest, and within stays in place until the end.  The deadline is a point
 * in time, such as weft_now() + WEFT_MS(500).  They do not suspend.  begin
 * returns 0, or -EPERM (not in a task): then there is nothing to end. */
WEFT_API int weft_within_begin(struct weft_within *within,
			       weft_nsec deadline_ns);
WEFT_API void weft_within_end(struct weft_within *within);

/* Whether a deadline that holds here has passed; inherited ones count.  Tells a
 * deadline from an -ETIMEDOUT of the kernel, such as of a lost TCP connection,
 * and from a cancellation.  Does not suspend; false outside a task. */
WEFT_API bool weft_deadline_passed(void);

/* The earliest deadline that holds here; WEFT_NEVER if there is none.  Does not
 * suspend. */
WEFT_API weft_nsec weft_deadline(void);

WEFT_API weft_nsec weft__deadline_after(weft_nsec length_ns);
WEFT_API struct weft_within *weft__within_enter(struct weft_within *within,
						weft_nsec deadline_ns)
	WEFT__RETURNS_NONNULL;

#define WEFT__WITHIN(deadline_ns, n)                               \
	for (struct weft_within WEFT__FRESH(within, n)             \
		     __attribute__((cleanup(weft_within_end))),    \
	     *WEFT__FRESH(within_once, n) = weft__within_enter(    \
		     &WEFT__FRESH(within, n), (deadline_ns));      \
	     WEFT__FRESH(within_once, n);                          \
	     WEFT__FRESH(within_once, n) = NULL)

/* The treatment of ticks that were missed, for example by a slow task. */
enum weft_missed {
	WEFT_MISSED_BURST, /* deliver them without a wait, then on schedule */
	WEFT_MISSED_DELAY, /* the next tick is a period after the late one */
	WEFT_MISSED_SKIP,  /* leave them out, and keep the schedule */
};

struct weft_interval {
	weft_nsec next_ns;
	weft_nsec period_ns;
	enum weft_missed missed;
	unsigned reserved;
};

/* Sets up an interval whose first tick is one period from now.  Does not
 * suspend; there is nothing to free.  Returns 0, or -EINVAL (NULL, a period of
 * 0 or less, or an unknown policy). */
WEFT_API int weft_interval_init(struct weft_interval *interval,
				weft_nsec period_ns, enum weft_missed missed);

/* Suspends until the next tick.  Returns the number of ticks that this one
 * stands for: 1, or with WEFT_MISSED_SKIP 1 + those left out; or an error of
 * weft_sleep(). */
WEFT_API int64_t weft_interval_wait(struct weft_interval *interval)
	WEFT_WARN_UNUSED;

/* A timer for one point in time that is not tied to a call: set it, do other
 * work, then wait for it or clear it.  It lives where you put it; zeroed means
 * unset.  Only one task at a time uses it. */
struct weft_timer {
	uint64_t private_words[8];
};

/* Sets the timer; a timer that is set gets the new deadline.  Does not suspend.
 * Returns 0 or -EPERM (not in a task). */
WEFT_API int weft_timer_set(struct weft_timer *timer, weft_nsec deadline_ns);

/* Clears the timer; required before its memory is freed.  Returns true if it
 * was set and its time had not come.  Does not suspend.  Inside a task, unless
 * it is unset. */
WEFT_API bool weft_timer_clear(struct weft_timer *timer);

/* Suspends until the timer's time has come; then it is unset.  Returns 0,
 * -EINVAL (it is not set), or an error of weft_sleep() (it stays set). */
WEFT_API int weft_timer_wait(struct weft_timer *timer);

WEFT_END_DECLS

#endif
