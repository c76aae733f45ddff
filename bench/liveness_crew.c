/* SPDX-License-Identifier: MIT */
/*
 * A task on each worker.  A pinned task stays on the worker where it first
 * runs.  So tasks are started until one of them has run on every worker.  A
 * task that has a seat keeps its worker busy meanwhile, so that the next tasks
 * run on the other workers; a task that finds the seat of its worker taken
 * returns.
 */
#include "bench/liveness.h"

#include <pthread.h>
#include <sys/syscall.h>

/* One crew exists at a time: the scope of the one before has ended. */
static struct {
	pthread_mutex_t lock;
	unsigned workers;
	weft__atomic(unsigned) seated;
	pid_t seats[LIVE_WORKERS_MAX]; /* under lock; 0: free */
	live_body body;
	void *arg;
} crew = { .lock = PTHREAD_MUTEX_INITIALIZER };

#define SEAT_SPIN_NS 300000u

pid_t live_thread(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* Takes the seat of this worker if it is free; seat 0 is that of the first
 * thread.  Returns the number of the seat, or -1. */
static int seat_take(void)
{
	pid_t thread = live_thread();
	unsigned i = thread == getpid() ? 0 : 1;
	int taken = -1;

	pthread_mutex_lock(&crew.lock);
	while (i > 0 && i < crew.workers && crew.seats[i] != 0 &&
	       crew.seats[i] != thread)
		i++;
	if (i < crew.workers && crew.seats[i] == 0) {
		crew.seats[i] = thread;
		taken = (int)i;
	}
	pthread_mutex_unlock(&crew.lock);
	return taken;
}

static bool crew_complete(void)
{
	/* relaxed: a count that publishes nothing. */
	return weft__load(&crew.seated, relaxed) == crew.workers;
}

static int64_t crew_member(void *arg)
{
	int seat = seat_take();
	uint64_t end_ns = now_ns() + SEAT_SPIN_NS;

	(void)arg;
	if (seat < 0)
		return 0;
	/* relaxed: as in crew_complete(). */
	weft__add(&crew.seated, 1u, relaxed);
	while (!crew_complete() && now_ns() < end_ns)
		weft__spin_hint();
	while (!crew_complete())
		bench_must("weft_sleep", weft_sleep(WEFT_US(200)));
	return crew.body((unsigned)seat, crew.arg);
}

void live_crew(struct weft_scope *scope, unsigned workers, live_body body,
	       void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.flags = WEFT_PINNED;
	crew.workers = workers;
	crew.body = body;
	crew.arg = arg;
	memset(crew.seats, 0, sizeof(crew.seats));
	/* relaxed: the tasks are started later, and see it. */
	weft__store(&crew.seated, 0u, relaxed);
	while (!crew_complete()) {
		for (unsigned i = 0; i < workers; i++)
			bench_must("weft_go_opts",
				   weft_go_opts(scope, crew_member, NULL, 0,
						&opts));
		bench_must("weft_sleep", weft_sleep(WEFT_MS(1)));
	}
}
