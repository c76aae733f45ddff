/* SPDX-License-Identifier: MIT */
/*
 * Jobs for the pool of blocking work that stay in it until a gate opens.
 *
 * A gate counts the jobs that came, are inside and are done.  A passer is a
 * task that has one job at a gate.  Beside them: the pool's statistics, the
 * count of its threads and of mappings, and tests that run with options for
 * the pool.
 */
#ifndef WEFT_TESTS_SUPPORT_BLOCKING_SCENE_H
#define WEFT_TESTS_SUPPORT_BLOCKING_SCENE_H

#include "runtime/base/futex.h"
#include "tests/support/io_kit.h"

struct gate {
	weft__atomic(uint32_t) open; /* a futex */
	weft__atomic(unsigned) came, inside, max_inside, done;
};

void gate_open(struct gate *gate);

/* A job: waits at the gate.  Returns 7. */
int64_t gate_pass(void *arg);

/* A task that has a job at a gate, in a lane, and what became of it. */
struct passer {
	struct gate *gate;
	struct weft_lane *lane;
	int64_t *ret_result;
};

int64_t pass(void *arg);

struct weft_task pass_start(struct weft_scope *scope, struct gate *gate,
			    struct weft_lane *lane, int64_t *ret_result);

void pass_start_many(struct weft_scope *scope, int count, struct gate *gate,
		     struct weft_lane *lane);

struct weft_blocking_stats pool_stats(void);

/* The pools' threads in this process, by their name; one that has just ended
 * may count for a moment. */
int threads_alive(void);

/* From a thread: waits until so many are left. */
void expect_threads(int count);

/* Of memory; the C library keeps some stacks.  Sanitizers have some of their
 * own for each thread; one of them reports threads that nobody joined. */
int mappings(void);

int64_t nothing_to_do(void *arg);

/* As IO_TEST, with options for the pool. */
void pool_run(weft_fn fn, unsigned workers, unsigned threads_max,
	      weft_nsec idle_ns);

#define POOL_TEST(name, threads_max, idle_ns)                                \
	static int64_t name##_task(void *arg);                               \
	START_TEST(name)                                                     \
	{                                                                    \
		pool_run(name##_task, _i ? 2 : 1, (threads_max), (idle_ns)); \
	}                                                                    \
	END_TEST                                                             \
	static int64_t name##_task(void *arg __attribute__((unused)))

#endif
