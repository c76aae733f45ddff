/* SPDX-License-Identifier: MIT */
#include "tests/support/io_kit.h"

#include <pthread.h>
#include <sys/syscall.h>

#include "tests/support/threads.h"

struct io_main {
	weft_fn fn;
	void *arg;
};

/* A worker's own: it has two of them for a moment when its thread begins. */
static bool is_schedstat(int dir_fd, const char *name)
{
	char target[64];
	ssize_t bytes = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	target[bytes > 0 ? bytes : 0] = 0;
	return strstr(target, "/schedstat") != NULL;
}

int fds_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		count += !is_schedstat(dirfd(dir), entry->d_name);
	closedir(dir);
	return count - 3; /* ".", "..", and the directory itself */
}

void thread_pause_ns(long ns)
{
	struct timespec pause = { ns / 1000000000, ns % 1000000000 };

	ppoll(NULL, 0, &pause, NULL);
}

void expect_fds(int before)
{
	weft_nsec until_ns = weft_now() + WEFT_SEC(20);

	while (fds_open() != before && weft_now() < until_ns)
		thread_pause_ns(1000000);
	ck_assert_int_eq(fds_open(), before);
}

int threads_now(void)
{
	return threads_count("iou-", false);
}

void threads_become(int count)
{
	weft_nsec until_ns = weft_now() + WEFT_SEC(20);

	while (threads_now() != count) {
		ck_assert_msg(weft_now() < until_ns, "%d threads, not %d",
			      threads_now(), count);
		sched_yield();
	}
}

static void *count_threads(void *ret_count)
{
	*(int *)ret_count = threads_now();
	return NULL;
}

int threads_alone(void)
{
	pthread_t thread;
	int count = 0;

	/* The first thread also starts a sanitizer's own thread. */
	ck_assert_int_eq(pthread_create(&thread, NULL, count_threads, &count),
			 0);
	pthread_join(thread, NULL);
	threads_become(count - 1);
	return count - 1;
}

void wait_for_all_workers(void)
{
	struct weft_worker_stats stats;

	for (unsigned i = 0;
	     weft_stats_worker(weft_runtime_self(), i, &stats) == 0;)
		if (stats.ticks > 0 || stats.parks > 0 || stats.polls > 0)
			i++;
		else
			ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
}

/* Nothing lay about that a worker should have been woken for.  A tool that
 * runs one thread at a time makes those wait that were woken. */
static void expect_no_rescues(void)
{
#if !defined(WEFT__ASAN) && !defined(WEFT__TSAN) && !defined(WEFT_VALGRIND)
	struct weft_stats stats;

	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &stats), 0);
	ck_assert_uint_eq(stats.total.rescues, 0);
#endif
}

static int64_t io_main_task(void *arg)
{
	struct io_main *io_main = arg;
	int64_t r;

	wait_for_all_workers();
	r = io_main->fn(io_main->arg);

	ck_assert_uint_eq(weft__load(&weft__reactor(weft_runtime_self())->stale,
				     relaxed),
			  0);
	expect_no_rescues();
	return r;
}

int64_t io_run_opts(weft_fn fn, void *arg, const struct weft_opts *opts)
{
	struct io_main io_main = { fn, arg };
	int before = fds_open();
	int64_t r = weft_run(io_main_task, &io_main, opts);

	expect_fds(before);
	return r;
}

void io_run(weft_fn fn, void *arg, unsigned workers)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = workers;
	ck_assert_int_eq(io_run_opts(fn, arg, &opts), 0);
}

void socket_pair(int fds[2])
{
	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

int fd_far(int fd)
{
	struct rlimit limit;
	int far;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	far = fcntl(fd, F_DUPFD_CLOEXEC,
		    limit.rlim_cur < 400 ? (int)limit.rlim_cur / 2 : 200);
	ck_assert_int_ge(far, 0);
	ck_assert_int_eq(close(fd), 0);
	return far;
}

void close_both(const int fds[2])
{
	ck_assert_int_eq(weft_close(fds[0]), 0);
	ck_assert_int_eq(weft_close(fds[1]), 0);
}

void reset_when_closed(int fd)
{
	const struct linger none = { 1, 0 };

	ck_assert_int_eq(
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
}

int tcp_listener(char text[WEFT_ADDR_TEXT_BYTES])
{
	return tcp_listener_at("127.0.0.1:0", text);
}

int tcp_listener_at(const char *address, char text[WEFT_ADDR_TEXT_BYTES])
{
	struct weft_addr addr;
	int fd = weft_tcp_listen(address, NULL);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_local_addr(fd, &addr), 0);
	ck_assert_int_gt(weft_addr_format(&addr, text, WEFT_ADDR_TEXT_BYTES),
			 0);
	return fd;
}

bool task_has_settled(struct weft_task task)
{
	struct weft__task *record =
		weft__task_at(weft_runtime_self(), task.id);

	/* pairs: [task.wake] */
	return weft__load(&record->state, acquire) &
	       (WEFT__PARKED | WEFT__DONE);
}

int calls_waiting(int fd)
{
	struct weft__fd *entry =
		weft__fd_find(&weft__reactor(weft_runtime_self())->fds, fd);
	int count = 0;

	if (!entry)
		return 0;
	weft__lock_take(&entry->lock);
	for (struct weft__task *task = entry->waiting; task;
	     task = weft__op_of(task)->fd_next)
		count++;
	weft__lock_drop(&entry->lock);
	return count;
}

/* The functions of libraries have parameters of their own for `which`. */
static void limit_call(int which, const struct rlimit *limit,
		       struct rlimit *ret_old)
{
	ck_assert_int_eq(syscall(SYS_prlimit64, 0, which, limit, ret_old), 0);
}

rlim_t address_space_used(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	ck_assert_ptr_nonnull(file);
	ck_assert_int_eq(fscanf(file, "%lu", &pages), 1);
	fclose(file);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

struct rlimit limit_set(int which, rlim_t soft)
{
	struct rlimit old, limit;

	limit_call(which, NULL, &old);
	limit = (struct rlimit){ soft < old.rlim_max ? soft : old.rlim_max,
				 old.rlim_max };
	limit_call(which, &limit, NULL);
	return old;
}

void limit_reset(int which, struct rlimit old)
{
	limit_call(which, &old, NULL);
}

int io_tests_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
