/* SPDX-License-Identifier: MIT */
/*
 * Completes - the effect of a completion in the model of the driver: MD4.
 * Included by tests/model/model_driver.c in its midst.
 */
unsigned weft__op_complete(struct weft__worker *here,
			   const struct weft__completion *completion)
{
	(void)here, (void)completion;
	for (unsigned i = 0; takes_locks_alone && i < WORKERS_MAX; i++)
		/* relaxed: its own. */
		model_assert(!(weft__load(&shards[i].lock.word, relaxed) &
			       WEFT__TRYLOCK_HELD),
			     "MD4: a task is made ready while a lock is held");
	model_post(&ended);
	return 1;
}

/* A stream of task 1, which waits. */
uint64_t weft__stream_complete(struct weft__worker *worker,
			       const struct weft__completion *completion)
{
	(void)worker, (void)completion;
	/* relaxed: its own. */
	model_assert(weft__load(&shards[SLEEPER].lock.word, relaxed) &
			     WEFT__TRYLOCK_HELD,
		     "M1: a stream is notified while the lock is held");
	return WEFT__GENERATION | 1;
}
