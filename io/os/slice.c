/* SPDX-License-Identifier: MIT */
#include "io/os/slice.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORTEST_NS 100000u /* that the kernel grants */
#define AGAIN_NS 1000000u

/* The kernel's struct sched_attr, in its first version.  (Its own header cannot
 * be included beside <sched.h>, and glibc has none before 2.41.) */
struct attr {
	uint32_t bytes, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

/* 0; or -EAGAIN: not possible with the thread's present policy; or -ENOTSUP. */
static int slice_get(struct attr *attr)
{
	if (syscall(SYS_sched_getattr, 0, attr, sizeof(*attr), 0) < 0)
		return -ENOTSUP;
	if (attr->policy != SCHED_OTHER && attr->policy != SCHED_BATCH)
		return -EAGAIN;
	return attr->runtime_ns ? 0 : -ENOTSUP;
}

/* All other attributes stay as they are now. */
static bool slice_set(struct attr *attr, uint64_t slice_ns)
{
	attr->runtime_ns = slice_ns;
	return syscall(SYS_sched_setattr, 0, attr, 0) == 0;
}

void weft__slice_shorten(struct weft__slice *slice, uint64_t now_ns)
{
	struct attr attr = { 0 };
	int r;

	if (slice->is_short || slice->refused ||
	    now_ns - slice->asked_ns < AGAIN_NS)
		return;
	slice->asked_ns = now_ns;
	r = slice_get(&attr);
	if (r == 0) {
		slice->own_ns = attr.runtime_ns;
		slice->is_short = slice_set(&attr, SHORTEST_NS);
	}
	slice->refused = r != -EAGAIN && !slice->is_short;
}

void weft__slice_restore(struct weft__slice *slice)
{
	struct attr attr = { 0 };

	/* The kernel keeps the slice while the thread has another policy, so
	 * the slice is still to be given back. */
	if (!slice->is_short || slice_get(&attr) < 0)
		return;
	slice->is_short = false;
	/* If the program has changed the slice meanwhile, it stays as it is. */
	if (attr.runtime_ns == SHORTEST_NS)
		slice->refused = !slice_set(&attr, slice->own_ns);
}
