/* SPDX-License-Identifier: MIT */
/*
 * Programs that must end within a second.
 *
 *	z10  the program on which Cats Effect 3.0 hung: tasks that spin on a
 *	     flag and yield, 200 that do nothing, one that sets the flag, 1000
 *	     that do nothing; the first task spins too, then all are joined
 *	z11  the same program in all variants: how the tasks spin, how the
 *	     setter is started, and its position among the other 1200
 *
 * Method.  n - 1, n and 4n spinners for n workers; the figure is the longest
 * time of a program, in ms, and must be less than 1000.  If a program hangs, a
 * watch ends the process and prints the program's name.
 *
 *	spinning   yield; sleep 0; start a task, which never leaves the slot
 *		   for the newest task, and join it; send a byte through a pipe
 *		   of the spinner's own, which is always ready
 *	setting    when started; after a timer; after a byte that a thread
 *		   writes; in a task that a thread submits
 *
 * What would fool it: with more workers than cores, a worker that the kernel
 * has preempted delays its tasks for some milliseconds.  The figure includes
 * that.
 */
#include "bench/liveness.h"

#include <pthread.h>
#include <semaphore.h>

enum { BEFORE = 200, NO_OPS = 1200, Z10_TIMES = 50, STEP = 50, STEP_FEW = 600 };

#define END_MS 1000.0

enum spin { SPIN_YIELD, SPIN_SLEEP, SPIN_NEWEST, SPIN_READY, SPINS };
enum set { SET_START, SET_TIMER, SET_BYTE, SET_THREAD, SETS };

static const char *const spin_names[] = { "yields", "sleeps 0", "joins",
					  "ready pipe" };
static const char *const set_names[] = { "started", "timer", "byte",
					 "thread" };

/* A variant of the program. */
struct program {
	enum spin spin;
	enum set set;
	unsigned spinners;
	int position; /* of the setter, among tasks that do nothing */
};

static struct {
	const char *what;
	unsigned workers;
	weft__atomic(bool) flag;
	int pipe[2];
	sem_t helper;
	enum set help;
	struct weft_runtime *runtime;
	double z10_ms, z11_ms;
} fair;

static bool flag_is_set(void)
{
	/* relaxed: a flag that publishes nothing. */
	return weft__load(&fair.flag, relaxed);
}

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int64_t set_flag(void *arg)
{
	(void)arg;
	/* relaxed: as in flag_is_set(). */
	weft__store(&fair.flag, true, relaxed);
	return 0;
}

static int64_t set_after_timer(void *arg)
{
	bench_must("weft_sleep", weft_sleep(WEFT_MS(1)));
	return set_flag(arg);
}

static int64_t set_after_byte(void *arg)
{
	char byte;

	bench_must("weft_read", weft_read(fair.pipe[0], &byte, 1));
	return set_flag(arg);
}

/* A thread that is not a worker. */
static void *helper(void *arg)
{
	for (;;) {
		char byte = 0;

		while (sem_wait(&fair.helper) != 0)
			;
		usleep(500);
		if (fair.help == SET_BYTE &&
		    write(fair.pipe[1], &byte, 1) != 1)
			bench_die("write", -errno);
		if (fair.help == SET_THREAD)
			bench_must("weft_submit",
				   weft_submit(fair.runtime, set_flag, NULL, 0,
					       NULL));
	}
	return arg;
}

/*
 * Spinning.
 */

static void spin_newest(void)
{
	WEFT_SUPERVISE(scope)
		while (!flag_is_set())
			bench_join(bench_fork(scope, nothing, NULL, 0));
}

static void spin_ready(void)
{
	int fds[2];
	char byte = 0;

	if (pipe(fds) < 0)
		bench_die("pipe", -errno);
	while (!flag_is_set()) {
		bench_must("weft_write", weft_write(fds[1], &byte, 1));
		bench_must("weft_read", weft_read(fds[0], &byte, 1));
	}
	weft_close(fds[0]);
	weft_close(fds[1]);
}

static void spin(enum spin how)
{
	if (how == SPIN_NEWEST)
		spin_newest();
	else if (how == SPIN_READY)
		spin_ready();
	else
		while (!flag_is_set())
			bench_must("a spin", how == SPIN_YIELD ?
						     weft_yield() :
						     weft_sleep(0));
}

static int64_t spinner(void *arg)
{
	spin(*(enum spin *)arg);
	return 0;
}

/*
 * A program.
 */

static void start_setter(struct weft_scope *scope, enum set set)
{
	static const weft_fn bodies[] = {
		[SET_START] = set_flag,
		[SET_TIMER] = set_after_timer,
		[SET_BYTE] = set_after_byte,
	};

	if (set != SET_THREAD)
		bench_go(scope, bodies[set], NULL, 0);
	if (set == SET_BYTE || set == SET_THREAD) {
		fair.help = set;
		sem_post(&fair.helper);
	}
}

static double program_ms(const struct program *p)
{
	uint64_t t0 = now_ns();
	char name[128];

	snprintf(name, sizeof(name), "%s: %u spinners (%s), setter (%s) at %d",
		 fair.what, p->spinners, spin_names[p->spin],
		 set_names[p->set], p->position);
	live_watch(name, 3);
	/* relaxed: the tasks are started later, and see it. */
	weft__store(&fair.flag, false, relaxed);
	WEFT_SUPERVISE(scope) {
		for (unsigned i = 0; i < p->spinners; i++)
			bench_must("weft_go", WEFT_GO(scope, spinner, p->spin));
		for (int i = 0; i <= NO_OPS; i++)
			if (i == p->position)
				start_setter(scope, p->set);
			else
				bench_go(scope, nothing, NULL, 0);
		spin(p->spin);
	}
	live_watch(NULL, 0);
	return (double)(now_ns() - t0) / 1e6;
}

/* Runs it with n - 1, n and 4n spinners; keeps the longest time. */
static void worst_of(struct program *p, double *worst_ms)
{
	unsigned n = fair.workers, counts[] = { n - 1, n, 4 * n };

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		double ms;

		p->spinners = counts[i];
		ms = program_ms(p);
		if (ms >= END_MS)
			fprintf(stderr,
				"%s: %.0f ms: %u spinners (%s), setter (%s) "
				"at %d\n",
				fair.what, ms, p->spinners,
				spin_names[p->spin], set_names[p->set],
				p->position);
		if (ms > *worst_ms)
			*worst_ms = ms;
	}
}

static void sweep(void)
{
	for (int spin_ = 0; spin_ < SPINS; spin_++)
		for (int set = 0; set < SETS; set++) {
			int step = set == SET_START ? STEP : STEP_FEW;

			for (int at = 0; at <= NO_OPS; at += step) {
				struct program p = { (enum spin)spin_,
						     (enum set)set, 0, at };

				worst_of(&p, &fair.z11_ms);
			}
		}
}

static int64_t fair_main(void *arg)
{
	(void)arg;
	fair.runtime = weft_runtime_self();
	for (int i = 0; i < Z10_TIMES; i++) {
		struct program p = { SPIN_YIELD, SET_START, 0, BEFORE };

		worst_of(&p, &fair.z10_ms);
	}
	sweep();
	live_rescues(fair.what);
	return 0;
}

void live_fairness(const char *what, const struct live_opts *opts)
{
	pthread_t thread;

	fair.what = what;
	fair.workers = opts->workers;
	sem_init(&fair.helper, 0, 0);
	if (pipe(fair.pipe) < 0)
		bench_die("pipe", -errno);
	if (pthread_create(&thread, NULL, helper, NULL) != 0)
		live_fail(what, "no thread for the helper");
	live_run(fair_main, NULL);
	live_figure(what, "z10", fair.z10_ms, END_MS, "ms");
	live_figure(what, "z11", fair.z11_ms, END_MS, "ms");
}
