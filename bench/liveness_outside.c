/* SPDX-License-Identifier: MIT */
/*
 * How long does a task from outside wait while all workers are busy?
 *
 * Method.  A hundred tasks for each worker compute for a while and yield, for
 * ever.  A thread that is not a worker submits a task about every millisecond,
 * 2000 times; the task records the time when it begins to run.  The figures are
 * the median and the 99th percentile of the time since just before the
 * submission; once with 5 us of computing in each run, and once with 50 us.
 * The scheduler's aim is a millisecond: it gives the injection queue its turn
 * after a number of runs, which it adapts to the time that a run takes.
 *
 * What would fool it: a worker that the kernel has preempted.  The 99th
 * percentile includes that, and has the limit of the other cases.
 */
#include "bench/liveness.h"

#include <pthread.h>

enum { YIELDERS = 100, TIMES = 2000, PAUSE_US = 800 };

#define P50_US 1000.0
#define P99_US 5000.0

static struct {
	const char *what;
	unsigned workers, times;
	uint64_t run_ns;
	weft__atomic(bool) over;
	uint64_t waited_ns[TIMES];
} outside;

static int64_t yielder(void *arg)
{
	(void)arg;
	/* relaxed: a flag that publishes nothing. */
	while (!weft__load(&outside.over, relaxed)) {
		uint64_t end_ns = now_ns() + outside.run_ns;

		while (now_ns() < end_ns)
			weft__spin_hint();
		bench_must("weft_yield", weft_yield());
	}
	return 0;
}

struct stamp {
	uint64_t from_ns;
	unsigned number;
};

static int64_t stamped(void *arg)
{
	struct stamp *stamp = arg;

	outside.waited_ns[stamp->number] = now_ns() - stamp->from_ns;
	return 0;
}

static void *submitter(void *arg)
{
	for (unsigned i = 0; i < outside.times; i++) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		struct weft_task task;
		struct stamp stamp = { .number = i };

		opts.ret_task = &task;
		live_watch(outside.what, 3);
		usleep(PAUSE_US + i % 10 * 40);
		stamp.from_ns = now_ns();
		bench_must("weft_submit", weft_submit(arg, stamped, &stamp,
						      sizeof(stamp), &opts));
		bench_must("weft_wait", weft_wait(arg, task, NULL));
	}
	/* relaxed: a flag that publishes nothing. */
	weft__store(&outside.over, true, relaxed);
	return NULL;
}

static int64_t outside_main(void *arg)
{
	pthread_t thread;

	(void)arg;
	/* relaxed: the tasks are started later, and see it. */
	weft__store(&outside.over, false, relaxed);
	if (pthread_create(&thread, NULL, submitter, weft_runtime_self()) != 0)
		live_fail(outside.what, "no thread to submit");
	WEFT_SUPERVISE(scope)
		for (unsigned i = 0; i < YIELDERS * outside.workers; i++)
			bench_go(scope, yielder, NULL, 0);
	pthread_join(thread, NULL);
	live_watch(NULL, 0);
	live_rescues(outside.what);
	return 0;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void outside_case(unsigned run_us)
{
	char figure[32];
	size_t n = outside.times;

	outside.run_ns = run_us * 1000u;
	live_run(outside_main, NULL);
	qsort(outside.waited_ns, n, sizeof(*outside.waited_ns), by_value);
	snprintf(figure, sizeof(figure), "%uus_p50", run_us);
	live_figure(outside.what, figure,
		    (double)outside.waited_ns[n / 2] / 1e3, P50_US, "us");
	snprintf(figure, sizeof(figure), "%uus_p99", run_us);
	live_figure(outside.what, figure,
		    (double)outside.waited_ns[n * 99 / 100] / 1e3, P99_US,
		    "us");
}

void live_outside(const char *what, const struct live_opts *opts)
{
	outside.what = what;
	outside.workers = opts->workers;
	outside.times = opts->reps && opts->reps < TIMES ? opts->reps : TIMES;
	outside_case(5);
	outside_case(50);
}
