/* SPDX-License-Identifier: MIT */
/*
 * Does every task make progress, whatever another task does?
 *
 *	bench_liveness CASE [--workers N] [--label L] [--check]
 *		       [--reps N] [--secs S]
 *
 * Cases: gap, hog_echo, hog_lifo, hog_submit, hog_timer (each also with
 * _busy), fairness, outside, idle, handover.  The files named in liveness.h
 * describe how each is measured and what would fool it.  --reps N: the turns of
 * a hog_ case, or the submissions of outside; handover makes one Nth of its
 * hand-overs.  --secs S: the length of idle and gap.  A broken limit is
 * reported on stderr; with --check the exit status is then 1.
 *
 * With WEFT_TEST_HELP=off in the environment no other worker helps one that
 * computes: then the hog_ cases must fail.  With WEFT_TEST_TIMER_SHARDS=off
 * only worker 0 advances timers: then hog_timer must fail.  With
 * WEFT_TEST_TURN=off tasks that overflowed or were submitted have no guaranteed
 * turn: then fairness and outside must fail, with one worker.
 */
#include "bench/liveness.h"

#include <pthread.h>

static bool broken;

void live_emit(const char *what, const char *figure, double value,
	       const char *unit)
{
	char bench[64];

	snprintf(bench, sizeof(bench), "%s_%s", what, figure);
	emit(bench, value, unit);
}

void live_limit(const char *what, const char *figure, double value,
		double max, const char *unit)
{
	if (value <= max)
		return;
	fprintf(stderr, "FAILED %s_%s, workers %d: %.1f %s, limit %.1f\n",
		what, figure, out_workers, value, unit, max);
	broken = true;
}

void live_figure(const char *what, const char *figure, double value,
		 double max, const char *unit)
{
	live_emit(what, figure, value, unit);
	live_limit(what, figure, value, max, unit);
}

void live_fail(const char *what, const char *sentence)
{
	fprintf(stderr, "FAILED %s, workers %d: %s\n", what, out_workers,
		sentence);
	_exit(1);
}

/*
 * The watch: a thread of its own, since a runtime that hangs may occupy all of
 * its workers.
 */

static struct {
	pthread_mutex_t lock;
	char name[128];
	uint64_t end_ns; /* 0: nothing is watched */
	bool started;
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void *watch_thread(void *arg)
{
	for (;;) {
		usleep(50000);
		pthread_mutex_lock(&watch.lock);
		if (watch.end_ns && now_ns() > watch.end_ns)
			live_fail(watch.name, "did not end");
		pthread_mutex_unlock(&watch.lock);
	}
	return arg;
}

void live_watch(const char *name, double secs)
{
	pthread_t thread;

	pthread_mutex_lock(&watch.lock);
	if (!watch.started && pthread_create(&thread, NULL, watch_thread,
					     NULL) == 0)
		watch.started = true;
	snprintf(watch.name, sizeof(watch.name), "%s", name ? name : "");
	watch.end_ns = name ? now_ns() + (uint64_t)(secs * 1e9) : 0;
	pthread_mutex_unlock(&watch.lock);
}

void live_rescues(const char *what)
{
	struct weft_stats stats;

	bench_must("weft_stats", weft_stats_get(weft_runtime_self(), &stats));
	live_limit(what, "rescues", (double)stats.total.rescues, 0, "");
}

void live_run(weft_fn fn, void *arg)
{
	bench_run(fn, arg);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(const char *what, const struct live_opts *opts);
	} cases[] = {
		{ "hog_", live_hog },	   { "gap", live_gap },
		{ "fairness", live_fairness }, { "idle", live_idle },
		{ "handover", live_handover }, { "outside", live_outside },
	};
	const char *check = NULL, *reps = "0", *secs = "0", *what;
	const struct bench_option options[] = {
		{ "--check", &check, true },
		{ "--reps", &reps, false },
		{ "--secs", &secs, false },
		{ NULL, NULL, false },
	};
	struct live_opts opts = { 0 };

	what = bench_parse(argc, argv, options);
	opts.workers = (unsigned)out_workers;
	opts.reps = (unsigned)atoi(reps);
	opts.secs = atof(secs);
	if (opts.workers > LIVE_WORKERS_MAX)
		return 2;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (strncmp(what, cases[i].name, strlen(cases[i].name)) == 0) {
			cases[i].run(what, &opts);
			return check && broken;
		}
	fprintf(stderr, "bench_liveness: no case \"%s\"\n", what);
	return 2;
}
