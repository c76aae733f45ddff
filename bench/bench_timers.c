/* SPDX-License-Identifier: MIT */
/*
 * How much time do timers take, how late do sleepers wake, and how much memory
 * does a sleeping task occupy?
 *
 *	bench_timers timer|sleep|mem|sleep_future|mem_future
 *		     [--workers N] [--label L]
 *
 * Method.  timer: a million timers in the caller's memory are set 10 to 60 s
 * ahead, then cleared.  Then each is set and cleared immediately, and the clock
 * is read for it, as for the deadline of an I/O call.  sleep: 100,000 tasks
 * sleep 10 ms and record how long after their own deadline they woke.  Three
 * rounds: in the first (_cold) no memory and no stacks are in place, the second
 * (_second) still needs new stacks.  mem: the growth of resident memory while a
 * million tasks go to sleep, or fewer if memory is short.  _future: the same
 * with futures.
 *
 * What would fool it: with one worker, starting 100,000 tasks takes longer
 * than the 10 ms, so early sleepers wait for the loop that starts the rest.
 * Resident memory is read from /proc/self/statm, which does not include page
 * tables; these are reported on stderr.
 */
#include "bench/bench.h"
#include "bench/bench_body.h"

enum { TIMERS = 1000000, SLEEPERS = 100000, MEM_TASKS = 1000000 };

/* An upper estimate of a sleeping task's memory, to choose their number. */
enum { MEM_BYTES_MAX = 10000 };

static weft_nsec timer_delay_ns(uint64_t i)
{
	return WEFT_SEC(10) + i * 7919 % 50000 * WEFT_MS(1);
}

static int64_t timer(void *arg)
{
	struct weft_timer *v = bench_alloc(TIMERS, sizeof(*v));
	weft_nsec base_ns;
	uint64_t i, t0;

	(void)arg;
	t0 = now_ns();
	base_ns = weft_now();
	for (i = 0; i < TIMERS; i++)
		weft_timer_set(&v[i], base_ns + timer_delay_ns(i));
	per_op("timer_insert_1M", t0, TIMERS);
	t0 = now_ns();
	for (i = 0; i < TIMERS; i++)
		if (!weft_timer_clear(&v[i]))
			bench_die("a timer expired", -EIO);
	per_op("timer_cancel_1M", t0, TIMERS);
	t0 = now_ns();
	for (i = 0; i < TIMERS; i++) {
		weft_timer_set(&v[i], weft_now() + timer_delay_ns(i));
		weft_timer_clear(&v[i]);
	}
	per_op("timer_insert_cancel_pair", t0, TIMERS);
	free(v);
	return 0;
}

static void go_sleeper(struct weft_scope *scope,
		       const struct body_sleeper *sleeper)
{
	bench_go(scope, body_sleeper, sleeper, sizeof(*sleeper));
}

static void go_future(struct weft_scope *scope,
		      const struct body_sleeper *sleeper)
{
	const struct body_future_sleeper future = { .sleeper = *sleeper };

	bench_must("weft_go_future",
		   weft_go_future(scope, body_future_sleeper, &future,
				  sizeof(future)));
}

static void sleep_round(const char *round, uint64_t *late_ns,
			void (*go)(struct weft_scope *scope,
				   const struct body_sleeper *sleeper))
{
	weft__atomic(uint64_t) early = 0;
	struct body_sleeper sleeper = { .early = &early };
	char bench[64];
	uint64_t t0 = now_ns();

	WEFT_SUPERVISE(scope)
		for (int i = 0; i < SLEEPERS; i++) {
			sleeper.late_ns = &late_ns[i];
			go(scope, &sleeper);
		}
	emit_sleep(round, t0, late_ns, SLEEPERS);
	snprintf(bench, sizeof(bench), "sleep100k_early%s", round);
	/* relaxed: the tasks have been joined. */
	emit(bench, (double)weft__load(&early, relaxed), "count");
}

static int64_t sleeps(void *arg)
{
	uint64_t *late_ns = bench_alloc(SLEEPERS, sizeof(*late_ns));

	(void)arg;
	sleep_round("_cold", late_ns, go_sleeper);
	/* Faster, so more tasks sleep at the same time and need new stacks. */
	sleep_round("_second", late_ns, go_sleeper);
	sleep_round("", late_ns, go_sleeper);
	free(late_ns);
	return 0;
}

static int64_t sleeps_future(void *arg)
{
	uint64_t *late_ns = bench_alloc(SLEEPERS, sizeof(*late_ns));

	(void)arg;
	sleep_round("_cold_future", late_ns, go_future);
	sleep_round("_future", late_ns, go_future);
	free(late_ns);
	return 0;
}

/* The value in bytes of a line "Name:  123 kB"; 0 if there is no such line. */
static double proc_bytes(const char *path, const char *name)
{
	char line[256];
	double kib = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, name, strlen(name)) == 0)
			kib = strtod(line + strlen(name), NULL);
	fclose(f);
	return kib * 1024;
}

static uint64_t mem_tasks(void)
{
	double fit = proc_bytes("/proc/meminfo", "MemAvailable:") * 0.8 /
		     MEM_BYTES_MAX;

	return fit < MEM_TASKS ? (uint64_t)fit : MEM_TASKS;
}

static void go_long(struct weft_scope *scope, weft__atomic(uint64_t) *up,
		    bool future)
{
	const struct body_future_long state = { .up = up };

	if (!future)
		bench_go(scope, body_sleeps_long, &up, sizeof(up));
	else
		bench_must("weft_go_future",
			   weft_go_future(scope, body_future_sleeps_long,
					  &state, sizeof(state)));
}

static void mem_measure(const char *bench, bool future)
{
	weft__atomic(uint64_t) up = 0;
	uint64_t n = mem_tasks();
	double resident, tables;

	resident = rss_bytes();
	tables = proc_bytes("/proc/self/status", "VmPTE:");
	WEFT_SUPERVISE(scope) {
		for (uint64_t i = 0; i < n; i++)
			go_long(scope, &up, future);
		/* relaxed: a count that publishes nothing. */
		while (weft__load(&up, relaxed) < n)
			bench_must("weft_sleep", weft_sleep(WEFT_MS(20)));
		bench_must("weft_sleep", weft_sleep(WEFT_MS(20)));
		resident = rss_bytes() - resident;
		tables = proc_bytes("/proc/self/status", "VmPTE:") - tables;
		weft_scope_cancel(scope);
	}
	emit(bench, resident / (double)n, "bytes");
	fprintf(stderr, "%llu tasks; page tables: %.0f bytes each\n",
		(unsigned long long)n, tables / (double)n);
}

static int64_t mem(void *arg)
{
	(void)arg;
	mem_measure("mem_per_sleeping_task", false);
	return 0;
}

static int64_t mem_future(void *arg)
{
	(void)arg;
	mem_measure("mem_per_sleeping_task_future", true);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct bench_option none[] = { { NULL, NULL, false } };
	static const struct {
		const char *what;
		weft_fn run;
	} table[] = {
		{ "timer", timer },
		{ "sleep", sleeps },
		{ "mem", mem },
		{ "sleep_future", sleeps_future },
		{ "mem_future", mem_future },
	};
	const char *what = bench_parse(argc, argv, none);

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(what, table[i].what) == 0) {
			bench_run(table[i].run, NULL);
			return 0;
		}
	fprintf(stderr, "bench_timers: no bench \"%s\"\n", what);
	return 2;
}
