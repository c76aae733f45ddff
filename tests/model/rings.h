/* SPDX-License-Identifier: MIT */
/*
 * Rings - the kernel's side of io_uring, for the model of the driver: a ring
 * and an eventfd for each worker.  The kernel does one thing at a time, under a
 * lock of its own; its memory orders are not modelled.
 *
 *   KR1  A request ends when it is submitted; a read, when the model ends it.
 *       Then the thread that submitted it posts its completion: when that
 *       thread enters the kernel, sleeps there, or is interrupted.  Until then
 *       the ring is flagged (TASKRUN), unless that thread had work before.
 *   KR2  The same holds for a poll.  A poll that finds its eventfd written to
 *       completes.
 *   KR3  Completions for which there is no room are kept aside, and the ring is
 *       flagged, until a thread enters it to wait.  A poll then ends.
 *   KR4  A message is posted when it is submitted, or fails; a submission may
 *       be refused, with all its entries.  The model sets how often.
 *   KR5  A thread that sleeps for ever wakes when a completion is posted, and
 *       for work of its own.  Any other sleep ends immediately.
 */
#ifndef WEFT_TESTS_MODEL_RINGS_H
#define WEFT_TESTS_MODEL_RINGS_H

#include "tests/model/workers.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sys/syscall.h>

#include "io/request/shard.h"
#include "io/ring/uring/uring.h"

enum {
	ENTRIES = 2,
	COMPLETIONS = 4,
	WORKS = 4,
	EVENTFDS = 100, /* number of the first */
};

struct work {
	unsigned ring;
	uint64_t user_data;
	bool polls;
};

/* Words that only the kernel uses are under its lock. */
struct kernel_ring {
	unsigned sq_head, sq_tail, sq_flags, cq_head, cq_tail;
	unsigned sq_mask, cq_mask; /* immutable */
	struct io_uring_sqe sqes[ENTRIES];
	uint64_t cqes[COMPLETIONS * 2];
	struct weft__completion aside[COMPLETIONS];
	unsigned aside_n;
	struct model_event wakes;
	bool sleeps;
	/* The eventfd. */
	unsigned count;
	bool polled;
	/* A request that the model ends, and the thread that submitted it. */
	uint64_t reading;
	unsigned reader;
};

static struct kernel_ring kernel_rings[WORKERS_MAX];
static struct model_mutex kernel_lock;
static struct work works[MODEL_THREADS][WORKS];
static unsigned works_n[MODEL_THREADS];
static struct model_event kernel_reads; /* reads that were submitted */
/* For completions, in each ring. */
static unsigned room;
/* The number of failures that may yet come. */
static unsigned refusals, message_failures;
/* So far: submissions that were refused, and sleeps that were not for ever. */
static unsigned refused, naps;

/* ---- Completions -------------------------------------------------------- */

MODEL_UNSEEN static void kernel_wake(struct kernel_ring *ring)
{
	if (!ring->sleeps)
		return;
	ring->sleeps = false;
	model_post(&ring->wakes);
}

MODEL_UNSEEN static void kernel_put(struct kernel_ring *ring,
				    struct weft__completion completion)
{
	struct io_uring_cqe *cqe =
		(void *)&ring->cqes[ring->cq_tail % COMPLETIONS * 2];

	model_data_write((uint64_t *)cqe);
	cqe->user_data = completion.user_data;
	cqe->res = completion.result;
	cqe->flags = completion.flags;
	weft__store(&ring->cq_tail, ring->cq_tail + 1, release);
}

MODEL_UNSEEN static bool kernel_has_room(struct kernel_ring *ring)
{
	return ring->cq_tail - weft__load(&ring->cq_head, acquire) < room;
}

/* False: there was no room; with `keep`, it was kept aside. */
MODEL_UNSEEN static bool kernel_post(struct kernel_ring *ring,
				     struct weft__completion completion,
				     bool keep)
{
	if (ring->aside_n == 0 && kernel_has_room(ring)) {
		kernel_put(ring, completion);
		kernel_wake(ring);
		return true;
	}
	if (keep) {
		ring->aside[ring->aside_n++] = completion;
		weft__or(&ring->sq_flags, IORING_SQ_CQ_OVERFLOW, relaxed);
	}
	return false;
}

MODEL_UNSEEN static void kernel_post_aside(struct kernel_ring *ring)
{
	unsigned n = 0;

	if (ring->aside_n == 0)
		return;
	while (n < ring->aside_n && kernel_has_room(ring))
		kernel_put(ring, ring->aside[n++]);
	memmove(ring->aside, ring->aside + n,
		(ring->aside_n - n) * sizeof(ring->aside[0]));
	ring->aside_n -= n;
	if (ring->aside_n == 0)
		weft__and(&ring->sq_flags, ~IORING_SQ_CQ_OVERFLOW, relaxed);
}

/* ---- Work of threads ---------------------------------------------------- */

MODEL_UNSEEN static void kernel_add_work(unsigned thread, struct work work)
{
	for (unsigned i = 0; i < works_n[thread]; i++)
		if (work.polls && works[thread][i].polls &&
		    works[thread][i].ring == work.ring)
			return;
	if (works_n[thread] == 0)
		weft__or(&kernel_rings[work.ring].sq_flags, IORING_SQ_TASKRUN,
			 relaxed);
	works[thread][works_n[thread]++] = work;
	if (thread < runtime.workers_count)
		kernel_wake(&kernel_rings[thread]);
}

MODEL_UNSEEN static void kernel_end(struct work work)
{
	struct kernel_ring *ring = &kernel_rings[work.ring];
	struct weft__completion completion = { .user_data = work.user_data };

	if (!work.polls) {
		(void)kernel_post(ring, completion, true);
		return;
	}
	completion.result = POLLIN;
	completion.flags = IORING_CQE_F_MORE;
	if (kernel_post(ring, completion, false))
		return;
	ring->polled = false;
	completion.flags = 0;
	(void)kernel_post(ring, completion, true);
}

MODEL_UNSEEN static void kernel_work(unsigned thread)
{
	for (unsigned i = 0; i < works_n[thread]; i++)
		kernel_end(works[thread][i]);
	for (unsigned i = 0; i < works_n[thread]; i++) {
		unsigned *flags = &kernel_rings[works[thread][i].ring].sq_flags;

		if (*flags & IORING_SQ_TASKRUN)
			weft__and(flags, ~IORING_SQ_TASKRUN, relaxed);
	}
	works_n[thread] = 0;
}

/* ---- System calls ------------------------------------------------------- */

MODEL_UNSEEN static bool kernel_fails(unsigned *left)
{
	if (*left == 0 || model_choose(2) == 0)
		return false;
	--*left;
	return true;
}

static void kernel_poll(unsigned i, uint64_t user_data)
{
	model_assert(model_self() == i, "S3: the owner submits what completes "
					"more than once");
	model_assert(!kernel_rings[i].polled, "an eventfd is polled once");
	kernel_rings[i].polled = true;
	if (kernel_rings[i].count > 0)
		kernel_add_work(i, (struct work){ i, user_data, true });
}

static void kernel_message(struct kernel_ring *ring,
			   const struct io_uring_sqe *sqe)
{
	struct weft__completion failed = { sqe->user_data, -EOVERFLOW, 0 };

	if (kernel_fails(&message_failures))
		(void)kernel_post(ring, failed, true);
	else
		(void)kernel_post(&kernel_rings[sqe->fd],
				  (struct weft__completion){ sqe->off, 0, 0 },
				  true);
}

static void kernel_submit(unsigned i, const struct io_uring_sqe *sqe)
{
	struct kernel_ring *ring = &kernel_rings[i];

	switch (sqe->opcode) {
	case IORING_OP_MSG_RING:
		kernel_message(ring, sqe);
		break;
	case IORING_OP_POLL_ADD:
		kernel_poll(i, sqe->user_data);
		break;
	case IORING_OP_READ:
		ring->reading = sqe->user_data;
		ring->reader = model_self();
		model_post(&kernel_reads);
		break;
	default:
		(void)kernel_post(ring, (struct weft__completion){
			sqe->user_data, 0, 0 }, true);
	}
}

/* Takes the entries; -EAGAIN: none of them. */
MODEL_UNSEEN static int kernel_take(unsigned i, unsigned max)
{
	struct kernel_ring *ring = &kernel_rings[i];
	unsigned tail, head = ring->sq_head, n = 0;

	if (max == 0)
		return 0;
	if (kernel_fails(&refusals)) {
		refused++;
		return -EAGAIN;
	}
	tail = weft__load(&ring->sq_tail, acquire);
	for (; n < max && head != tail; n++)
		kernel_submit(i, &ring->sqes[head++ % ENTRIES]);
	weft__store(&ring->sq_head, head, release);
	return (int)n;
}

MODEL_UNSEEN static int kernel_sleep(unsigned i, unsigned min, bool for_ever)
{
	struct kernel_ring *ring = &kernel_rings[i];

	for (;;) {
		kernel_work(model_self());
		kernel_post_aside(ring);
		if (ring->cq_tail - weft__load(&ring->cq_head, acquire) >=
		    min)
			return 0;
		if (!for_ever) {
			naps += min > 0;
			return -ETIME;
		}
		ring->sleeps = true;
		model_unlock(&kernel_lock);
		(void)model_wait(&ring->wakes);
		model_lock(&kernel_lock);
		ring->sleeps = false;
	}
}

int io_uring_enter2(unsigned fd, unsigned to_submit, unsigned min_complete,
		    unsigned flags, sigset_t *sig, size_t sz)
{
	const struct io_uring_getevents_arg *arg = (const void *)sig;
	int r;

	(void)sz;
	model_lock(&kernel_lock);
	r = kernel_take(fd, to_submit);
	kernel_work(model_self());
	if (r == (int)to_submit && (flags & IORING_ENTER_GETEVENTS))
		r = kernel_sleep(fd, min_complete,
				 (flags & IORING_ENTER_EXT_ARG) && !arg->ts);
	model_unlock(&kernel_lock);
	return r;
}

/* The calling thread waits for the descriptor of its ring, with a limit or
 * without one.  Nothing is posted that was kept aside. */
static void kernel_await(unsigned i, bool for_ever)
{
	struct kernel_ring *ring = &kernel_rings[i];

	model_lock(&kernel_lock);
	kernel_work(model_self());
	while (ring->cq_tail == weft__load(&ring->cq_head, acquire) &&
	       !ring->aside_n && for_ever) {
		ring->sleeps = true;
		model_unlock(&kernel_lock);
		(void)model_wait(&ring->wakes);
		model_lock(&kernel_lock);
		ring->sleeps = false;
		kernel_work(model_self());
	}
	naps += !for_ever;
	model_unlock(&kernel_lock);
}

static ssize_t kernel_write(int fd, const void *p, size_t size)
{
	unsigned i = (unsigned)fd - EVENTFDS;

	(void)p;
	model_lock(&kernel_lock);
	kernel_rings[i].count++;
	if (kernel_rings[i].polled)
		kernel_add_work(i, (struct work){
			i, weft__user_data(WEFT__TAG_WAKE_FD, 0, 0), true });
	kernel_work(model_self());
	model_unlock(&kernel_lock);
	return (ssize_t)size;
}

static int kernel_yield(void)
{
	model_lock(&kernel_lock);
	kernel_work(model_self());
	model_unlock(&kernel_lock);
	return 0;
}

/* All threads are interrupted. */
static long kernel_membarrier(void)
{
	model_lock(&kernel_lock);
	for (unsigned i = 0; i < runtime.workers_count; i++)
		kernel_work(i);
	model_unlock(&kernel_lock);
	return 0;
}

/* The read of ring i ends, whichever thread submitted it. */
static void kernel_read_ends(unsigned i)
{
	struct kernel_ring *ring = &kernel_rings[i];

	model_lock(&kernel_lock);
	kernel_add_work(ring->reader,
			(struct work){ i, ring->reading, false });
	model_unlock(&kernel_lock);
}

#endif
