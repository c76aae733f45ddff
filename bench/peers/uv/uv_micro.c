/* SPDX-License-Identifier: MIT */
/*
 * libuv has no tasks: only its timers can be compared with weft's.
 *
 *	uv_micro timer|sleep [--workers 1] [--label L]
 *
 * A timer is a caller-owned node in the loop's heap, armed without a lock.
 * Arming reads the loop's cached time, so the clock is not in the figure.
 */
#include <uv.h>

#include "../micro/out.h"

enum { TIMERS = 1000000, SLEEPERS = 100000, SLEEP_MS = 10 };

struct sleeper {
	uv_timer_t timer;
	uint64_t due_ns;
};

static uv_loop_t loop;
static uint64_t *late_ns;
static size_t woken;

static void never(uv_timer_t *timer)
{
	(void)timer;
}

static void woke(uv_timer_t *timer)
{
	uint64_t now = now_ns(), due = ((struct sleeper *)timer)->due_ns;

	late_ns[woken++] = now > due ? now - due : 0;
}

/* 10 to 60 s from now, spread over the wheel or heap. */
static void arm(uv_timer_t *timer, uint64_t i)
{
	uv_timer_start(timer, never, 10000 + i * 7919 % 50000, 0);
}

static void bench_timer(void)
{
	uv_timer_t *v = calloc(TIMERS, sizeof(*v));
	uint64_t i, t0;

	for (i = 0; i < TIMERS; i++)
		uv_timer_init(&loop, &v[i]);
	t0 = now_ns();
	for (i = 0; i < TIMERS; i++)
		arm(&v[i], i);
	per_op("timer_insert_1M", t0, TIMERS);
	t0 = now_ns();
	for (i = 0; i < TIMERS; i++)
		uv_timer_stop(&v[i]);
	per_op("timer_cancel_1M", t0, TIMERS);
	t0 = now_ns();
	for (i = 0; i < TIMERS; i++) {
		arm(&v[i], i);
		uv_timer_stop(&v[i]);
	}
	per_op("timer_insert_cancel_pair", t0, TIMERS);
}

static void sleep_round(const char *round, struct sleeper *v)
{
	uint64_t t0 = now_ns();

	woken = 0;
	for (size_t i = 0; i < SLEEPERS; i++) {
		uv_timer_init(&loop, &v[i].timer);
		uv_update_time(&loop);
		v[i].due_ns = now_ns() + SLEEP_MS * 1000000;
		uv_timer_start(&v[i].timer, woke, SLEEP_MS, 0);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	emit_sleep(round, t0, late_ns, SLEEPERS);
}

static void bench_sleep(void)
{
	struct sleeper *v = calloc(SLEEPERS, sizeof(*v));

	late_ns = calloc(SLEEPERS, sizeof(*late_ns));
	sleep_round("_cold", v);
	for (size_t i = 0; i < SLEEPERS; i++)
		uv_close((uv_handle_t *)&v[i].timer, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	sleep_round("", v);
}

int main(int argc, char **argv)
{
	const char *bench = argc > 1 ? argv[1] : "";

	out_label = "libuv";
	for (int i = 2; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--label") == 0)
			out_label = argv[i + 1];
	uv_loop_init(&loop);
	if (strcmp(bench, "timer") == 0)
		bench_timer();
	else if (strcmp(bench, "sleep") == 0)
		bench_sleep();
	else
		return 2;
	return 0;
}
