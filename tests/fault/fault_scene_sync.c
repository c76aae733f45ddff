/* SPDX-License-Identifier: MIT */
/*
 * Scenes of what tasks share (channels, semaphores, locks, broadcasts and
 * oneshots), of time, and of what a task has of its own.
 *
 * A task that cannot be started, for want of memory, must not keep the others
 * waiting: each scene ends all the same.
 */
#include "tests/fault/fault_scene.h"

/* ---- Channels, select, semaphores ---------------------------------------- */

static int64_t produce(void *arg)
{
	struct weft_chan *chan = *(struct weft_chan **)arg;

	for (int64_t i = 0; i < 50; i++)
		EXPECT(weft_chan_send(chan, &i) == 0);
	weft_chan_close(chan);
	return 0;
}

static int64_t channels(void *arg)
{
	int64_t room[4], item, sum = 0;
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	struct weft_chan *pointer = &chan;

	(void)arg;
	WEFT_SCOPE (scope, NULL)
		if (MAY(WEFT_GO(scope, produce, pointer), ENOMEM) == 0) {
			while (weft_chan_recv(&chan, &item) == 0)
				sum += item;
			EXPECT(sum == 49 * 50 / 2);
		}
	return 0;
}

void scene_channels(unsigned workers)
{
	scene_run(channels, NULL, workers);
}

static int64_t select_some(void *arg)
{
	int64_t room[1], item;
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	int fds[2][2];

	(void)arg;
	for (int i = 0; i < 2; i++)
		scene_socket_pair(fds[i]);
	for (int i = 0; i < 4; i++) {
		struct weft_case cases[] = {
			WEFT_RECV(&chan, &item),
			WEFT_READY(fds[0][0], POLLIN),
			WEFT_READY(fds[1][0], POLLIN),
			WEFT_AT(weft_now() + WEFT_US(200)),
		};

		if (i & 1)
			EXPECT(write(fds[i / 2][1], "", 1) == 1);
		MAY(weft_select(cases, 4), ENOMEM, EAGAIN);
	}
	for (int i = 0; i < 4; i++)
		EXPECT(weft_close(fds[i / 2][i % 2]) == 0);
	return 0;
}

void scene_select(unsigned workers)
{
	scene_run(select_some, NULL, workers);
}

static int64_t acquire(void *arg)
{
	struct weft_sem *sem = *(struct weft_sem **)arg;
	int r = weft_sem_acquire(sem, 1);

	EXPECT(r == 0 || r == -ECANCELED);
	if (r == 0)
		weft_sem_release(sem, 1);
	return 0;
}

static int64_t semaphores(void *arg)
{
	struct weft_sem sem = WEFT_SEM_INIT(0);
	struct weft_sem *pointer = &sem;

	(void)arg;
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 5; i++)
			MAY(WEFT_GO(scope, acquire, pointer), ENOMEM);
		weft_yield();
		weft_scope_cancel(scope);
	}
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 5; i++)
			MAY(WEFT_GO(scope, acquire, pointer), ENOMEM);
		weft_yield();
		weft_sem_release(&sem, 1);
	}
	EXPECT(weft_sem_count(&sem) == 1);
	return 0;
}

void scene_semaphores(unsigned workers)
{
	scene_run(semaphores, NULL, workers);
}

struct locks {
	struct weft_mutex mutex;
	struct weft_cond cond;
	struct weft_rwlock rwlock;
	struct weft_wait_group count;
	int turns;
};

static int64_t use_locks(void *arg)
{
	struct locks *locks = *(struct locks **)arg;

	EXPECT(weft_rwlock_read(&locks->rwlock) == 0);
	weft_yield();
	weft_rwlock_unlock(&locks->rwlock);
	EXPECT(weft_rwlock_write(&locks->rwlock) == 0);
	EXPECT(weft_mutex_lock(&locks->mutex) == 0);
	locks->turns++;
	weft_cond_signal(&locks->cond);
	weft_mutex_unlock(&locks->mutex);
	weft_rwlock_unlock(&locks->rwlock);
	weft_wait_group_done(&locks->count);
	return 0;
}

static int64_t lock_all(void *arg)
{
	struct locks locks = { .turns = 0 };
	struct locks *pointer = &locks;
	int started = 0;

	(void)arg;
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 6; i++) {
			weft_wait_group_add(&locks.count, 1);
			if (MAY(WEFT_GO(scope, use_locks, pointer), ENOMEM) ==
			    0)
				started++;
			else
				weft_wait_group_done(&locks.count);
		}
		EXPECT(weft_mutex_lock(&locks.mutex) == 0);
		while (locks.turns < started)
			EXPECT(weft_cond_wait(&locks.cond, &locks.mutex) == 0);
		weft_mutex_unlock(&locks.mutex);
		EXPECT(weft_wait_group_wait(&locks.count) == 0);
	}
	return 0;
}

void scene_locks(unsigned workers)
{
	scene_run(lock_all, NULL, workers);
}

/* ---- Time ---------------------------------------------------------------- */

static int64_t sleep_short(void *arg)
{
	return weft_sleep(WEFT_US(20) * (unsigned)*(int *)arg);
}

static int64_t sleep_long(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_SEC(1000));
}

static int64_t time_passes(void *arg)
{
	struct weft_interval interval;
	int r = 0;

	(void)arg;
	WEFT_SUPERVISE (scope)
		for (int i = 0; i < 20; i++)
			MAY(WEFT_GO(scope, sleep_short, i), ENOMEM);
	WEFT_WITHIN (WEFT_US(300))
		r = weft_sleep(WEFT_SEC(1000));
	EXPECT(r == -ETIMEDOUT);
	WEFT_WITHIN (WEFT_US(100))
		WEFT_SUPERVISE (scope)
			MAY_END(weft_go(scope, sleep_long, NULL, 0), ENOMEM);
	EXPECT(weft_interval_init(&interval, WEFT_US(50), WEFT_MISSED_SKIP) ==
	       0);
	for (int i = 0; i < 3; i++)
		EXPECT(weft_interval_wait(&interval) >= 1);
	return 0;
}

void scene_time(unsigned workers)
{
	scene_run(time_passes, NULL, workers);
}

/* ---- Locals -------------------------------------------------------------- */

static weft__atomic(int) undone;

static void undo(void *arg)
{
	(void)arg;
	/* relaxed: read when the task has been joined. */
	weft__add(&undone, 1, relaxed);
}

static struct weft_task_local_key key = WEFT_TASK_LOCAL_KEY(undo);

static int64_t has_locals(void *arg)
{
	int due = 0;

	(void)arg;
	due += MAY(weft_task_local_set(&key, &due), ENOMEM) == 0;
	due += MAY(weft_defer(undo, NULL), ENOMEM) == 0;
	due += MAY(weft_defer(undo, NULL), ENOMEM) == 0;
	weft_yield();
	return due;
}

static int64_t locals(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t due = 0;

	(void)arg;
	/* relaxed: no task runs. */
	weft__store(&undone, 0, relaxed);
	opts.ret_task = &task;
	WEFT_SCOPE (scope, NULL)
		if (MAY(weft_go_opts(scope, has_locals, NULL, 0, &opts),
			ENOMEM) == 0)
			EXPECT(weft_join(task, &due) == 0);
	/* relaxed: it was joined. */
	EXPECT(weft__load(&undone, relaxed) == due);
	return 0;
}

void scene_locals(unsigned workers)
{
	scene_run(locals, NULL, workers);
}

/* ---- Values for everyone, oneshots --------------------------------------- */

struct news {
	struct weft_broadcast *broadcast;
	struct weft_watch *watch;
};

static int64_t listen_to(void *arg)
{
	struct news *news = arg;
	struct weft_subscriber mine;
	uint64_t version = 0;
	int64_t r, item;

	weft_subscribe(news->broadcast, &mine);
	do
		r = weft_broadcast_recv(&mine, &item);
	while (r >= 0);
	EXPECT(r == -EPIPE);
	while (weft_watch_wait(news->watch, &version, &item) == 0)
		;
	return 0;
}

static int64_t tell_all(void *arg)
{
	int64_t room[4], value = 0;
	struct weft_broadcast broadcast = WEFT_BROADCAST_INIT(room);
	struct weft_watch watch = WEFT_WATCH_INIT(value);
	struct news news = { &broadcast, &watch };

	(void)arg;
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 4; i++)
			MAY(WEFT_GO(scope, listen_to, news), ENOMEM);
		for (int64_t i = 0; i < 10; i++) {
			EXPECT(weft_broadcast_send(&broadcast, &i) == 0);
			EXPECT(weft_watch_set(&watch, &i) == 0);
			weft_yield();
		}
		weft_broadcast_close(&broadcast);
		weft_watch_close(&watch);
	}
	return 0;
}

void scene_news(unsigned workers)
{
	scene_run(tell_all, NULL, workers);
}

static int64_t answer(void *arg)
{
	int64_t item = 9;

	weft_yield();
	weft_oneshot_send(*(struct weft_oneshot **)arg, &item);
	return 0;
}

static int64_t oneshots(void *arg)
{
	struct weft_oneshot *oneshot;
	int64_t item;

	(void)arg;
	WEFT_SUPERVISE (scope)
		for (int i = 0; i < 4; i++) {
			if (MAY(weft_oneshot_new(sizeof(item), &oneshot),
				ENOMEM) < 0)
				continue;
			if (MAY(WEFT_GO(scope, answer, oneshot), ENOMEM) < 0)
				weft_oneshot_drop(oneshot);
			if (i & 1)
				weft_oneshot_abandon(oneshot);
			else
				(void)!weft_oneshot_recv(oneshot, &item);
		}
	return 0;
}

void scene_oneshots(unsigned workers)
{
	scene_run(oneshots, NULL, workers);
}
