/* SPDX-License-Identifier: MIT */
/*
 * Shard: the owner's and the helpers' way into a ring, under its lock; the
 * model and the invariants are in shard.h.
 *
 * Each pass takes the lock, enters the ring, copies a batch of completions out,
 * drops the lock, and then makes tasks ready.  If other threads were refused
 * the lock meanwhile, there is another pass (LOCK2 in trylock.h).
 */
#include "io/request/shard.h"

#include <errno.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "io/request/upcalls.h"
#include "runtime/base/barrier.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"

enum {
	LOOKS = 200,   /* at a lock that helpers hold, before a yield */
	SETTLE = 2000, /* looks at a ring whose owner was interrupted */
};

/* ---- Life ------------------------------------------------------------- */

static int ring_open(struct weft_runtime *runtime, unsigned entries, bool soft,
		     struct weft__ring *ring, const char **ret_reason)
{
	bool alone = runtime->workers_count == 1 && runtime->caller_works;

	return soft ? weft__ring_open_soft(ring, entries, alone, runtime) :
		      weft__ring_open(ring, entries, alone, runtime->memory,
				      ret_reason);
}

int weft__shard_open(struct weft_runtime *runtime, unsigned entries, bool soft,
		     struct weft__shard **ret_shard, const char **ret_reason)
{
	const struct weft_allocator *memory = runtime->memory;
	struct weft__shard *shard;
	int r;

	shard = weft__memory_apart(memory, sizeof(*shard));
	if (!shard)
		return -ENOMEM;
	shard->schedstat.fd = -1;
	shard->timer_fd = -1;
	shard->outs.memory = memory;
	r = ring_open(runtime, entries, soft, &shard->ring, ret_reason);
	if (r < 0) {
		weft__memory_apart_free(memory, shard, sizeof(*shard));
		return r;
	}
	shard->wake_fd =
		weft__fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (shard->wake_fd < 0) {
		r = shard->wake_fd;
		weft__ring_close(&shard->ring);
		weft__memory_apart_free(memory, shard, sizeof(*shard));
		return r;
	}
	*ret_shard = shard;
	return 0;
}

static void pools_close(struct weft__shard *shard)
{
	for (int i = 0; i < WEFT__POOLS; i++)
		weft__pool_close(&shard->pools[i], &shard->ring);
}

void weft__shard_close(struct weft__shard *shard)
{
	/* Cancels the requests of streams that were not closed. */
	weft__ring_cancel_all(&shard->ring);
	weft__fixed_files_close(&shard->files, &shard->ring);
	weft__ring_close(&shard->ring);
	pools_close(shard);
	weft__send_buffers_close(&shard->outs);
	close(shard->wake_fd);
	if (shard->timer_fd >= 0)
		close(shard->timer_fd);
	weft__schedstat_close(&shard->schedstat);
	weft__memory_apart_free(shard->ring.memory, shard, sizeof(*shard));
}

/* ---- The lock --------------------------------------------------------- */

void weft__shard_lock(struct weft__shard *shard)
{
	while (!weft__trylock_take(&shard->lock, LOOKS))
		sched_yield();
}

/* Prefetches the stream that a completion names. */
static void stream_prefetch(const struct weft__completion *completion)
{
	uintptr_t at = (uintptr_t)(completion->user_data &
				   (((uint64_t)1 << 60) - 1));

	__builtin_prefetch((void *)at, 1);
	__builtin_prefetch((void *)(at + WEFT__LINE_BYTES), 1);
}

unsigned weft__shard_take(struct weft__worker *worker,
			  struct weft__shard *shard)
{
	struct weft__completion *batch = weft__shard(worker)->batch;
	uint32_t room = weft__harvest_room(worker);
	unsigned count = weft__ring_reap(
		&shard->ring, batch,
		room < WEFT__BATCH_MAX ? room : WEFT__BATCH_MAX);

	for (unsigned i = 0; i < count; i++)
		if (weft__tag_of(batch[i].user_data) == WEFT__TAG_STREAM)
			stream_prefetch(&batch[i]);
	for (unsigned i = 0; i < count; i++) {
		enum weft__tag tag = weft__tag_of(batch[i].user_data);

		if (tag == WEFT__TAG_STREAM)
			/* mutate: wake */
			batch[i] = weft__stream_wake(
				weft__stream_complete(worker, &batch[i]));
		else if (tag == WEFT__TAG_WAKE_FD &&
			 !(batch[i].flags &
			   WEFT__COMPLETION_MORE)) /* mutate: recheck=true */
			shard->wake_armed = false; /* mutate: wake */
	}
	return count;
}

/* Enters the ring, and takes its completions; once more if other threads were
 * refused the lock meanwhile. */
static inline unsigned shard_go(struct weft__worker *worker,
				struct weft__shard *shard,
				void (*enter)(struct weft__shard *))
{
	unsigned count, made_ready = 0;
	bool again;

	do {
		if (!weft__trylock_try(&shard->lock)) /* mutate: recheck */
			break;
		enter(shard);
		count = weft__shard_take(worker, shard);
		again = weft__trylock_drop(&shard->lock);
		made_ready += weft__complete(worker, weft__shard(worker)->batch,
					     count);
	} while (again); /* mutate: retry */
	return made_ready;
}

static void enter_own(struct weft__shard *shard)
{
	/* Entries that the kernel refuses now stay for the next time. */
	weft__ring_turn(&shard->ring); /* mutate: wake */
}

unsigned weft__shard_serve(struct weft__worker *worker,
			   struct weft__shard *shard)
{
	return shard_go(worker, shard, enter_own);
}

/* Interrupts all running threads of the process.  On its way back the owner's
 * thread does the work that the kernel holds back for it.  Entering its ring
 * from this thread would not do that work. */
static void shard_interrupt(struct weft__shard *shard)
{
	if (!weft__heavy_barrier())
		return;
	for (int i = 0;
	     i < SETTLE && weft__ring_awaits_thread(&shard->ring); i++)
		weft__spin_hint();
}

static void enter_late(struct weft__shard *shard)
{
	/* Also posts completions for which there was no room before. */
	weft__ring_turn(&shard->ring); /* mutate: wake */
	if (weft__ring_awaits_thread(&shard->ring)) /* mutate: recheck */
		shard_interrupt(shard);
}

unsigned weft__shard_help(struct weft__worker *worker,
			  struct weft__shard *shard)
{
	return shard_go(worker, shard, enter_late);
}

void weft__shard_flush(struct weft__shard *shard)
{
	if (!weft__trylock_try(&shard->lock)) /* mutate: recheck */
		return;
	weft__ring_submit(&shard->ring); /* mutate: wake */
	/* A worker that was refused the lock wanted to help with completions
	 * that the owner looks at in its next tick.  If that tick is late, it
	 * helps then. */
	weft__trylock_drop(&shard->lock);
}

void weft__shard_relieve(struct weft__shard *shard)
{
	if (weft__ring_unsubmitted(&shard->ring) >= WEFT__TICK_BUDGET)
		weft__shard_flush(shard);
}

int weft__shard_cancel(struct weft__shard *shard, uint64_t user_data)
{
	bool again;

	/* Only a request that was submitted can be found.  A holder of the lock
	 * is about to submit; if that was too late the caller tries again. */
	do {
		if (!weft__trylock_try(&shard->lock))
			break;
		weft__ring_submit(&shard->ring);
		again = weft__trylock_drop(&shard->lock);
	} while (again);
	return weft__ring_cancel(&shard->ring, user_data);
}

/* False: the kernel takes no more entries now. */
static bool shard_make_room(struct weft__shard *shard)
{
	if (!weft__ring_has_room(&shard->ring))
		weft__ring_submit(&shard->ring);
	return weft__ring_has_room(&shard->ring);
}

bool weft__shard_submit(struct weft__shard *shard,
			const struct weft__request *request, uint64_t user_data)
{
	if (!shard_make_room(shard))
		return false;
	weft__ring_prepare(&shard->ring, request, user_data);
	weft__ring_publish(&shard->ring);
	if (shard->ring.alone)
		return true;
	weft__ring_submit(&shard->ring);
	return !weft__ring_withdraw(&shard->ring); /* mutate: recheck=true */
}
