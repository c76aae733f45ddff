/* SPDX-License-Identifier: MIT */
/*
 * Slice - the time that a thread keeps a processor while others wait for it.
 *
 * The monitor sleeps a millisecond at a time.  The kernel often wakes it on the
 * processor of the thread that computes (a guest's processor that idles does
 * not count as free).  The computing thread then keeps its slice of about 3 ms,
 * and the kernel looks at waiting threads only in the next clock tick, up to
 * 4 ms later.  A thread that has asked for a shorter slice than the other's
 * does not wait for that (EEVDF, Linux 6.12; sched_setattr(2) with the runtime
 * of a thread without real-time priority).  So the monitor asks for the
 * shortest slice, and gives it back before it runs tasks: if all threads had
 * the same slice, nothing would be gained.
 *
 * On older kernels, and where asking is not allowed, the monitor waits for the
 * tick: nothing depends on the slice.  (A sandbox that kills for
 * sched_setattr(2), instead of refusing it, must allow it.)  The slice that is
 * given back is the former one, as a slice that was asked for: a later change
 * of the system's default no longer reaches the thread.
 */
#ifndef WEFT_IO_OS_SLICE_H
#define WEFT_IO_OS_SLICE_H

#include <stdbool.h>
#include <stdint.h>

struct weft__slice {
	bool refused;	 /* by the kernel: it is not asked again */
	bool is_short;	 /* the slice is short; then: */
	uint64_t own_ns; /* the slice to give back */
	uint64_t asked_ns;
};

/* Both are for the calling thread, whose slice it is.  A change takes 2 us, so
 * the slice is made short once a millisecond at most. */
void weft__slice_shorten(struct weft__slice *slice, uint64_t now_ns);
void weft__slice_restore(struct weft__slice *slice);

#endif
