/* SPDX-License-Identifier: MIT */
/*
 * Scenes of waits that are given up, of signals, of blocking work on threads
 * beside the workers, and of dumps.
 *
 * Each scene runs a small program as the first task of a runtime.  Any call
 * that the sweep makes fail may return its documented errors (MAY), and the
 * runtime must end all the same.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>

#include "tests/fault/fault_scene.h"

/* ---- Waits that are cancelled, or closed --------------------------------- */

static int64_t read_one(void *arg)
{
	char byte;
	int64_t r = weft_read(*(int *)arg, &byte, 1);

	/* It may be closed before this task comes to it. */
	if (r != -ECANCELED && r != -EBADF)
		MAY(r, ENOMEM);
	return 0;
}

static int64_t read_many(void *arg)
{
	int fd = *(int *)arg;

	WEFT_SUPERVISE (readers)
		for (int i = 0; i < 20; i++)
			MAY_END(WEFT_GO(readers, read_one, fd), ENOMEM);
	return 0;
}

static int64_t cancelled(void *arg)
{
	int fds[2], r;
	char byte;

	(void)arg;
	scene_socket_pair(fds);
	WEFT_WITHIN (WEFT_US(200)) {
		r = weft_poll(fds[0], POLLIN);
		if (r != -ETIMEDOUT)
			MAY(r, ENOMEM);
		r = (int)weft_read(fds[0], &byte, 1);
		if (r != -ETIMEDOUT)
			MAY(r, ENOMEM);
	}
	WEFT_SUPERVISE (scope) {
		MAY(WEFT_GO(scope, read_many, fds[0]), ENOMEM);
		EXPECT(weft_sleep(WEFT_US(200)) == 0);
		weft_scope_cancel(scope);
	}
	WEFT_SUPERVISE (scope) {
		MAY(WEFT_GO(scope, read_many, fds[0]), ENOMEM);
		EXPECT(weft_sleep(WEFT_US(200)) == 0);
		EXPECT(weft_close(fds[0]) == 0);
	}
	EXPECT(weft_close(fds[1]) == 0);
	/* A listener that nobody closes. */
	r = (int)MAY(weft_tcp_listen("127.0.0.1:0", NULL), CONNECT_ERRORS);
	if (r < 0)
		return 0;
	WEFT_WITHIN (WEFT_US(100))
		if (weft_accept(r, NULL) != -ETIMEDOUT)
			EXPECT(fault_fired());
	close(r);
	return 0;
}

/* A request that the kernel is slow to let go of must not hold up the end: no
 * task is abandoned, so that the sweep would take the wait for a hang. */
void scene_cancelled(unsigned workers)
{
	struct weft_opts opts = scene_opts(workers);

	opts.shutdown_ns = WEFT_SEC(1000);
	MAY(weft_run(cancelled, NULL, &opts), RUN_ERRORS);
}

/* ---- Signals ------------------------------------------------------------- */

static int64_t raise_one(void *arg)
{
	(void)arg;
	EXPECT(kill(getpid(), SIGUSR1) == 0);
	return 0;
}

static int64_t signals(void *arg)
{
	int number = 0;
	int fd = (int)MAY(weft_signal_open(arg), FD_ERRORS);

	if (fd < 0)
		return 0;
	WEFT_SUPERVISE (scope)
		if (MAY(weft_go(scope, raise_one, NULL, 0), ENOMEM) == 0 &&
		    MAY(weft_signal_wait(fd, &number), MOVE_ERRORS) == 0)
			EXPECT(number == SIGUSR1);
	EXPECT(weft_close(fd) == 0);
	return 0;
}

void scene_signals(unsigned workers)
{
	struct timespec none = { 0, 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	scene_run(signals, &set, workers);
	sigtimedwait(&set, NULL, &none);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- Blocking work ------------------------------------------------------- */

static int64_t work(void *arg)
{
	poll(NULL, 0, 1);
	return (int64_t)(intptr_t)arg;
}

static struct weft_lane lane = WEFT_LANE_INIT("lane", 1);

static int64_t ask_for_work(void *arg)
{
	int i = *(int *)arg;
	int64_t r = MAY(weft_blocking_lane(i & 1 ? &lane : NULL, work,
					   (void *)(intptr_t)i),
			EAGAIN, ENOMEM);

	EXPECT(r < 0 || r == i);
	return 0;
}

static int64_t blocking(void *arg)
{
	struct weft_blocking_stats stats;

	(void)arg;
	WEFT_SUPERVISE (scope)
		for (int i = 0; i < 8; i++)
			MAY(WEFT_GO(scope, ask_for_work, i), ENOMEM);
	EXPECT(weft_blocking_stats_get(weft_runtime_self(), &stats) == 0);
	EXPECT(stats.running == 0 && stats.queued == 0);
	return 0;
}

void scene_blocking(unsigned workers)
{
	scene_run(blocking, NULL, workers);
}

/* ---- Dumps --------------------------------------------------------------- */

static int64_t wait_for(void *arg)
{
	EXPECT(weft_event_wait(*(struct weft_event **)arg) == 0);
	return 0;
}

static int64_t dump(void *arg)
{
	struct weft_event event = WEFT_EVENT_INIT;
	struct weft_event *pointer = &event;

	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 3; i++)
			MAY(WEFT_GO(scope, wait_for, pointer), ENOMEM);
		weft_yield();
		MAY(weft_dump(NULL, *(int *)arg), ENOMEM, EAGAIN);
		weft_event_set(&event);
	}
	return 0;
}

void scene_dump(unsigned workers)
{
	scene_run_file(dump, workers);
}

/* Asks by the socket; the runtime answers each that it can. */
static int64_t knock(void *arg)
{
	int fd = (int)MAY(weft_unix_connect(arg, NULL), CONNECT_ERRORS);
	char buf[512];
	int64_t n;

	if (fd < 0)
		return 0;
	do
		n = weft_read(fd, buf, sizeof(buf));
	while (n > 0);
	MAY(n, MOVE_ERRORS);
	EXPECT(weft_close(fd) == 0);
	return 0;
}

void scene_lookout(unsigned workers)
{
	struct weft_opts opts = scene_opts(workers);
	char address[64];

	snprintf(address, sizeof(address), "unix:@fault_door_%d",
		 (int)getpid());
	opts.stall_ns = WEFT_SEC(1000);
	opts.dump_signal = SIGUSR2;
	opts.dump_path = address + sizeof("unix:") - 1;
	MAY(weft_run(knock, address, &opts), RUN_ERRORS, ENOBUFS, EADDRINUSE);
}
