/* SPDX-License-Identifier: MIT */
/*
 * How many children a second start, run /bin/true and end?
 *
 *	bench_spawn spawn|spawn_rss [--workers N] [--label L]
 *
 * Method.  8 tasks start a child, wait for it and start the next, 2000 in all;
 * spawn_rss with 1 GiB of memory that was written to.  The peer
 * (peers/raw/posix_spawn.c) is a thread for each worker, each with its part of
 * 8 children, by posix_spawn(3) and waitpid(2).
 *
 * What would fool it: the first children read the program from the disk, so
 * some are started before; a huge page would make the memory cheap to copy, so
 * there are none.  Where a child is born decides how soon it runs: both sides
 * have the same processors.
 */
#include "bench/bench.h"
#include "runtime/base/atomic.h"

#include <sys/mman.h>

enum { CHILDREN = 8, WARM = 50, TOTAL = 2000 };
#define RESIDENT_BYTES ((size_t)1 << 30)

static weft__atomic(int) left;

static int64_t spawner(void *arg)
{
	static const char *const argv[] = { "/bin/true", NULL };
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;
	struct weft_process *process;
	struct weft_exit exit;

	(void)arg;
	opts.argv = argv;
	/* relaxed: a count. */
	while (weft__add(&left, -1, relaxed) > 0) {
		bench_must("weft_spawn", weft_spawn(&opts, &process));
		bench_must("weft_process_wait",
			   weft_process_wait(process, &exit));
		bench_must("/bin/true", exit.status ? -EIO : 0);
		bench_must("weft_process_close",
			   weft_process_close(process, NULL));
	}
	return 0;
}

static void spawn_many(int count)
{
	/* relaxed: before there are tasks. */
	weft__store(&left, count, relaxed);
	WEFT_SCOPE(scope, NULL)
		for (int i = 0; i < CHILDREN; i++)
			bench_go(scope, spawner, NULL, 0);
}

static int64_t spawn(void *arg)
{
	uint64_t t0;

	spawn_many(WARM);
	t0 = now_ns();
	spawn_many(TOTAL);
	emit(arg, TOTAL * 1e9 / (double)(now_ns() - t0), "spawns/s");
	return 0;
}

static void memory_take(void)
{
	char *memory = mmap(NULL, RESIDENT_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		bench_die("mmap", -ENOMEM);
	madvise(memory, RESIDENT_BYTES, MADV_NOHUGEPAGE);
	memset(memory, 1, RESIDENT_BYTES);
}

int main(int argc, char **argv)
{
	static const struct bench_option options[] = { { NULL, NULL, false } };
	const char *what = bench_parse(argc, argv, options);

	if (strcmp(what, "spawn_rss") == 0)
		memory_take();
	else if (strcmp(what, "spawn") != 0)
		return 2;
	bench_run(spawn, (void *)(uintptr_t)what);
	return 0;
}
