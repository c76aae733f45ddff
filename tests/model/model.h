/* SPDX-License-Identifier: MIT */
/*
 * Model checker - every schedule, and every value a load may return.
 *
 * A model is a setup function, up to seven thread functions and a final check.
 * model_run() executes it again and again, depth first over every choice: which
 * thread performs its next atomic operation, which store a load returns, where
 * in modification order a store goes.  The threads are fibers of one real
 * thread; the code under test is the real source, compiled with -DWEFT__MODEL.
 *
 * Memory model.  Stores of a location form its history, in modification order.
 * Every thread has a vector clock; a store remembers when each thread first met
 * it.  A load may return any store that is not hidden: one is hidden when any
 * thread met some newer store before the load in happens-before.  That is C11's
 * coherence exactly.  A release store carries its thread's clock, an acquire
 * load joins it; an RMW passes on the clock of the store it replaced, so
 * release sequences run through RMWs.  A store may also enter the history
 * before stores that its thread has not met (modification order need not be
 * execution order), but never between an RMW and the store that it read.
 *
 * Sequential consistency: the seq_cst operations have a total order that agrees
 * with happens-before, modification order and reads-before, but not with the
 * order of execution (order.c).  It does not synchronise more than acquire and
 * release do: a seq_cst load may miss a newer release store.
 *
 * Approximations
 *   - Load buffering (a load that returns a store later in program order of
 *     another thread's dependency cycle) is never produced.  So the RMWs of a
 *     location take place in the order in which they execute: the checker
 *     overlooks that one may be overtaken, if only relaxed operations order it.
 *   - A release sequence is not continued by plain stores of its own thread;
 *     C11 continues it, C++20 does not.  Stricter for us.
 *   - A compare-and-swap does not fail spuriously, but may on an old value.
 *   - consume, standalone fences and mixed-size access do not exist.
 *   - After weft__spin_hint() a thread sees the newest store of each location
 *     that it has read since the previous one: stores arrive in finite time.
 *     It stays suspended until one of them holds another value.
 *   - model_heavy_barrier() comes after the seq_cst operations that executed
 *     before it, and before the others, which is stronger than C11.  It also
 *     orders plain data, as membarrier(2) does on real machines, where C11
 *     would still find a data race.
 *   - model_wait() and model_lock() synchronise as the kernel's locks do.
 *     model_park() does not, except for the word that it waits on.
 *   - Plain data is not reordered or delayed: a race on it is reported, if its
 *     accesses are announced with model_data_read() and model_data_write().
 *     Data that a model's threads share without announcing it (a count of items
 *     taken) must not depend on the order of their accesses.
 *   - A location first used after another thread initialised it with plain
 *     stores that were not announced counts as initialised at the beginning.
 *   - Schedules with more preemptions than the bound are not explored.
 */
#ifndef WEFT_TESTS_MODEL_MODEL_H
#define WEFT_TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/model/model_atomic.h"

#define MODEL_THREADS 7

/* For the bounds in struct model_opts, where 0 asks for the default. */
#define MODEL_NONE (-1)
#define MODEL_UNBOUNDED 1000000

typedef void model_fn(void *arg);

struct model_opts {
	/* Printed with the result, and matched by MODEL_REPLAY. */
	const char *name;
	/* Given to setup, to the threads and to check_end. */
	void *arg;
	/* Switches away from a thread that could go on; default 3. */
	int preemptions;
	/* Loads of old values, stores out of order, per execution; no bound. */
	int weak;
	/* Operations per execution, over which it is a livelock; 2000. */
	int steps;
	/* Executions after which the search gives up, incomplete; no bound. */
	uint64_t executions;
	/* Explore equivalent schedules too (schedule.c); much slower. */
	bool unreduced;
	/* A livelock cuts the execution and is counted, not a violation. */
	bool prune;
	/* Print nothing, not even the schedule of a violation. */
	bool quiet;
};

struct model_result {
	uint64_t executions;
	/* Operations at distinct places of the tree of choices. */
	uint64_t states;
	/* Executions cut by opts.prune. */
	uint64_t pruned;
	double seconds;
	/* Whole tree seen, within the bounds. */
	bool complete;
	bool violated;
	/* The violation in one sentence, and what to set MODEL_REPLAY to. */
	char text[256];
	char replay[4096];
};

/*
 * Explores the model and prints a line of counts; on a violation, also the
 * schedule.  setup and check_end may be NULL; both run outside the threads,
 * where atomic operations are plain.  With MODEL_REPLAY=name:choices in the
 * environment, only that one execution is run, and printed; MODEL_BOUND=n
 * replaces every preemption bound, MODEL_WEAK=n every bound of old values.
 */
struct model_result model_run(const struct model_opts *opts, model_fn *setup,
			      model_fn *const threads[], size_t n,
			      model_fn *check_end);

/* Ends the execution with a violation unless cond.  Sentence is the claim that
 * broke. */
#define model_assert(cond, sentence)                                         \
	((cond) ? (void)0 : model_fail(sentence, MODEL__WHERE))
void model_fail(const char *sentence, const char *where);

/* The calling thread's index in threads[]. */
unsigned model_self(void);

/* Tries every value below n: a short read, a failed allocation. */
unsigned model_choose(unsigned n);

/* Names a location for the printed schedule; the string is not copied. */
void model_name(const volatile void *p, const char *name);

/* Announces an access to plain data, which must not race with another. */
#define model_data_read(p)                                                   \
	model_data_read_at((p), sizeof(*(p)), MODEL__WHERE)
#define model_data_write(p)                                                  \
	model_data_write_at((p), sizeof(*(p)), MODEL__WHERE)
void model_data_read_at(const volatile void *p, size_t size,
			const char *where);
void model_data_write_at(const volatile void *p, size_t size,
			 const char *where);

/*
 * Sources compiled with -fsanitize=thread, and linked without, announce every
 * access themselves.  This is for the data that a model keeps about its
 * threads.
 */
#define MODEL_UNSEEN __attribute__((no_sanitize("thread")))

/*
 * The memory was freed: a violation, unless every access of every thread to it
 * happened before, and none comes after.
 */
#define model_free(p, size) model_free_at((p), (size), MODEL__WHERE)
void model_free_at(const volatile void *p, size_t size, const char *where);

/*
 * The memory starts a new life: its locations lose their history, and start
 * from the plain contents.  Also for memory set with plain stores.
 */
void model_renew(const volatile void *p, size_t size);

/*
 * Futex: sleeps until model_unpark() if *p, an atomic 32-bit word, is
 * expected.  The comparison is a relaxed load, but one that sees the stores
 * before an unpark.  Returns whether it slept.
 */
#define model_park(p, expected) model_park_at((p), (expected), MODEL__WHERE)
#define model_unpark(p, n) model_unpark_at((p), (n), MODEL__WHERE)
bool model_park_at(const volatile uint32_t *p, uint32_t expected,
		   const char *where);
/* Wakes up to n threads, in the order in which they went to sleep. */
void model_unpark_at(const volatile uint32_t *p, unsigned n,
		     const char *where);

/* An eventfd: wait takes the count, and sleeps while it is zero. */
struct model_event {
	uint64_t count;
	int16_t clock[8];
};
#define model_post(event) model_post_at((event), MODEL__WHERE)
#define model_wait(event) model_wait_at((event), MODEL__WHERE)
#define model_poll(event) model_poll_at((event), MODEL__WHERE)
void model_post_at(struct model_event *event, const char *where);
uint64_t model_wait_at(struct model_event *event, const char *where);
/* As wait, but returns 0 rather than sleep. */
uint64_t model_poll_at(struct model_event *event, const char *where);

/* A mutex; zeroes are unlocked. */
struct model_mutex {
	unsigned owner;
	int16_t clock[8];
};
#define model_lock(mutex) model_lock_at((mutex), MODEL__WHERE)
#define model_unlock(mutex) model_unlock_at((mutex), MODEL__WHERE)
void model_lock_at(struct model_mutex *mutex, const char *where);
void model_unlock_at(struct model_mutex *mutex, const char *where);

/*
 * The calling thread serves the others: an execution may end while it sleeps
 * in park or wait, once every other thread has finished.
 */
void model_daemon(void);

#endif
