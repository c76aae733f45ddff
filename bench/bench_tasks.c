/* SPDX-License-Identifier: MIT */
/*
 * How much time does it take to start a task, to join it, to yield?
 *
 *	bench_tasks spawn_join|spawn_join_suspend|fork_join|fork_join_suspend|
 *		    yield|foreign [--workers N] [--label L]
 *
 * Method: loops of many operations; the figure is the time of the loop divided
 * by their number.  The tasks' bodies are in another object (bench_body.c), and
 * the library is a shared one.  fork_join reports its first round, on cold
 * memory, separately.
 *
 * What would fool it: spawn_join always reuses one warm stack and one record,
 * and the child never suspends.  So fork_join holds 100,000 records at the same
 * time, and in the _suspend twins each child really needs its stack.  A yield
 * with one task (yield_1) does not switch: no other task is ready, so the task
 * goes on; yield_1000 switches.  With two workers on two cores any other
 * program that runs makes a worker wait for its core.
 */
#include "bench/bench.h"
#include "bench/bench_body.h"

enum {
	SPAWNS = 1000000,
	FORKS = 100000,
	FORK_ROUNDS = 10,
	YIELDS = 3000000,
	YIELDERS = 1000,
	YIELDS_EACH = 3000,
	FOREIGN = 100000,
};

/* A row of the table: its name and the body of its tasks. */
struct row {
	const char *bench;
	weft_fn body;
};

static int64_t spawn_join(void *arg)
{
	const struct row *row = arg;

	WEFT_SUPERVISE(scope) {
		uint64_t t0 = now_ns();

		for (int i = 0; i < SPAWNS; i++)
			bench_join(bench_fork(scope, row->body, NULL, 0));
		per_op(row->bench, t0, SPAWNS);
	}
	return 0;
}

static void fork_join_round(struct weft_scope *scope, weft_fn body,
			    struct weft_task *tasks)
{
	for (int i = 0; i < FORKS; i++)
		tasks[i] = bench_fork(scope, body, NULL, 0);
	for (int i = 0; i < FORKS; i++)
		bench_join(tasks[i]);
}

static int64_t fork_join(void *arg)
{
	const struct row *row = arg;
	struct weft_task *tasks = bench_alloc(FORKS, sizeof(*tasks));
	char cold[64];

	snprintf(cold, sizeof(cold), "%s_cold", row->bench);
	WEFT_SUPERVISE(scope) {
		uint64_t t0 = now_ns();

		fork_join_round(scope, row->body, tasks);
		per_op(cold, t0, FORKS);
		t0 = now_ns();
		for (int i = 0; i < FORK_ROUNDS; i++)
			fork_join_round(scope, row->body, tasks);
		per_op(row->bench, t0, (uint64_t)FORKS * FORK_ROUNDS);
	}
	free(tasks);
	return 0;
}

static int64_t yields(void *arg)
{
	uint64_t t0 = now_ns(), n = YIELDS, each = YIELDS_EACH;

	(void)arg;
	bench_must("weft_yield", body_yields(&n));
	per_op("yield_1", t0, YIELDS);
	t0 = now_ns();
	WEFT_SUPERVISE(scope)
		for (int i = 0; i < YIELDERS; i++)
			bench_go(scope, body_yields, &each, sizeof(each));
	per_op("yield_1000", t0, (uint64_t)YIELDERS * YIELDS_EACH);
	return 0;
}

/* This thread is not a worker.  It starts a task and waits for it. */
static void foreign(void)
{
	struct weft_opts opts = bench_opts();
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;
	struct weft_runtime *runtime;
	struct weft_task task;
	uint64_t t0;

	task_opts.ret_task = &task;
	bench_must("weft_start", weft_start(&opts, &runtime));
	t0 = now_ns();
	for (int i = 0; i < FOREIGN; i++) {
		bench_must("weft_submit", weft_submit(runtime, body_empty, NULL,
						      0, &task_opts));
		bench_must("weft_wait", weft_wait(runtime, task, NULL));
	}
	per_op("foreign_spawn_join", t0, FOREIGN);
	bench_must("weft_stop", weft_stop(runtime));
}

int main(int argc, char **argv)
{
	static const struct bench_option none[] = { { NULL, NULL, false } };
	static struct {
		const char *what;
		weft_fn run;
		struct row row;
	} table[] = {
		{ "spawn_join", spawn_join, { "spawn_join", body_empty } },
		{ "spawn_join_suspend", spawn_join,
		  { "spawn_join_suspend", body_suspended } },
		{ "fork_join", fork_join, { "fork_join_100k", body_empty } },
		{ "fork_join_suspend", fork_join,
		  { "fork_join_suspend", body_suspended } },
		{ "yield", yields, { NULL, NULL } },
	};
	const char *what = bench_parse(argc, argv, none);

	if (strcmp(what, "foreign") == 0) {
		foreign();
		return 0;
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(what, table[i].what) == 0) {
			bench_run(table[i].run, &table[i].row);
			return 0;
		}
	fprintf(stderr, "bench_tasks: no bench \"%s\"\n", what);
	return 2;
}
