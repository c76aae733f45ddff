/* SPDX-License-Identifier: MIT */
/*
 * Children by posix_spawn(3) and waitpid(2): the figure a runtime should
 * approach.
 *
 *	posix_spawn spawn|spawn_rss [--workers N] [--label L]
 *
 * A thread for each worker.  Each keeps its part of 8 children running: it
 * waits for the oldest, and starts another.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../micro/out.h"

enum { CHILDREN = 8, WARM = 50, TOTAL = 2000, THREADS_MAX = 8 };
#define RESIDENT_BYTES ((size_t)1 << 30)

extern char **environ;

static atomic_int left;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static pid_t start(void)
{
	static char path[] = "/bin/true";
	char *argv[] = { path, NULL };
	pid_t pid;

	if (atomic_fetch_sub(&left, 1) <= 0)
		return 0;
	if (posix_spawn(&pid, path, NULL, NULL, argv, environ) != 0)
		fail("posix_spawn");
	return pid;
}

static void *keep_running(void *arg)
{
	int count = CHILDREN / out_workers, status;
	pid_t pids[CHILDREN];

	(void)arg;
	for (int i = 0; i < count; i++)
		pids[i] = start();
	for (int i = 0; pids[i]; i = (i + 1) % count) {
		if (waitpid(pids[i], &status, 0) != pids[i] || status)
			fail("waitpid");
		pids[i] = start();
	}
	return NULL;
}

static void spawn_many(int count)
{
	pthread_t threads[THREADS_MAX];

	left = count;
	for (int i = 1; i < out_workers; i++)
		if (pthread_create(&threads[i], NULL, keep_running, NULL) != 0)
			fail("pthread_create");
	keep_running(NULL);
	for (int i = 1; i < out_workers; i++)
		pthread_join(threads[i], NULL);
}

static void memory_take(void)
{
	char *memory = mmap(NULL, RESIDENT_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	madvise(memory, RESIDENT_BYTES, MADV_NOHUGEPAGE);
	memset(memory, 1, RESIDENT_BYTES);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	uint64_t t0;

	for (int i = 2; i + 1 < argc; i += 2)
		if (strcmp(argv[i], "--workers") == 0)
			out_workers = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "--label") == 0)
			out_label = argv[i + 1];
	if (out_workers < 1 || out_workers > THREADS_MAX)
		return 2;
	if (strcmp(what, "spawn_rss") == 0)
		memory_take();
	else if (strcmp(what, "spawn") != 0)
		return 2;
	spawn_many(WARM);
	t0 = now_ns();
	spawn_many(TOTAL);
	emit(what, TOTAL * 1e9 / (double)(now_ns() - t0), "spawns/s");
	return 0;
}
