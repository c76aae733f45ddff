/* SPDX-License-Identifier: MIT */
/*
 * Fake run - a runtime with any number of workers in one thread, without a
 * kernel, on virtual time.
 *
 *	runtime/, timer/, io/	  the real ones, with their driver, io/driver.c
 *	io/ring/uring/, soft/	  replaced by a fake ring (fake_ring.h)
 *	threads of the workers	  fibers (fake_fiber.h)
 *	clock, eventfds, /proc	  fake_os.c
 *
 * A run is a sequence of steps of workers, chosen by a seed: the same seed
 * gives the same run.  A step is a turn of a worker's loop, or what follows its
 * sleep up to the end of a turn, or to the next sleep.  Workers that sleep in
 * their rings are stepped again when something has completed or their time has
 * come.  When no worker can run, time jumps.  When none ever will while tasks
 * are left, that is a deadlock, and reported.
 *
 * Time passes a little with each step, and in fake_compute().  Between steps
 * the accounts of idle.h and the locks of the rings are checked.
 */
#ifndef WEFT_TESTS_FAKE_FAKE_RUN_H
#define WEFT_TESTS_FAKE_FAKE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/sched/driver.h"
#include "runtime/sched/runtime.h"

enum { FAKE_WORKERS_MAX = 256 };

struct fake_config {
	uint64_t seed;
	unsigned workers;     /* 0: 1 */
	uint64_t start_ns;    /* of the clock */
	uint64_t step_ns;     /* a step takes 1 to so much; 0: 2000 */
	uint64_t look_ns;     /* a look at the clock takes 0 to so much */
	uint64_t steps_max;   /* 0: 50 million */
	bool in_turn;	      /* workers one after the other, not at random */
	bool budgets_vary;    /* of a tick: 1 to 128, by the seed */
	int32_t tick_budget;  /* 0: the usual */
	unsigned processors;  /* while more workers may run, each waits for one
				 whenever any of them runs; 0: none does */
	bool shares; /* workers that compute share the processors: on fewer
			than there are workers each takes longer, and waits
			for that time */
	unsigned others; /* with shares: other programs that compute */
	bool all_busy;	      /* no processor is idle until fake_processors();
				 else nobody tells */
	bool monitor_off;
	bool help_off;
	unsigned tasks_max;
	size_t stack_bytes;
	/* After each step, if not NULL. */
	void (*after_step)(struct weft_runtime *runtime, void *arg);
	void *after_arg;
	/* At each look at the clock, if not NULL: what another thread does at
	 * that moment. */
	void (*on_look)(void *arg);
	void *look_arg;
};

struct fake_result {
	uint64_t trace;	      /* a hash of all that happened, in order */
	uint64_t steps;
	uint64_t end_ns;      /* of the clock, when the last task had ended */
	int64_t result;	      /* of main */
	const char *trouble;  /* NULL, or what went wrong */
	struct weft_stats stats;
	struct weft_worker_stats worker[8];
	/* The driver's counts of each worker: parks that were not given up, and
	 * steps, of which each is a turn of the loop. */
	uint64_t parks[8], steps_of[8];
};

/* Runs main as the root task until it and all it started have ended. */
void fake_run(const struct fake_config *config, weft_fn main_fn, void *arg,
	      struct fake_result *ret_result);

/* Inside a task of the run: */

/* The task computes for so long without a pause, while the other workers go
 * on: one of their steps at a time, on this task's stack. */
void fake_compute(uint64_t length_ns);

/* The thread of a worker that sleeps has no processor, even if it is woken; or
 * has one again. */
void fake_hold(unsigned worker, bool held);

/* The running task makes a request of its worker's ring, and waits.  It
 * completes so much later, through the ring of whichever worker is named.
 * Returns the result, as of weft__op_run(). */
int fake_receive(unsigned worker, uint64_t after_ns);

/* The clock moves, and nobody else does. */
void fake_pass(uint64_t length_ns);

/* So many processors from here on; and the machine is idle for so many
 * thousandths of the time, if all_busy.  See fake_config. */
void fake_processors(unsigned processors, unsigned idle_thousandths);

/* Mixes a value into the trace. */
void fake_note(uint64_t value);

/* A number from the seed, less than the limit. */
uint64_t fake_random(uint64_t limit);

/* Calls fn(arg) so much later on no worker, as a foreign thread would. */
void fake_foreign(uint64_t after_ns, void (*fn)(void *arg), void *arg);

/* So far, on all workers: runs of tasks, and wakes of workers that slept. */
uint64_t fake_polls(void);
uint64_t fake_wakes(void);

/* The runtime that is stepped. */
struct weft_runtime *fake_runtime(void);
#endif
