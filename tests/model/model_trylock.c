/* SPDX-License-Identifier: MIT */
/*
 * Model of io/request/trylock.h.  There is one holder at a time.  The holder,
 * or the next one, looks at everything that a refused thread wrote before.
 */
#include "io/request/trylock.h"
#include "tests/model/kit.h"

static struct {
	struct weft__trylock lock;
	weft__atomic(uint32_t) work[3]; /* relaxed: passed on by the lock */
	uint32_t held; /* the holder's */
	uint32_t looks[3]; /* likewise: how much work was seen */
} m;

static void setup(void *arg)
{
	(void)arg;
	memset(&m, 0, sizeof(m));
	model_name(&m.lock, "lock");
	model_name(m.work, "work");
}

/* The work of a holder: it races if there are two. */
static void look(void)
{
	model_assert(m.held++ == 0, "one holds the lock");
	for (unsigned i = 0; i < 3; i++)
		if (weft__load(&m.work[i], relaxed)) {
			weft__store(&m.work[i], 0, relaxed);
			m.looks[i]++;
		}
	m.held--;
}

/* As weft__shard_serve() does. */
static void serve(void)
{
	do {
		if (!weft__trylock_try(&m.lock))
			return;
		look();
	} while (weft__trylock_drop(&m.lock)); /* a thread was refused */
}

static void make_and_serve(void *arg)
{
	(void)arg;
	weft__store(&m.work[model_self()], 1, relaxed);
	serve();
}

static void check_all_seen(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 3; i++)
		model_assert(!weft__load(&m.work[i], relaxed),
			     "some work was overlooked");
	model_assert(weft__load(&m.lock.word, relaxed) == 0,
		     "the lock is free");
}

MODEL(two_serve, setup, check_all_seen, OPTIONS(), make_and_serve,
      make_and_serve)
MODEL(three_serve, setup, check_all_seen, OPTIONS(.preemptions = 2),
      make_and_serve, make_and_serve, make_and_serve)

/* As weft__shard_busy(): an estimate, but exact for a thread that was informed
 * of a refusal. */
static bool busy(void)
{
	for (unsigned i = 0; i < 3; i++)
		if (weft__load(&m.work[i], relaxed))
			return true;
	return false;
}

/* The owner parks under the lock, and takes the lock however long that
 * takes. */
static void park_and_look(void *arg)
{
	(void)arg;
	weft__store(&m.work[model_self()], 1, relaxed);
	while (!weft__trylock_take(&m.lock, 2))
		;
	look();
	if (weft__trylock_drop(&m.lock) && busy())
		serve();
}

MODEL(owner_parks_helper_serves, setup, check_all_seen, OPTIONS(),
      park_and_look, make_and_serve)
MODEL(owner_parks_two_serve, setup, check_all_seen, OPTIONS(.preemptions = 2),
      park_and_look, make_and_serve, make_and_serve)
MODEL(two_take, setup, check_all_seen, OPTIONS(), park_and_look,
      park_and_look)

/* A thread that flushes will look later, and does not serve the refused
 * threads: they must not lose the lock for good, and no two threads may hold
 * it. */
static void flush(void *arg)
{
	(void)arg;
	if (!weft__trylock_try(&m.lock))
		return;
	look();
	(void)weft__trylock_drop(&m.lock);
}

static void check_free(void *arg)
{
	(void)arg;
	model_assert(weft__load(&m.lock.word, relaxed) == 0,
		     "the lock is free");
}

MODEL(flush_and_serve, setup, check_free, OPTIONS(), flush, make_and_serve,
      flush)

int main(void)
{
	const TTest *const tests[] = {
		two_serve,
		three_serve,
		owner_parks_helper_serves,
		owner_parks_two_serve,
		two_take,
		flush_and_serve,
		NULL,
	};

	return kit_main("trylock", tests);
}
