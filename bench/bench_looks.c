/* SPDX-License-Identifier: MIT */
/*
 * How much time do the looks take whose cost grows with the workers?
 *
 *	bench_looks looks [--workers N] [--label L]
 *
 *	any_work	is there work anywhere?  By the last that searches
 *	search		a search that finds nothing
 *	monitor_look	the monitor's look for workers that are late
 *	monitor_wait	how long the monitor may sleep
 *	shards_due	worker 0: is an alarm due?  Once a tick
 *	shards_sleep	worker 0: until when may it sleep?
 *
 * Method: the real functions, on a runtime of N workers without threads.  All
 * workers count as running, with empty queues; for _rest all but worker 0
 * sleep.  A figure is the median of ROUNDS looks.  Before each of them another
 * thread writes to all that is looked at, so that each line comes out of
 * another processor's cache, as it does when the workers run.  _warm: the mean
 * of many looks in a row, with all lines in the own cache.
 *
 * What would fool it: one processor, or two that are threads of one core, have
 * no other cache, and the first figures are like the warm ones.  Two cores of
 * one socket are nearer to each other than those of two.  One look includes
 * about 25 ns of the clock.
 */
#include <pthread.h>
#include <sched.h>

#include "bench/bench.h"

/* Its parts are static. */
#include "runtime/sched/sched.c"

#include "timer/timer_shard.h"

enum { ROUNDS = 400, WARM = 20000 };

static struct weft_runtime *runtime;

/* ---- A driver that does nothing ------------------------------------------ */

static int idle_open(struct weft_runtime *of, const struct weft_opts *opts)
{
	(void)opts;
	return weft__timer_shards_open(of, 1);
}

static uint64_t idle_now(struct weft_runtime *of)
{
	(void)of;
	return 1000000000;
}

static void idle_watch(struct weft__worker *worker, bool watches)
{
	(void)worker, (void)watches;
}

static uint64_t idle_random(struct weft_runtime *of)
{
	(void)of;
	return 12345;
}

static const struct weft__driver_ops idle_ops = {
	.open = idle_open,
	.close = weft__timer_shards_close,
	.now = idle_now,
	.watch = idle_watch,
	.random = idle_random,
};

const struct weft__driver_ops *weft__driver_default(void)
{
	return &idle_ops;
}

/* ---- The looks ----------------------------------------------------------- */

static void look_any_work(struct weft__worker *worker)
{
	if (any_work(worker))
		bench_die("any_work", -EINVAL);
}

static void look_search(struct weft__worker *worker)
{
	if (search(worker))
		bench_die("search", -EINVAL);
}

static void look_monitor(struct weft__worker *worker)
{
	weft__monitor_look(worker, idle_now(runtime),
			   weft__monitor_overlooked(worker));
}

static void look_monitor_wait(struct weft__worker *worker)
{
	if (weft__monitor_wait_ns(worker) == UINT64_MAX)
		bench_die("monitor_wait", -EINVAL);
}

static void look_shards_due(struct weft__worker *worker)
{
	if (weft__timer_shards_due(worker, idle_now(runtime)))
		bench_die("shards_due", -EINVAL);
}

static void look_shards_sleep(struct weft__worker *worker)
{
	if (weft__timer_shards_sleep(worker->runtime) != UINT64_MAX)
		bench_die("shards_sleep", -EINVAL);
}

static const struct look {
	const char *bench;
	void (*look)(struct weft__worker *worker);
} looks[] = {
	{ "any_work", look_any_work },
	{ "search", look_search },
	{ "monitor_look", look_monitor },
	{ "monitor_wait", look_monitor_wait },
	{ "shards_due", look_shards_due },
	{ "shards_sleep", look_shards_sleep },
};

enum { LOOKS = sizeof(looks) / sizeof(looks[0]) };

/* ---- The other thread ---------------------------------------------------- */

static weft__atomic(uint32_t) turn; /* odd: the other thread's */
static bool over;		    /* written in this thread's turn */

/* The thread, if there are processors enough: that one of the process's. */
static void pin(int which)
{
	cpu_set_t may, set;

	if (sched_getaffinity(0, sizeof(may), &may) || CPU_COUNT(&may) < 2)
		return;
	CPU_ZERO(&set);
	for (size_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &may) && which-- == 0)
			CPU_SET(i, &set);
	(void)sched_setaffinity(0, sizeof(set), &set);
}

static void pass_turn(void)
{
	/* pairs: [looks.turn] */
	weft__add(&turn, 1u, release);
}

static void await_turn(uint32_t odd)
{
	/* pairs: [looks.turn] */
	while (weft__load(&turn, acquire) % 2 != odd)
		(void)sched_yield();
}

/* Writes what is there already, so that this processor's cache owns it. */
static void dirty(volatile void *p)
{
	/* relaxed: the turns order it. */
	(void)weft__add((volatile weft__atomic(uint64_t) *)p, 0u, relaxed);
}

static void dirty_all(void)
{
	struct weft__timer_shards *all = NULL;

	for (uint32_t i = 0; i < runtime->workers_count; i++) {
		struct weft__worker *worker = runtime->workers[i];

		all = ((struct weft__timer_shard *)worker->timer_shard)->all;
		dirty(&worker->seen_ns);
		dirty(&worker->park_word);
		dirty(&worker->runq.head);
		dirty(&worker->runq.tail);
		dirty(&worker->outbound.head);
		dirty(&worker->outbound.tail);
		dirty(&worker->spawn_queue.lock);
		dirty(&all->next[i]);
	}
	dirty(&all->sleep_until);
	dirty(&runtime->idle.counts);
	for (uint32_t i = 0; i < runtime->idle.words; i++)
		dirty(&runtime->idle.bits[i]);
}

static void *other_thread(void *arg)
{
	pin(1);
	for (;;) {
		await_turn(1);
		if (over)
			return arg;
		dirty_all();
		pass_turn();
	}
}

/* ---- Measuring ----------------------------------------------------------- */

static void measure(const struct look *one, const char *state)
{
	static uint64_t took_ns[ROUNDS];
	struct weft__worker *worker = runtime->workers[0];
	char bench[64];
	uint64_t t0;

	for (int i = 0; i < ROUNDS; i++) {
		pass_turn();
		await_turn(0);
		t0 = now_ns();
		one->look(worker);
		took_ns[i] = now_ns() - t0;
	}
	qsort(took_ns, ROUNDS, sizeof(took_ns[0]), out__by_value);
	(void)snprintf(bench, sizeof(bench), "%s%s", one->bench, state);
	emit(bench, (double)took_ns[ROUNDS / 2], "ns/op");
	t0 = now_ns();
	for (int i = 0; i < WARM; i++)
		one->look(worker);
	(void)snprintf(bench, sizeof(bench), "%s%s_warm", one->bench, state);
	per_op(bench, t0, WARM);
}

/* The worker with the clock's time, and none is late. */
static void all_run(void)
{
	for (uint32_t i = 0; i < runtime->workers_count; i++)
		/* relaxed: before the other thread's turn. */
		weft__store(&runtime->workers[i]->seen_ns, idle_now(runtime),
			    relaxed);
}

static void looks_run(void)
{
	struct weft_opts opts = bench_opts();
	pthread_t thread;

	bench_must("weft__runtime_new",
		   weft__runtime_new(&opts, &idle_ops, false, &runtime));
	all_run();
	pin(0);
	bench_must("pthread_create",
		   -pthread_create(&thread, NULL, other_thread, NULL));
	for (int i = 0; i < LOOKS; i++)
		measure(&looks[i], "");
	for (uint32_t i = 1; i < runtime->workers_count; i++)
		(void)weft__idle_park(&runtime->idle, i, false);
	for (int i = 0; i < 2; i++)
		measure(&looks[i], "_rest");
	over = true;
	pass_turn();
	(void)pthread_join(thread, NULL);
	idle_ops.close(runtime);
	weft__runtime_free(runtime);
}

int main(int argc, char **argv)
{
	static const struct bench_option none[] = { { NULL, NULL, false } };

	if (strcmp(bench_parse(argc, argv, none), "looks") == 0) {
		looks_run();
		return 0;
	}
	fprintf(stderr, "bench_looks: no such bench\n");
	return 2;
}
