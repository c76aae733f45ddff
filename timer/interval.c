/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include <weft/time.h>

#include "runtime/base/assert.h"
#include "runtime/base/nsec.h"

/* A tick was missed if it is this late, or late by a whole period.  A timer and
 * a busy worker always cost a smaller delay. */
#define LATE_NS 1000000u

int weft_interval_init(struct weft_interval *interval, weft_nsec period_ns,
		       enum weft_missed missed)
{
	if (!interval || (int64_t)period_ns <= 0 ||
	    (missed != WEFT_MISSED_BURST && missed != WEFT_MISSED_DELAY &&
	     missed != WEFT_MISSED_SKIP))
		return -EINVAL;
	*interval = (struct weft_interval){
		.next_ns = weft__nsec_after(weft_now(), period_ns),
		.period_ns = period_ns,
		.missed = missed,
	};
	return 0;
}

/* Sets the next tick; returns the number of ticks that the last one stands
 * for. */
static int64_t interval_step(struct weft_interval *interval, weft_nsec now_ns)
{
	weft_nsec late_ns = now_ns - interval->next_ns;
	weft_nsec period_ns = interval->period_ns;
	uint64_t ticks = 1;

	switch (interval->missed) {
	case WEFT_MISSED_DELAY:
		if (late_ns >= LATE_NS || late_ns >= period_ns)
			interval->next_ns = now_ns;
		break;
	case WEFT_MISSED_SKIP:
		ticks += late_ns / period_ns;
		break;
	case WEFT_MISSED_BURST:
		break;
	}
	/* All ticks but the last are past, so this is less than now_ns. */
	interval->next_ns += (ticks - 1) * period_ns;
	interval->next_ns = weft__nsec_after(interval->next_ns, period_ns);
	return (int64_t)ticks;
}

int64_t weft_interval_wait(struct weft_interval *interval)
{
	int error;

	weft__assert(interval->period_ns != 0,
		     "an interval was awaited that was not initialised");
	error = weft_sleep_until(interval->next_ns);
	if (error < 0)
		return error;
	return interval_step(interval, weft_now());
}
