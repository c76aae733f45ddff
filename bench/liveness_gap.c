/* SPDX-License-Identifier: MIT */
/*
 * How long does a ready task wait, counted in runs of other tasks?
 *
 * Method.  1000 and 10,000 tasks yield for 2 s; far more than a worker's ring
 * holds.  Each run takes a number from one counter.  The figure is the largest
 * step between two runs of one task, divided by the number of tasks: 1 is a
 * perfect round, and 2 is the limit.  Start and end are not counted.
 *
 * What would fool it.  The kernel or the host may take a worker off its core
 * for some 100 us, or return it to a core whose caches are cold.  Meanwhile the
 * other worker runs its own tasks thousands of times, which says nothing about
 * the order in which tasks are taken.  So at most AHEAD_MAX runs of a worker
 * count between two runs of another worker: these are all runs, unless one
 * worker is that much slower than the other.  The share of runs that are not
 * counted is printed.  The case fails if it is more than half, if fewer than 50
 * rounds are left, or if a worker parks, which it must not do with that much
 * work.
 */
#include "bench/liveness.h"

enum { TASKS_FEW = 1000, TASKS_MANY = 10000, AHEAD_MAX = 4 };

#define GAP_MAX 2.0
#define NOT_COUNTED_MAX 0.5
#define ROUNDS_MIN 50.0

/* A worker's counts, on cache lines of its own.  Others read only `runs`. */
struct beat {
	weft__atomic(uint64_t) runs;
	uint64_t pending; /* since all_have_run() was last true */
	uint64_t not_counted;
	uint64_t seen[LIVE_WORKERS_MAX]; /* the other workers' runs then */
} __attribute__((aligned(64)));

static struct {
	unsigned workers, tasks, turn;
	double secs;
	weft__atomic(uint64_t) clock __attribute__((aligned(64)));
	weft__atomic(unsigned) slots __attribute__((aligned(64)));
	weft__atomic(unsigned) started;
	weft__atomic(bool) measures, over;
	weft__atomic(uint64_t) worst;
	struct beat beats[LIVE_WORKERS_MAX];
	double figure, not_counted, rounds;
	uint64_t parks;
} gap;

/* This worker's number, in the order of the first call of each worker. */
static __attribute__((noinline)) unsigned slot(void)
{
	static __thread unsigned number, turn;

	__asm__ volatile("" ::: "memory");
	if (turn != gap.turn) {
		/* relaxed: hands out numbers. */
		number = weft__add(&gap.slots, 1u, relaxed);
		turn = gap.turn;
	}
	return number;
}

/* Whether each other worker has run a task since this was last true. */
static bool all_have_run(struct beat *mine)
{
	uint64_t runs_of[LIVE_WORKERS_MAX];

	for (unsigned i = 0; i < gap.workers; i++) {
		/* relaxed: compared with its value before. */
		runs_of[i] = weft__load(&gap.beats[i].runs, relaxed);
		if (&gap.beats[i] != mine && runs_of[i] == mine->seen[i])
			return false;
	}
	memcpy(mine->seen, runs_of, sizeof(*runs_of) * gap.workers);
	return true;
}

static uint64_t counted(uint64_t pending)
{
	return pending < AHEAD_MAX ? pending : AHEAD_MAX;
}

/* The number of this run among those that count. */
static uint64_t run_number(void)
{
	struct beat *mine = &gap.beats[slot()];

	/* relaxed: this worker is the only writer; others compare it. */
	weft__store(&mine->runs, weft__load(&mine->runs, relaxed) + 1, relaxed);
	mine->pending++;
	if (all_have_run(mine)) {
		/* relaxed: a count that publishes nothing. */
		weft__add(&gap.clock, counted(mine->pending), relaxed);
		mine->not_counted += mine->pending - counted(mine->pending);
		mine->pending = 0;
	}
	/* relaxed: a count that publishes nothing. */
	return weft__load(&gap.clock, relaxed) + counted(mine->pending);
}

static int64_t gap_task(void *arg)
{
	uint64_t last = 0, worst = 0, seen;

	(void)arg;
	/* relaxed: counts and flags that publish nothing. */
	weft__add(&gap.started, 1u, relaxed);
	while (!weft__load(&gap.over, relaxed)) {
		uint64_t number = run_number();

		if (weft__load(&gap.measures, relaxed)) {
			if (last && number > last && number - last > worst)
				worst = number - last;
			last = number;
		}
		bench_must("weft_yield", weft_yield());
	}
	seen = weft__load(&gap.worst, relaxed);
	while (seen < worst && !weft__cas(&gap.worst, &seen, worst, relaxed))
		;
	return 0;
}

static uint64_t parks(void)
{
	struct weft_stats stats;

	bench_must("weft_stats", weft_stats_get(weft_runtime_self(), &stats));
	return stats.total.parks;
}

static void reset(void)
{
	gap.turn++;
	/* relaxed: nothing runs yet. */
	weft__store(&gap.clock, (uint64_t)0, relaxed);
	weft__store(&gap.slots, 0u, relaxed);
	weft__store(&gap.started, 0u, relaxed);
	weft__store(&gap.measures, false, relaxed);
	weft__store(&gap.over, false, relaxed);
	weft__store(&gap.worst, (uint64_t)0, relaxed);
	memset(gap.beats, 0, sizeof(gap.beats));
}

static int64_t gap_main(void *arg)
{
	uint64_t runs = 0, not_counted = 0;

	(void)arg;
	reset();
	WEFT_SUPERVISE(scope) {
		for (unsigned i = 0; i < gap.tasks; i++)
			bench_go(scope, gap_task, NULL, 0);
		/* relaxed: counts and flags that publish nothing. */
		while (weft__load(&gap.started, relaxed) < gap.tasks)
			bench_must("weft_sleep", weft_sleep(WEFT_MS(10)));
		bench_must("weft_sleep", weft_sleep(WEFT_MS(100)));
		gap.parks = parks();
		weft__store(&gap.measures, true, relaxed);
		bench_must("weft_sleep",
			   weft_sleep((weft_nsec)(gap.secs * 1e9)));
		weft__store(&gap.measures, false, relaxed);
		gap.parks = parks() - gap.parks;
		runs = weft__load(&gap.clock, relaxed);
		weft__store(&gap.over, true, relaxed);
	}
	for (unsigned i = 0; i < gap.workers; i++)
		not_counted += gap.beats[i].not_counted;
	gap.not_counted = (double)not_counted / (double)(runs + not_counted);
	gap.rounds = (double)runs / gap.tasks;
	gap.figure = (double)weft__load(&gap.worst, relaxed) /
		     (double)gap.tasks;
	live_rescues("gap");
	return 0;
}

static void gap_case(const char *what, unsigned tasks)
{
	char figure[16];

	gap.tasks = tasks;
	live_watch(what, 30 + gap.secs);
	live_run(gap_main, NULL);
	live_watch(NULL, 0);
	snprintf(figure, sizeof(figure), "%u", tasks);
	fprintf(stderr, "%s_%u: %.1f%% of the runs not counted, %llu parks\n",
		what, tasks, gap.not_counted * 100,
		(unsigned long long)gap.parks);
	live_figure(what, figure, gap.figure, GAP_MAX, "x");
	live_limit(what, "parks", (double)gap.parks, 0, "");
	live_limit(what, "not_counted", gap.not_counted * 100,
		   NOT_COUNTED_MAX * 100, "%");
	if (gap.rounds < ROUNDS_MIN)
		live_limit(what, "rounds_missing", ROUNDS_MIN - gap.rounds,
			   0, "");
}

void live_gap(const char *what, const struct live_opts *opts)
{
	gap.workers = opts->workers;
	gap.secs = opts->secs > 0 ? opts->secs : 2;
	gap_case(what, TASKS_FEW);
	gap_case(what, TASKS_MANY);
}
