/* SPDX-License-Identifier: MIT */
/*
 * Starting a runtime and stopping it with work in flight leaves no descriptor,
 * thread, mapping or memory behind.
 *
 * The test runs 10,000 cycles and compares the process before and after.  It
 * runs 1000 cycles where a tool makes each of them slow (WEFT_TEST_FEW).
 */
#include <sys/socket.h>

#include "tests/support/few.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

enum {
	WARM_UP = 50, /* until allocators and caches are filled */
	CYCLES = 10000,
	CYCLES_FEW = 1000,
	MAPS_MAX = 8,	     /* an allocator may map a little more */
	GROWTH_MAX_KB = 1024, /* in all cycles together */
};

/* ---- Resources of the process -------------------------------------------- */

struct has {
	int fds, maps;
	long resident_kb;
};

static int count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	int c, lines = 0;

	ck_assert_ptr_nonnull(f);
	while ((c = getc(f)) != EOF)
		lines += c == '\n';
	fclose(f);
	return lines;
}

/* Some kernels keep parts of what statm says apart for each processor. */
static long resident_kb(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[256];
	long kb = -1;

	if (!f)
		return -1;
	while (kb < 0 && fgets(line, sizeof(line), f))
		(void)sscanf(line, "Rss: %ld", &kb);
	fclose(f);
	return kb;
}

static struct has look(void)
{
	return (struct has){
		.fds = fds_open(),
		.maps = count_lines("/proc/self/maps"),
		.resident_kb = resident_kb(),
	};
}

/* ---- Work in flight ------------------------------------------------------ */

struct flight {
	int pipe[2];
	int sockets[2];
	int room[1];
	struct weft_chan chan;
	struct weft_mutex mutex;
	struct weft_sem begun;
};

static struct flight *flight_of(void *arg)
{
	return *(struct flight **)arg;
}

static int64_t reads(void *arg)
{
	struct flight *f = flight_of(arg);
	char c;

	weft_sem_release(&f->begun, 1);
	return weft_read(f->pipe[0], &c, 1);
}

static int64_t receives_bytes(void *arg)
{
	struct flight *f = flight_of(arg);
	char c;

	weft_sem_release(&f->begun, 1);
	return weft_recv(f->sockets[0], &c, 1, 0);
}

static int64_t sleeps(void *arg)
{
	weft_sem_release(&flight_of(arg)->begun, 1);
	return weft_sleep(WEFT_SEC(1000));
}

static int64_t receives(void *arg)
{
	struct flight *f = flight_of(arg);
	int v;

	weft_sem_release(&f->begun, 1);
	return weft_chan_recv(&f->chan, &v);
}

static int64_t locks(void *arg)
{
	struct flight *f = flight_of(arg);

	weft_sem_release(&f->begun, 1);
	return weft_mutex_lock(&f->mutex);
}

static int64_t spawns(void *arg)
{
	struct flight *f = flight_of(arg);

	weft_sem_release(&f->begun, 1);
	WEFT_SUPERVISE(all) {
		int error = 0;

		while (error == 0) {
			error = WEFT_GO(all, sleeps, f);
			if (error == 0)
				error = weft_sleep(WEFT_US(50));
		}
	}
	return 0;
}

static void flight_open(struct flight *f)
{
	memset(f, 0, sizeof(*f));
	ck_assert_int_eq(pipe2(f->pipe, O_CLOEXEC), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    f->sockets), 0);
	f->chan = (struct weft_chan)WEFT_CHAN_INIT(f->room);
}

static void flight_close(struct flight *f)
{
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(close(f->pipe[i]), 0);
		ck_assert_int_eq(close(f->sockets[i]), 0);
	}
}

/* Odd cycles are stopped when all tasks run, even cycles immediately. */
static void cycle(int i)
{
	static const weft_fn works[] = {
		reads, receives_bytes, sleeps, receives, locks, spawns,
	};
	enum { WORKS = sizeof(works) / sizeof(*works) };
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	struct flight flight, *f = &flight;

	flight_open(f);
	opts.workers = 1 + (unsigned)i % 3;
	ck_assert_int_eq(weft_mutex_lock(&f->mutex), 0);
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	for (int k = 0; k < WORKS; k++)
		ck_assert_int_eq(weft_submit(runtime, works[k], &f, sizeof(f),
					     NULL), 0);
	if (i % 2)
		ck_assert_int_eq(weft_sem_acquire(&f->begun, WORKS), 0);
	ck_assert_int_eq(weft_stop(runtime), 0);
	weft_mutex_unlock(&f->mutex);
	flight_close(f);
}

START_TEST(stopping_with_work_in_flight_leaves_nothing)
{
	/* Where there is little it waits for what the last one locked. */
	bool few = test_few() > 1 || !test_may_lock(64 << 20);
	int cycles = few ? CYCLES_FEW : CYCLES;
	int threads = threads_alone();
	struct has before, after;

	for (int i = 0; i < WARM_UP; i++)
		cycle(i);
	threads_become(threads);
	before = look();
	for (int i = 0; i < cycles; i++)
		cycle(i);
	threads_become(threads);
	after = look();
	ck_assert_int_eq(after.fds, before.fds);
#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN) && !defined(WEFT_VALGRIND)
	/* A sanitizer keeps freed memory for a while. */
	ck_assert_int_le(after.maps, before.maps + MAPS_MAX);
	if (test_needs(before.resident_kb >= 0, "growth of memory",
		       "/proc/self/smaps_rollup"))
		ck_assert_int_le(after.resident_kb,
				 before.resident_kb + GROWTH_MAX_KB);
#endif
}
END_TEST

/* ---- Resources in the kernel --------------------------------------------- */

static int64_t do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* weft waits 2.5 s for locked memory, which may be too short for a busy
 * machine. */
static int64_t run_when_there_is_room(const struct weft_opts *opts)
{
	weft_nsec until_ns = weft_now() + WEFT_SEC(20), start_ns;
	int64_t r;

	do {
		start_ns = weft_now();
		r = weft_run(do_nothing, NULL, opts);
		ck_assert(r == 0 || weft_now() - start_ns > WEFT_SEC(2));
	} while (r == -ENOMEM && weft_now() < until_ns);
	return r;
}

/* The kernel gives back a ring's locked memory some time after the ring was
 * closed.  The limit is too small for four rings of the usual size at a
 * time. */
START_TEST(runtimes_follow_each_other_where_little_may_be_locked)
{
	struct rlimit limit = { 64 << 10, 64 << 10 };
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1u << _i;
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	ck_assert(become_another_user());
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(run_when_there_is_room(&opts), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sched/cycles");
	TCase *leaks = tcase_create("leaks");
	TCase *limits = tcase_create("limits");

	tcase_add_test(leaks, stopping_with_work_in_flight_leaves_nothing);
	tcase_set_timeout(leaks, 250);
	suite_add_tcase(suite, leaks);
	tcase_set_timeout(limits, 60);
	if (test_needs(test_can(become_another_user),
		       "runtimes_follow_each_other_where_little_may_be_locked",
		       NEEDS_ANOTHER_USER))
		tcase_add_loop_test(
			limits,
			runtimes_follow_each_other_where_little_may_be_locked,
			0, 3);
	suite_add_tcase(suite, limits);
	return io_tests_run(suite);
}
