/* SPDX-License-Identifier: MIT */
/*
 * Time: the clock, sleeping, intervals, and deadlines that hold for a block.
 */
#ifndef WEFT_TIME_H
#define WEFT_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* Nanoseconds: a point of CLOCK_MONOTONIC, or a length. */
typedef uint64_t weft_nsec;

#define WEFT_US(n) ((weft_nsec)(n)*1000u)
#define WEFT_MS(n) ((weft_nsec)(n)*1000000u)
#define WEFT_SEC(n) ((weft_nsec)(n)*1000000000u)
#define WEFT_NEVER UINT64_MAX

/* Now, by CLOCK_MONOTONIC.  From any thread; does not suspend. */
WEFT_API weft_nsec weft_now(void);

/* Suspends the task for at least that long (and as a rule 0.1 ms longer).  0
 * lets others run, as weft_yield() does.  0, -ECANCELED, -ETIMEDOUT, -EPERM. */
WEFT_API int weft_sleep(weft_nsec length_ns);

/* The same, until a point in time. */
WEFT_API int weft_sleep_until(weft_nsec deadline_ns);

/*
 * A deadline for what stands in the block: each suspending call inside that is
 * not done by then returns -ETIMEDOUT, and so do those that follow it there.
 * Behind the block the task goes on as before.  A length of 0 has passed at
 * once: what would wait, does not.
 *
 * Blocks nest; a call inside an inner block that meets the deadline of an outer
 * one returns -ECANCELED, so that a loop which retries on -ETIMEDOUT cannot
 * spin.  Tasks started inside inherit the deadline (and see -ECANCELED).  Leave
 * by falling through, return, goto, or break and continue (which leave only
 * this block).
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

/* The same as two calls, for what is no block: begin and end, by the same task,
 * nested.  A deadline is a point in time: weft_now() + WEFT_MS(500).  0, or
 * -EPERM outside of a task; then there is nothing to end. */
WEFT_API int weft_within_begin(struct weft_within *within,
			       weft_nsec deadline_ns);
WEFT_API void weft_within_end(struct weft_within *within);

/* Whether a deadline that holds here, an inherited one too, has passed: tells
 * -ETIMEDOUT from the kernel's own, as of a lost TCP connection, and -ECANCELED
 * from a cancellation.  False outside a task. */
WEFT_API bool weft_deadline_passed(void);

/* The deadline that holds here, the earliest of all blocks; or WEFT_NEVER. */
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

/* What an interval does with ticks that were missed. */
enum weft_missed {
	WEFT_MISSED_BURST, /* deliver them at once, then the usual beat */
	WEFT_MISSED_DELAY, /* one period from the late tick on */
	WEFT_MISSED_SKIP,  /* leave them out, keep the original beat */
};

struct weft_interval {
	weft_nsec next_ns;
	weft_nsec period_ns;
	enum weft_missed missed;
	unsigned reserved;
};

/* An interval whose first tick is one period from now.  0, or -EINVAL (period 0
 * or unknown policy).  Does not suspend, holds no resource. */
WEFT_API int weft_interval_init(struct weft_interval *interval,
				weft_nsec period_ns, enum weft_missed missed);

/* Suspends until the next tick.  The number of ticks this one stands for (1, or
 * with WEFT_MISSED_SKIP 1 + those left out), or as weft_sleep(). */
WEFT_API int64_t weft_interval_wait(struct weft_interval *interval)
	WEFT_WARN_UNUSED;

/*
 * A one-shot timer that is not tied to a call: set it, go on, wait for it or
 * clear it.  Lives where you put it; zeroed is unset.  Used by one task at a
 * time; set, clear and wait inside a task.
 */
struct weft_timer {
	uint64_t private_words[8];
};

/* Sets it, or sets it anew.  Does not suspend.  0 or -EPERM. */
WEFT_API int weft_timer_set(struct weft_timer *timer, weft_nsec deadline_ns);

/* Clears it.  True if it was set and had not gone off.  Must be done before its
 * memory goes.  Does not suspend. */
WEFT_API bool weft_timer_clear(struct weft_timer *timer);

/* Suspends until it goes off.  0, -EINVAL if it is not set, or as weft_sleep()
 * (then it stays set). */
WEFT_API int weft_timer_wait(struct weft_timer *timer);

WEFT_END_DECLS

#endif
