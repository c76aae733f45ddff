/* SPDX-License-Identifier: MIT */
/*
 * Ring: over the kernel's io_uring.
 *
 * Flags.  COOP_TASKRUN: completions do not interrupt the owner, and
 * TASKRUN_FLAG shows when some are held back until it enters the kernel.
 * SUBMIT_ALL: a bad entry does not stop those behind it.
 *
 * DEFER_TASKRUN and SINGLE_ISSUER for a worker without helpers.  The kernel
 * then receives for some twenty connections at a time, not for all that have
 * input, and that input is still in the caches when the requests are answered.
 *
 * Rejected
 *   - DEFER_TASKRUN with several workers: no other worker can ever get the
 *     completions of a busy owner; and SINGLE_ISSUER: helpers cannot submit.
 *   - SQPOLL: a thread of the kernel spins, with stale credentials.
 */
#include "io/ring/uring/uring.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/os/mask.h"
#include "io/ring/uring/probe.h"
#include "runtime/base/assert.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"

_Static_assert(sizeof(struct weft__completion) == sizeof(struct io_uring_cqe) &&
		       offsetof(struct weft__completion, result) ==
			       offsetof(struct io_uring_cqe, res) &&
		       offsetof(struct weft__completion, flags) ==
			       offsetof(struct io_uring_cqe, flags),
	       "a completion is the kernel's");
_Static_assert(WEFT__COMPLETION_BUFFER == IORING_CQE_F_BUFFER &&
		       WEFT__COMPLETION_MORE == IORING_CQE_F_MORE &&
		       WEFT__COMPLETION_NONEMPTY ==
			       IORING_CQE_F_SOCK_NONEMPTY &&
		       WEFT__COMPLETION_BUFFER_SHIFT ==
			       (int)IORING_CQE_BUFFER_SHIFT,
	       "so are its flags");
_Static_assert(WEFT__RING_OVERFLOW == IORING_SQ_CQ_OVERFLOW &&
		       WEFT__RING_TASKRUN == IORING_SQ_TASKRUN,
	       "and a ring's");

/* Linux 6.15; liburing 2.3 does not name them. */
#ifndef IORING_FEAT_NO_IOWAIT
#define IORING_FEAT_NO_IOWAIT (1u << 17)
#endif
/* Linux 6.10, which also brought IORING_ACCEPT_POLL_FIRST. */
#ifndef IORING_FEAT_RECVSEND_BUNDLE
#define IORING_FEAT_RECVSEND_BUNDLE (1u << 14)
#endif
#ifndef IORING_ENTER_NO_IOWAIT
#define IORING_ENTER_NO_IOWAIT (1u << 7)
#endif

/* There is room for this many times as many completions as entries: a thousand
 * connections may have input at the same time.  Each completion without room
 * costs the kernel an allocation, and ends a multishot request. */
enum { COMPLETIONS_PER_ENTRY = 16, ENTRIES_MIN = 2 };

#define FEATURES_NEEDED                                          \
	(IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG |              \
	 IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_FAST_POLL |     \
	 IORING_FEAT_CQE_SKIP)

/* Flags to try, in order: if the kernel does not know some (EINVAL), the next
 * set follows.  The first set is for one thread alone. */
static const unsigned flag_sets[] = {
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
		IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL,
	IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG |
		IORING_SETUP_SUBMIT_ALL,
	IORING_SETUP_SUBMIT_ALL,
	0,
};

#ifdef WEFT_VALGRIND
/* See uring_wait(); besides, a poll may not see completions that
 * DEFER_TASKRUN defers. */
enum { POLLS_RING = 1 };
#else
enum { POLLS_RING = 0 };
#endif

enum { FLAG_SETS = sizeof(flag_sets) / sizeof(flag_sets[0]) };

/* ---- Life ------------------------------------------------------------- */

static int ring_setup(struct io_uring *uring, unsigned entries, unsigned flags)
{
	struct io_uring_params params;

	memset(&params, 0, sizeof(params));
	params.flags = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE | flags;
	params.cq_entries = entries * COMPLETIONS_PER_ENTRY;
	return io_uring_queue_init_params(entries, uring, &params);
}

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* The kernel counts two areas: the entries; the heads and tails (less than
 * HEADS_BYTES), the completions and the index array. */
size_t weft__ring_locked_bytes(unsigned entries)
{
	enum { HEADS_BYTES = 128, COMPLETIONS_MAX = 65536 };
	size_t count = ENTRIES_MIN, completions;

	while (count < entries)
		count *= 2;
	completions = count * COMPLETIONS_PER_ENTRY;
	if (completions > COMPLETIONS_MAX)
		completions = COMPLETIONS_MAX;
	return whole_pages(count * sizeof(struct io_uring_sqe)) +
	       whole_pages(HEADS_BYTES + count * sizeof(uint32_t) +
			   completions * sizeof(struct io_uring_cqe));
}

/* Checks for the newest kernel that is needed; each opcode stands for the
 * kernel that brought it.  0, -ENOSYS, or the error of the query. */
static int ring_check(struct io_uring *uring)
{
	enum { OPS = IORING_OP_SEND_ZC + 1 };
	_Alignas(struct io_uring_probe) char
		room[sizeof(struct io_uring_probe) +
		     OPS * sizeof(struct io_uring_probe_op)] = { 0 };
	struct io_uring_probe *probe = (void *)room;
	bool suffices;
	int r;

	if ((uring->features & FEATURES_NEEDED) != FEATURES_NEEDED)
		return -ENOSYS;
	r = io_uring_register_probe(uring, probe, OPS);
	if (r < 0)
		return r;
	/* SEND_ZC came with 6.0, as did SYNC_CANCEL, which has no probe. */
	suffices = io_uring_opcode_supported(probe, IORING_OP_MSG_RING) &&
		   io_uring_opcode_supported(probe, IORING_OP_SEND_ZC);
	return suffices ? 0 : -ENOSYS;
}

/* Maps each place of the index array to the entry of that number: the array
 * lets entries be submitted in any order, which is not used here. */
static void ring_fill_array(struct io_uring_sq *sq, uint32_t mask)
{
	for (uint32_t i = 0; sq->array && i <= mask; i++)
		sq->array[i] = i;
}

static int ring_refused(int error, const char **ret_reason)
{
	switch (error) {
	case -EPERM:
	case -EACCES:
		*ret_reason = "io_uring is forbidden here";
		return -ENOSYS;
	case -ENOSYS:
	case -EINVAL:
		*ret_reason = "this kernel has no io_uring that suffices";
		return -ENOSYS;
	default:
		return error;
	}
}

/* While nothing names the ring but its memory, its number may change. */
static int ring_move(struct io_uring *uring)
{
	int fd = weft__fd_above_stdio(uring->ring_fd);

	if (fd < 0) {
		/* The number is free, and not to be closed. */
		uring->ring_fd = -1;
		return fd;
	}
	uring->ring_fd = uring->enter_ring_fd = fd;
	return 0;
}

/* A filter may allow a ring, and not its use.  0, or the error of a refusal;
 * any other may end, and is met again. */
static int ring_try(struct io_uring *uring)
{
	int r = io_uring_enter2((unsigned)uring->ring_fd, 0, 0, 0, NULL,
				_NSIG / 8);

	return r == -EPERM || r == -EACCES || r == -ENOSYS || r == -EINVAL ? r :
									     0;
}

static unsigned first_flags(bool alone)
{
	if (weft__is_masked(WEFT__FEATURE_COOP_TASKRUN))
		return 2;
	return !alone || POLLS_RING ||
	       weft__is_masked(WEFT__FEATURE_DEFER_TASKRUN);
}

/* Opens the kernel's ring: 0, or its error. */
static int uring_open(struct weft__uring *own, unsigned entries, bool alone)
{
	unsigned first = first_flags(alone);
	int r = -EINVAL;

	if (entries < ENTRIES_MIN)
		entries = ENTRIES_MIN;
	for (unsigned i = first; i < FLAG_SETS && r == -EINVAL; i++)
		r = ring_setup(&own->uring, entries, flag_sets[i]);
	if (r < 0)
		return r;
	r = ring_move(&own->uring);
	if (r == 0)
		r = ring_check(&own->uring);
	if (r == 0)
		r = ring_try(&own->uring);
	/* The completions are the parent's; a child must not even see them. */
	if (r == 0)
		r = io_uring_ring_dontfork(&own->uring);
	if (r < 0)
		io_uring_queue_exit(&own->uring);
	return r;
}

/* How to enter it, and how to ask. */
static void uring_name(struct weft__uring *own, bool alone)
{
	/* With a registered ring the kernel need not count the use by this
	 * thread.  If it is refused, the thread has as many as it may have. */
	if (alone && io_uring_register_ring_fd(&own->uring) == 1)
		own->enter_flags = IORING_ENTER_REGISTERED_RING;
	own->wait_flags = own->enter_flags | IORING_ENTER_GETEVENTS |
			  IORING_ENTER_EXT_ARG;
	/* A parked worker has to count as idle: without the flag the system
	 * counts its sleep as a wait for a disk. */
	if ((own->uring.features & IORING_FEAT_NO_IOWAIT) &&
	    !weft__is_masked(WEFT__FEATURE_NO_IOWAIT))
		own->wait_flags |= IORING_ENTER_NO_IOWAIT;
	own->accept_polls =
		(own->uring.features & IORING_FEAT_RECVSEND_BUNDLE) &&
		!weft__is_masked(WEFT__FEATURE_ACCEPT_POLL_FIRST);
}

static void uring_close(struct weft__ring *ring)
{
	io_uring_queue_exit(&weft__uring(ring)->uring);
	weft__uring_detach(weft__uring(ring));
	weft__memory_free(ring->memory, ring->own,
			  sizeof(struct weft__uring));
	ring->own = NULL;
}

/* ---- Entering --------------------------------------------------------- */

/* Allows the errors that a working ring may return.  -EBADR, for one, would
 * mean that it has lost completions for want of memory.  -ENOMEM can also come
 * from a thread's first request, which is then made again. */
static int ring_answer(int r)
{
	if (r == -ENOMEM)
		return -EAGAIN;
	weft__assert(r >= 0 || r == -EINTR || r == -EAGAIN || r == -EBUSY ||
			     r == -ETIME,
		     "the kernel has given up a ring of ours");
	return r;
}

/* Submits, with a flag for the kernel if something is held back. */
static int ring_enter(struct weft__ring *ring, uint32_t count, bool turn)
{
	struct weft__uring *own = weft__uring(ring);

	return ring_answer(io_uring_enter2(
		(unsigned)own->uring.enter_ring_fd, count, 0,
		own->enter_flags | (turn ? IORING_ENTER_GETEVENTS : 0), NULL,
		_NSIG / 8));
}

static int uring_submit(struct weft__ring *ring)
{
	uint32_t count;

	/* A kernel without SUBMIT_ALL stops behind a bad entry. */
	while ((count = weft__ring_unsubmitted(ring)) > 0) {
		int r = ring_enter(ring, count, false);

		if (r < 0 && r != -EINTR)
			return r;
		if (r == 0)
			break;
	}
	return 0;
}

static int uring_turn(struct weft__ring *ring)
{
	uint32_t count;
	int r;

	if (weft__ring_held_back(ring)) { /* mutate: recheck */
		count = weft__ring_unsubmitted(ring);
		r = ring_enter(ring, count, true);
		/* Unless the kernel takes all of them, it posts nothing. */
		if (count && r != (int)count)
			(void)ring_enter(ring, 0, true);
		if (r < 0 && r != -EINTR)
			return r;
	}
	return uring_submit(ring);
}

#ifdef WEFT_VALGRIND

/* Valgrind (3.19) runs threads under one lock, and holds it through
 * io_uring_enter, so that all threads would stop; but not through ppoll. */
static int uring_wait(struct weft__ring *ring, uint64_t wait_ns)
{
	struct pollfd pollfd = { ring->fd, POLLIN, 0 };
	struct timespec timeout = {
		(time_t)(wait_ns / 1000000000u),
		(long)(wait_ns % 1000000000u),
	};
	int r = uring_turn(ring);

	if (r < 0 || weft__ring_completed(ring))
		return r;
	ppoll(&pollfd, 1, wait_ns == UINT64_MAX ? NULL : &timeout, NULL);
	return uring_turn(ring);
}

#else

static struct __kernel_timespec timespec_of(uint64_t ns)
{
	return (struct __kernel_timespec){
		.tv_sec = (long long)(ns / 1000000000u),
		.tv_nsec = (long long)(ns % 1000000000u),
	};
}

static int uring_wait(struct weft__ring *ring, uint64_t wait_ns)
{
	struct __kernel_timespec timeout = timespec_of(wait_ns);
	struct io_uring_getevents_arg arg = {
		.sigmask_sz = _NSIG / 8,
		.ts = wait_ns == UINT64_MAX ? 0 : (uint64_t)(uintptr_t)&timeout,
	};
	struct weft__uring *own = weft__uring(ring);
	int r = io_uring_enter2((unsigned)own->uring.enter_ring_fd,
				weft__ring_unsubmitted(ring), 1,
				own->wait_flags, (sigset_t *)(void *)&arg,
				sizeof(arg));

	r = ring_answer(r);
	return r == -EAGAIN || r == -EBUSY ? r : 0;
}

#endif

/* ---- Opening ------------------------------------------------------------ */

static const struct weft__carrier carrier = {
	.name = "io_uring",
	.close = uring_close,
	.prepare = weft__uring_prepare,
	.submit = uring_submit,
	.turn = uring_turn,
	.wait = uring_wait,
	.attach = weft__uring_attach,
	.rest = weft__uring_rest,
	.rouse = weft__uring_rouse,
	.cancel = weft__uring_cancel,
	.cancel_all = weft__uring_cancel_all,
	.add_buffers = weft__uring_add_buffers,
	.add_files = weft__uring_add_files,
	.set_file = weft__uring_set_file,
	.drop_files = weft__uring_drop_files,
};

/* Shows the kernel's words to ring.h. */
static void ring_share(struct weft__ring *ring, struct weft__uring *own)
{
	struct io_uring_sq *sq = &own->uring.sq;
	struct io_uring_cq *cq = &own->uring.cq;

	ring->carrier = &carrier;
	ring->own = own;
	ring->fd = own->uring.ring_fd;
	ring->head = (void *)sq->khead;
	ring->published = (void *)sq->ktail;
	ring->flags = (void *)sq->kflags;
	ring->mask = *sq->kring_mask;
	ring->reaped = (void *)cq->khead;
	ring->posted = (void *)cq->ktail;
	ring->completions = (const void *)cq->cqes;
	ring->completions_mask = *cq->kring_mask;
	ring_fill_array(sq, ring->mask);
}

int weft__ring_open(struct weft__ring *ring, unsigned entries, bool alone,
		    const struct weft_allocator *memory,
		    const char **ret_reason)
{
	struct weft__uring *own = weft__memory_zeroed(memory, sizeof(*own));
	int r;

	memset(ring, 0, sizeof(*ring));
	if (!own)
		return -ENOMEM;
	r = uring_open(own, entries, alone);
	if (r < 0) {
		weft__memory_free(memory, own, sizeof(*own));
		return ring_refused(r, ret_reason);
	}
	uring_name(own, alone);
	own->set_fd = -1;
	ring->memory = memory;
	ring->alone = alone;
	ring->reports_ends = weft__probe_reports_ends();
	ring->loses_resets = true;
	ring->batches = true;
	ring_share(ring, own);
	return 0;
}
