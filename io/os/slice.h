/* SPDX-License-Identifier: MIT */
/*
 * Slice - for how long a thread has a processor before others have their turn.
 *
 * The monitor sleeps a millisecond at a time.  Where the kernel wakes it on
 * the processor of the thread that computes (and it does: a guest's processor
 * that idles does not count as free), the one that computes keeps its slice of
 * about 3 ms, and who waits is looked at in the next clock tick, up to 4 ms
 * later.  A thread that has asked for a shorter slice than the other's does not
 * wait for that (EEVDF, Linux 6.12; sched_setattr(2) with the runtime of a
 * thread without real-time priority).  So the monitor asks for the shortest
 * there is, and gives it back before it runs tasks: all with the same slice
 * would be as before.
 *
 * On older kernels, and where it may not ask, the monitor waits for the tick:
 * nothing depends on the slice.  (A sandbox that kills for sched_setattr(2), in
 * place of refusing it, must allow it.)  The thread gets back the slice that it
 * had, as one that was asked for: a later change of the system's slice no
 * longer reaches the thread.
 */
#ifndef WEFT_IO_OS_SLICE_H
#define WEFT_IO_OS_SLICE_H

#include <stdbool.h>
#include <stdint.h>

struct weft__slice {
	bool refused;	 /* by the kernel: it is not asked again */
	bool is_short;	 /* while it is: */
	uint64_t own_ns; /* the thread's own, to be given back */
	uint64_t asked_ns;
};

/* Both of the calling thread, whose slice it is.  It takes 2 us to change it,
 * so it is made short once a millisecond at most. */
void weft__slice_shorten(struct weft__slice *slice, uint64_t now_ns);
void weft__slice_restore(struct weft__slice *slice);

#endif
