/* SPDX-License-Identifier: MIT */
/*
 * Fake ring - a carrier (io/ring/carrier.h) on virtual time, in the place of
 * io_uring and epoll: a program that is linked to fake_ring.c has no others.
 *
 *	owner: prepare	  submit                at its time
 *	[ entries ] ---------> [ what comes ] ---------> [ completions ]
 *
 * It knows three requests, which are those that the driver makes itself and one
 * for tests:
 *
 *	MESSAGE	 to another worker's ring, which has it immediately
 *	POLL	 of a worker's eventfd, again and again: each write completes it
 *	POLL	 of a fake file, once: at a time, through any worker's ring
 *
 * It reports to the run (fake_run.h) what no ring may see: that it is entered
 * without its lock, or that a worker is woken that does not park; and, from the
 * eventfds, that a worker makes tasks ready before it unlocks its ring (SH1 in
 * io/request/shard.h).
 */
#ifndef WEFT_TESTS_FAKE_FAKE_RING_H
#define WEFT_TESTS_FAKE_FAKE_RING_H

#include "io/ring/ring.h"

enum {
	FAKE_COMING_MAX = 64,
	FAKE_RINGS_MAX = 256,
};

struct fake_coming {
	uint64_t at_ns;
	uint64_t user_data;
	uint32_t ring; /* the one that it comes through */
};

/* Of a run. */
struct fake_rings {
	struct fake_ring *ring[FAKE_RINGS_MAX];
	uint32_t count;
	struct fake_coming coming[FAKE_COMING_MAX];
	unsigned coming_count;
};

/* A request that completes at a time, through the ring of a worker. */
struct weft__request fake_ring_request(uint32_t ring, uint64_t at_ns);

/* Has a worker something to take? */
bool fake_ring_completed(const struct fake_rings *rings, uint32_t index);

/* When the next request completes; UINT64_MAX: none will. */
uint64_t fake_rings_next(const struct fake_rings *rings);

/* It is that time now: posts what has come. */
void fake_rings_post(struct fake_rings *rings, uint64_t now_ns);

/* A descriptor was written to.  Returns whether that completes a poll. */
bool fake_rings_written(struct fake_rings *rings, int fd);

#endif
