/* SPDX-License-Identifier: MIT */
/*
 * Shards - opens the rings of a runtime where little memory may be locked.
 *
 * From Linux 6.13 the kernel counts a ring's memory towards RLIMIT_MEMLOCK,
 * unless the thread has CAP_IPC_LOCK.  The limit holds for all processes of the
 * user, and its use cannot be read.  So the rings are opened as they were asked
 * for.  If that fails, all of them get fewer entries: first as many as half of
 * the limit allows, since the pools of buffers for streams are counted too;
 * then half as many, and so on down to WEFT__RING_ENTRIES_LEAST, with which a
 * ring takes two pages.
 *
 * The kernel frees the memory of a ring some 20 ms after the ring was closed,
 * or refused.  So there is a pause before each further try, and a runtime that
 * follows another may have to wait, for 2.5 s in all.
 *
 * Rejected
 *   - a ring that several workers share: each worker sleeps in its own, and
 *     enters it without a lock that others hold for long;
 *   - fewer entries for the last workers alone: they would be slower than the
 *     others for no reason that a program could see.
 */
#include "io/shards.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>

#include "io/request/engine.h"
#include "io/request/shard.h"
#include "runtime/sched/runtime.h"

/* The pauses before further tries; each is twice the one before it. */
enum { PAUSE_MIN_MS = 20, PAUSE_MAX_MS = 1280 };

void weft__shards_close(struct weft_runtime *runtime)
{
	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__worker *worker = runtime->workers[i];

		if (weft__shard(worker))
			weft__shard_close(weft__shard(worker));
		worker->shard = NULL;
	}
}

/* Opens all, or none; *ret_got is how many could be opened. */
static int shards_try(struct weft_runtime *runtime, unsigned entries, bool soft,
		      const char **ret_reason, uint32_t *ret_got)
{
	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__shard *shard;
		int r = weft__shard_open(runtime, entries, soft, &shard,
					 ret_reason);

		*ret_got = i;
		if (r < 0) {
			weft__shards_close(runtime);
			return r;
		}
		/* A single worker has no use for it. */
		if (runtime->workers_count > 1)
			weft__schedstat_open(&shard->schedstat);
		runtime->workers[i]->shard = shard;
	}
	return 0;
}

/* ---- Locked memory ------------------------------------------------------- */

/* RLIM_INFINITY: no limit. */
static rlim_t locked_max(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_MEMLOCK, &limit) < 0 ? RLIM_INFINITY :
						       limit.rlim_cur;
}

static bool fits(const struct weft_runtime *runtime, unsigned entries,
		 rlim_t bytes)
{
	return weft__ring_locked_bytes(entries) * runtime->workers_count <=
	       bytes;
}

/* Half of the entries, if that takes less memory. */
static bool halve(unsigned *entries)
{
	if (*entries / 2 < WEFT__RING_ENTRIES_LEAST)
		return false;
	*entries /= 2;
	return true;
}

static unsigned long long kib(unsigned long long bytes)
{
	return bytes >> 10;
}

/* The rings were refused, with the least entries that were tried. */
static void report_refusal(const struct weft_runtime *runtime, unsigned entries,
			   uint32_t got)
{
	size_t each = weft__ring_locked_bytes(entries);

	if (locked_max() == RLIM_INFINITY)
		return;
	fprintf(stderr,
		"weft: the rings of %u worker%s need %llu KiB of locked memory "
		"at least, and got %llu KiB; RLIMIT_MEMLOCK allows this user "
		"%llu KiB in all\n",
		runtime->workers_count,
		runtime->workers_count == 1 ? "" : "s",
		kib(each * runtime->workers_count),
		kib(each * got), kib(locked_max()));
}

static int urings_open(struct weft_runtime *runtime, unsigned entries,
		       const char **ret_reason)
{
	uint32_t got;
	int r = shards_try(runtime, entries, false, ret_reason, &got);
	bool hopeless;

	if (r != -ENOMEM)
		return r;
	while (!fits(runtime, entries, locked_max() / 2) && halve(&entries))
		;
	hopeless = !fits(runtime, entries, locked_max());
	for (int ms = PAUSE_MIN_MS; r == -ENOMEM && ms <= PAUSE_MAX_MS;
	     ms *= 2) {
		if (ms > PAUSE_MIN_MS && !hopeless)
			(void)halve(&entries);
		poll(NULL, 0, ms);
		r = shards_try(runtime, entries, false, ret_reason, &got);
		if (hopeless)
			break;
	}
	if (r == -ENOMEM)
		report_refusal(runtime, entries, got);
	return r;
}

/* ---- The engine ---------------------------------------------------------- */

int weft__shards_open(struct weft_runtime *runtime, unsigned entries,
		      struct weft__engine *engine)
{
	const char *reason = NULL;
	uint32_t got;
	int r;

	if (engine->engine != WEFT_ENGINE_EPOLL) {
		r = urings_open(runtime, entries, &reason);
		if (r != -ENOSYS || engine->engine == WEFT_ENGINE_URING) {
			weft__engine_opened(engine, WEFT_ENGINE_URING, r,
					    reason);
			return r;
		}
	}
	r = shards_try(runtime, entries, true, &reason, &got);
	weft__engine_opened(engine, WEFT_ENGINE_EPOLL, r, reason);
	return r;
}
