/* SPDX-License-Identifier: MIT */
#include "tests/support/blocking_scene.h"

#include "tests/support/threads.h"

void gate_open(struct gate *gate)
{
	weft__store(&gate->open, 1u, release);
	weft__futex_wake(&gate->open, INT32_MAX);
}

int64_t gate_pass(void *arg)
{
	struct gate *gate = arg;
	unsigned inside = weft__add(&gate->inside, 1u, acq_rel) + 1;
	unsigned max = weft__load(&gate->max_inside, relaxed);

	while (max < inside &&
	       !weft__cas(&gate->max_inside, &max, inside, relaxed))
		;
	weft__add(&gate->came, 1u, release);
	while (!weft__load(&gate->open, acquire))
		weft__futex_wait(&gate->open, 0);
	weft__sub(&gate->inside, 1u, release);
	weft__add(&gate->done, 1u, release);
	return 7;
}

int64_t pass(void *arg)
{
	struct passer *passer = arg;
	int64_t r = weft_blocking_lane(passer->lane, gate_pass, passer->gate);

	if (passer->ret_result)
		*passer->ret_result = r;
	return 0;
}

struct weft_task pass_start(struct weft_scope *scope, struct gate *gate,
			    struct weft_lane *lane, int64_t *ret_result)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct passer passer = { gate, lane, ret_result };
	struct weft_task task;

	opts.ret_task = &task;
	ck_assert_int_eq(
		weft_go_opts(scope, pass, &passer, sizeof(passer), &opts), 0);
	return task;
}

void pass_start_many(struct weft_scope *scope, int count, struct gate *gate,
		     struct weft_lane *lane)
{
	struct passer passer = { gate, lane, NULL };

	for (int i = 0; i < count; i++)
		ck_assert_int_eq(WEFT_GO(scope, pass, passer), 0);
}

struct weft_blocking_stats pool_stats(void)
{
	struct weft_blocking_stats stats;

	ck_assert_int_eq(weft_blocking_stats_get(weft_runtime_self(), &stats),
			 0);
	return stats;
}

int threads_alive(void)
{
	return threads_count("weft-blocking\n", true);
}

void expect_threads(int count)
{
	for (int i = 0; threads_alive() != count; i++) {
		ck_assert_msg(i < 20000, "%d threads, not %d", threads_alive(),
			      count);
		thread_pause_ns(100000);
	}
}

int mappings(void)
{
#if defined(WEFT__ASAN) || defined(WEFT__TSAN)
	return 0;
#else
	FILE *maps = fopen("/proc/self/maps", "re");
	int count = 0, c;

	ck_assert_ptr_nonnull(maps);
	while ((c = getc(maps)) != EOF)
		count += c == '\n';
	fclose(maps);
	return count;
#endif
}

int64_t nothing_to_do(void *arg)
{
	(void)arg;
	return 0;
}

void pool_run(weft_fn fn, unsigned workers, unsigned threads_max,
	      weft_nsec idle_ns)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	opts.blocking_threads_max = threads_max;
	opts.blocking_idle_ns = idle_ns;
	ck_assert_int_eq(io_run_opts(fn, NULL, &opts), 0);
}
