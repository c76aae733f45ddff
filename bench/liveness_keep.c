/* SPDX-License-Identifier: MIT */
/*
 * Keeps the other workers, so that what a task starts meanwhile runs on its own
 * worker.  Each worker of a crew has a pinned task for that, its keeper.
 */
#include "bench/liveness.h"

#include <sched.h>

static struct {
	struct weft_sem asked[LIVE_WORKERS_MAX];
	/* The number of the latest time: asked for, come to, over. */
	weft__atomic(unsigned) time, over;
	weft__atomic(unsigned) kept[LIVE_WORKERS_MAX];
	weft__atomic(bool) leave;
} keep;

struct post {
	unsigned worker;
	pid_t thread; /* the worker's */
	weft__atomic(int) *place;
};

enum place { UNKNOWN, HERE, ELSEWHERE };

static int64_t keeper(void *arg)
{
	struct post post = *(struct post *)arg;
	unsigned worker = post.worker;
	bool here = live_thread() == post.thread;

	/* relaxed: flags that publish nothing. */
	weft__store(post.place, here ? HERE : ELSEWHERE, relaxed);
	while (here) {
		unsigned time;

		bench_must("weft_sem_acquire",
			   weft_sem_acquire(&keep.asked[worker], 1));
		/* relaxed: as above. */
		if (weft__load(&keep.leave, relaxed))
			break;
		time = weft__load(&keep.time, relaxed);
		weft__store(&keep.kept[worker], time, relaxed);
		while (weft__load(&keep.over, relaxed) != time)
			sched_yield();
	}
	return 0;
}

void live_keeper_start(struct weft_scope *scope, unsigned worker)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	weft__atomic(int) place;
	struct post post = { worker, live_thread(), &place };

	opts.flags = WEFT_PINNED;
	/* Another worker may take a task before it has run. */
	do {
		/* relaxed: as in keeper(). */
		weft__store(&place, UNKNOWN, relaxed);
		bench_must("weft_go_opts",
			   weft_go_opts(scope, keeper, &post, sizeof(post),
					&opts));
		do
			bench_must("weft_yield", weft_yield());
		while (weft__load(&place, relaxed) == UNKNOWN);
	} while (weft__load(&place, relaxed) != HERE);
}

static void await_keeper(unsigned worker)
{
	/* relaxed: as in keeper(). */
	while (weft__load(&keep.kept[worker], relaxed) !=
	       weft__load(&keep.time, relaxed))
		bench_must("weft_yield", weft_yield());
}

void live_keep_others(unsigned workers, unsigned self)
{
	/* relaxed: as in keeper(); one task at a time keeps others. */
	weft__add(&keep.time, 1u, relaxed);
	for (unsigned i = 0; i < workers; i++)
		if (i != self)
			weft_sem_release(&keep.asked[i], 1);
	for (unsigned i = 0; i < workers; i++)
		if (i != self)
			await_keeper(i);
}

void live_let_others_go(void)
{
	/* relaxed: as in keeper(). */
	weft__store(&keep.over, weft__load(&keep.time, relaxed), relaxed);
}

void live_keepers_end(unsigned workers)
{
	/* relaxed: as in keeper(). */
	weft__store(&keep.leave, true, relaxed);
	for (unsigned i = 0; i < workers; i++)
		weft_sem_release(&keep.asked[i], 1);
}
