/* SPDX-License-Identifier: MIT */
#include "tests/fake/fake_accounts.h"

#include "io/request/shard.h"
#include "runtime/sched/steal.h"

bool fake_is_locked(struct weft__worker *worker)
{
	/* relaxed: one thread. */
	return weft__load(&weft__shard(worker)->lock.word, relaxed) &
	       WEFT__TRYLOCK_HELD;
}

const char *fake_accounts(struct weft_runtime *runtime)
{
	struct weft__idle *idle = &runtime->idle;
	/* relaxed: one thread. */
	uint64_t counts = weft__load(&idle->counts, relaxed);
	uint32_t parked = 0, searching = 0;
	const char *wrong = NULL;

	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__worker *worker = runtime->workers[i];
		bool listed_now = weft__idle_listed(idle, i);

		parked += worker->wake.parked;
		if (listed_now && !worker->wake.parked)
			wrong = "a worker is listed that does not park";
		if (listed_now && weft__has_work(worker))
			wrong = "a worker is listed that has work (IDLE5)";
		/* SH2: it sleeps with the lock, and runs without it. */
		if (fake_is_locked(worker) != worker->wake.parked)
			wrong = "a ring is locked that should not be, or not";
		if (worker->wake.parked && worker->wake.searching)
			wrong = "a parked worker searches";
		searching += worker->wake.searching;
		/* Claimed, and on its way to search. */
		searching += worker->wake.parked && !listed_now;
	}
	if (weft__idle_parked(counts) != parked)
		wrong = "the count of sleepers is wrong";
	if (weft__idle_searching(counts) != searching)
		wrong = "the count of searchers is wrong";
	weft__idle_invariants(idle);
	return wrong;
}
