/* SPDX-License-Identifier: MIT */
/*
 * Scenes of runtimes, tasks, scopes and futures; and the list of all.
 */
#include <poll.h>

#include "tests/fault/fault_scene.h"

#include "tests/support/errno_now.h"

const struct weft_allocator *scene_allocator;
size_t scene_stack_bytes;

/* ---- Beginning and ending ----------------------------------------------- */

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int64_t give_number(void *arg)
{
	return *(int *)arg;
}

static void scene_start(unsigned workers)
{
	struct weft_opts opts = scene_opts(workers);
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;
	struct weft_runtime *runtime;
	struct weft_task task;
	int64_t result = 0;
	int number = 7;

	if (MAY(weft_start(&opts, &runtime), RUN_ERRORS) < 0)
		return;
	task_opts.ret_task = &task;
	if (MAY(weft_submit(runtime, give_number, &number, sizeof(number),
			    &task_opts),
		ENOMEM) == 0) {
		EXPECT(weft_wait(runtime, task, &result) == 0);
		EXPECT(result == 7);
	}
	EXPECT(weft_stop(runtime) == 0);
}

static int64_t sleep_and_count(void *arg)
{
	EXPECT(weft_sleep(WEFT_US(50)) == 0);
	++**(int **)arg;
	return 0;
}

/* A loop has one worker. */
static void scene_attach(unsigned workers)
{
	struct weft_opts opts = scene_opts(1);
	struct weft_runtime *runtime;
	struct pollfd pollfd = { .events = POLLIN };
	int ended = 0, *at = &ended, begun = 0;

	(void)workers;
	if (MAY(weft_attach(&opts, &runtime), RUN_ERRORS) < 0)
		return;
	pollfd.fd = weft_loop_fd(runtime);
	for (int i = 0; i < 3; i++)
		begun += MAY(weft_submit(runtime, sleep_and_count, &at,
					 sizeof(at), NULL),
			     ENOMEM) == 0;
	while (ended < begun) {
		EXPECT(poll(&pollfd, 1, -1) == 1 || errno_now() == EINTR);
		EXPECT(weft_turn(runtime, NULL) >= 0);
	}
	EXPECT(weft_stop(runtime) == 0);
}

static void scene_run_alone(unsigned workers)
{
	scene_run(nothing, NULL, workers);
}

static void scene_submit(unsigned workers)
{
	struct weft_opts opts = scene_opts(workers);
	struct weft_runtime *runtime;
	char big[300] = { 1 };

	if (MAY(weft_start(&opts, &runtime), RUN_ERRORS) < 0)
		return;
	for (int i = 0; i < 20; i++)
		MAY(weft_submit(runtime, nothing, big, sizeof(big), NULL),
		    ENOMEM);
	EXPECT(weft_stop(runtime) == 0);
}

/* ---- Tasks --------------------------------------------------------------- */

struct tally {
	weft__atomic(int64_t) ran;
	int64_t started;
	struct weft_event go_on;
};

static int64_t count_one(void *arg)
{
	struct tally *tally = *(struct tally **)arg;

	/* relaxed: read when all have been joined. */
	weft__add(&tally->ran, (int64_t)1, relaxed);
	return 0;
}

static int64_t wait_and_count(void *arg)
{
	struct tally *tally = *(struct tally **)arg;

	EXPECT(weft_event_wait(&tally->go_on) == 0);
	return count_one(arg);
}

/* Starts so many with arguments of that size. */
static void start_some(struct weft_scope *scope, struct tally *tally,
		       weft_fn fn, int count, size_t arg_bytes)
{
	char arg[2000] = { 0 };

	memcpy(arg, &tally, sizeof(struct tally *));
	for (int i = 0; i < count; i++)
		if (MAY(weft_go(scope, fn, arg, arg_bytes), ENOMEM) == 0)
			tally->started++;
}

static int64_t tasks(void *arg)
{
	static const size_t sizes[] = { 8, 16, 100, 2000 };
	struct tally tally = { .go_on = WEFT_EVENT_INIT };
	int64_t failed = 0;

	(void)arg;
	WEFT_SCOPE (scope, &failed) {
		for (int i = 0; i < 4; i++)
			start_some(scope, &tally, count_one, 10, sizes[i]);
		/* More than a slab of stacks. */
		start_some(scope, &tally, wait_and_count, 70, sizes[0]);
		weft_event_set(&tally.go_on);
	}
	EXPECT(failed == 0);
	/* relaxed: all have been joined. */
	EXPECT(weft__load(&tally.ran, relaxed) == tally.started);
	return 0;
}

static void scene_tasks(unsigned workers)
{
	scene_run(tasks, NULL, workers);
}

/* More than eight chunks of records. */
static int64_t crowd(void *arg)
{
	struct tally tally = { .go_on = WEFT_EVENT_INIT };

	(void)arg;
	WEFT_SUPERVISE (scope)
		start_some(scope, &tally, count_one, 36000, sizeof(void *));
	/* relaxed: all have been joined. */
	EXPECT(weft__load(&tally.ran, relaxed) == tally.started);
	return 0;
}

static void scene_crowd(unsigned workers)
{
	scene_run(crowd, NULL, workers);
}

static int64_t join_one(struct weft_scope *scope, size_t stack_bytes,
			unsigned flags)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t result = 0;
	int number = 5;

	opts.stack_bytes = stack_bytes;
	opts.flags = flags;
	opts.ret_task = &task;
	if (MAY(weft_go_opts(scope, give_number, &number, sizeof(number),
			     &opts),
		ENOMEM) < 0)
		return 0;
	EXPECT(weft_join(task, &result) == 0);
	EXPECT(result == 5);
	return result;
}

static int64_t handles(void *arg)
{
	(void)arg;
	WEFT_SCOPE (scope, NULL) {
		join_one(scope, 16 << 10, 0);
		join_one(scope, 1 << 20, WEFT_PINNED);
		join_one(scope, 0, WEFT_FUTURE);
		join_one(scope, 64 << 20, 0);
	}
	return 0;
}

static void scene_handles(unsigned workers)
{
	scene_run(handles, NULL, workers);
}

/* ---- Workers that help and wake each other ------------------------------- */

static int64_t compute(void *arg)
{
	weft_nsec until_ns = weft_now() + WEFT_MS(4);

	(void)arg;
	while (weft_now() < until_ns)
		;
	return 0;
}

static int64_t sleep_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		EXPECT(weft_sleep(WEFT_US(100)) == 0);
	return 0;
}

/* Timers come due while a worker is in a task that does not pause. */
static int64_t computes(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 5; i++)
			MAY(weft_go(scope, sleep_often, NULL, 0), ENOMEM);
		weft_yield();
		MAY(weft_go(scope, compute, NULL, 0), ENOMEM);
	}
	return 0;
}

static void scene_computes(unsigned workers)
{
	scene_run(computes, NULL, workers);
}

struct ball {
	struct weft_chan *from, *to;
};

static int64_t play(void *arg)
{
	struct ball *ball = arg;
	int64_t hits;

	while (weft_chan_recv(ball->from, &hits) == 0) {
		if (++hits > 20)
			weft_chan_close(ball->from);
		if (hits > 20 || weft_chan_send(ball->to, &hits) < 0)
			break;
	}
	weft_chan_close(ball->to);
	return 0;
}

/* Each player stays where it is, and wakes the other worker. */
static int64_t pinned(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int64_t there[1], back[1], hits = 0;
	struct weft_chan first = WEFT_CHAN_INIT(there);
	struct weft_chan second = WEFT_CHAN_INIT(back);
	struct ball players[] = { { &first, &second }, { &second, &first } };

	(void)arg;
	opts.flags = WEFT_PINNED;
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 2; i++)
			if (MAY(weft_go_opts(scope, play, &players[i],
					     sizeof(players[i]), &opts),
				ENOMEM) < 0)
				weft_chan_close(players[i].from);
		weft_yield();
		(void)!weft_chan_send(&first, &hits);
	}
	return 0;
}

static void scene_pinned(unsigned workers)
{
	scene_run(pinned, NULL, workers);
}

/* ---- Scopes -------------------------------------------------------------- */

static int64_t sleep_long(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(1000));
}

static int64_t win(void *arg)
{
	(void)arg;
	weft_yield();
	return 3;
}

static int64_t races(void *arg)
{
	int64_t result;
	int began = -ENOMEM;

	(void)arg;
	WEFT_RACE(race, &result)
	{
		began = (int)MAY(weft_go(race, win, NULL, 0), ENOMEM);
		if (began == 0)
			MAY_END(weft_go(race, sleep_long, NULL, 0), ENOMEM);
	}
	EXPECT(result == (began == 0 ? 3 : -ECHILD));
	WEFT_SUPERVISE (few) {
		EXPECT(weft_scope_limit(few, 2) == 0);
		for (int i = 0; i < 20; i++)
			MAY(weft_go(few, win, NULL, 0), ENOMEM);
	}
	WEFT_SUPERVISE (all) {
		for (int i = 0; i < 20; i++)
			MAY(weft_go(all, sleep_long, NULL, 0), ENOMEM);
		weft_scope_cancel(all);
	}
	return 0;
}

static void scene_races(unsigned workers)
{
	scene_run(races, NULL, workers);
}

/* ---- Futures ------------------------------------------------------------- */

struct future {
	WEFT_FUTURE_STATE;
	struct weft_event *event;
	struct weft_chan *chan;
	int64_t value;
	char more[100];
};

#define AWAIT_ERRORS ENOMEM, ECANCELED

static int64_t future(void *arg)
{
	struct future *f = arg;
	int r;

	WEFT_FUTURE_BEGIN(f);
	MAY(weft_future_within(WEFT_SEC(1000)), ENOMEM);
	WEFT_AWAIT_AS(f, r, weft_await_sleep(WEFT_US(50)));
	MAY(r, AWAIT_ERRORS);
	WEFT_AWAIT_AS(f, r, weft_await_yield());
	MAY(r, AWAIT_ERRORS);
	WEFT_AWAIT_AS(f, r, weft_await_event(f->event));
	MAY(r, AWAIT_ERRORS);
	f->value = 1;
	WEFT_AWAIT_AS(f, r, weft_await_chan_send(f->chan, &f->value));
	MAY(r, AWAIT_ERRORS);
	WEFT_FUTURE_END(f);
	return 0;
}

static int64_t futures(void *arg)
{
	struct weft_event event = WEFT_EVENT_INIT;
	int64_t room[64];
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	struct future state = { .event = &event, .chan = &chan };

	(void)arg;
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 10; i++)
			MAY(WEFT_GO_FUTURE(scope, future, state), ENOMEM);
		WEFT_WITHIN (WEFT_SEC(1000))
			for (int i = 0; i < 10; i++)
				MAY(WEFT_GO_FUTURE(scope, future, state),
				    ENOMEM);
		EXPECT(weft_sleep(WEFT_US(100)) == 0);
		weft_event_set(&event);
	}
	return 0;
}

static void scene_futures(unsigned workers)
{
	scene_run(futures, NULL, workers);
}

/* ---- All of them --------------------------------------------------------- */

const struct fault_scene fault_scenes[] = {
	{ "run", scene_run_alone, false },
	{ "start", scene_start, false },
	{ "attach", scene_attach, false },
	{ "submit", scene_submit, false },
	{ "tasks", scene_tasks, false },
	{ "crowd", scene_crowd, false },
	{ "handles", scene_handles, false },
	{ "computes", scene_computes, true },
	{ "pinned", scene_pinned, false },
	{ "races", scene_races, false },
	{ "futures", scene_futures, false },
	{ "channels", scene_channels, false },
	{ "select", scene_select, false },
	{ "semaphores", scene_semaphores, false },
	{ "locks", scene_locks, false },
	{ "time", scene_time, false },
	{ "locals", scene_locals, false },
	{ "news", scene_news, false },
	{ "oneshots", scene_oneshots, false },
	{ "pipes", scene_pipes, false },
	{ "files", scene_files, false },
	{ "sendfile", scene_sendfile, false },
	{ "copy", scene_copy, false },
	{ "paths", scene_paths, false },
	{ "copy tree", scene_copy_tree, false },
	{ "trees", scene_trees, false },
	{ "pipeline", scene_pipeline, false },
	{ "tcp", scene_tcp, false },
	{ "tcp futures", scene_tcp_futures, false },
	{ "unix", scene_unix, false },
	{ "datagrams", scene_datagrams, false },
	{ "dial", scene_dial, false },
	{ "names", scene_names, false },
	{ "streams", scene_streams, false },
	{ "processes", scene_processes, false },
	{ "cancelled", scene_cancelled, false },
	{ "signals", scene_signals, false },
	{ "watching", scene_watching, false },
	{ "following", scene_following, false },
	{ "blocking", scene_blocking, false },
	{ "dump", scene_dump, true },
	{ "watchdog", scene_lookout, true },
};

const int fault_scenes_count = sizeof(fault_scenes) / sizeof(fault_scenes[0]);
