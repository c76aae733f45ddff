/* SPDX-License-Identifier: MIT */
/*
 * Calls on descriptors: invalid arguments, places where no wait is allowed,
 * signals, and non-blocking descriptors.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/support/io_scene.h"

#ifdef WEFT_VALGRIND
#include <valgrind/valgrind.h>
#endif

/* ---- Arguments ---------------------------------------------------------- */

static const int bad_fds[] = { -1, -100, 1000000, INT32_MAX, INT32_MIN };

IO_TEST(no_descriptor_is_ebadf)
{
	struct weft_addr addr;
	struct stat st;

	ck_assert_int_eq(weft_addr_parse("127.0.0.1:1", &addr), 0);
	for (size_t i = 0; i < sizeof(bad_fds) / sizeof(bad_fds[0]); i++) {
		int fd = bad_fds[i];

		ck_assert_int_eq(weft_read(fd, buffer, 1), -EBADF);
		ck_assert_int_eq(weft_readv(fd, pieces(), 2), -EBADF);
		ck_assert_int_eq(weft_write(fd, buffer, 1), -EBADF);
		ck_assert_int_eq(weft_writev(fd, pieces(), 2), -EBADF);
		ck_assert_int_eq(weft_pread(fd, buffer, 1, 0), -EBADF);
		ck_assert_int_eq(weft_pwrite(fd, buffer, 1, 0), -EBADF);
		ck_assert_int_eq(weft_recv(fd, buffer, 1, 0), -EBADF);
		ck_assert_int_eq(weft_recv(fd, buffer, 1, MSG_DONTWAIT),
				 -EBADF);
		ck_assert_int_eq(weft_send(fd, buffer, 1, 0), -EBADF);
		ck_assert_int_eq(weft_recvmsg(fd, message(), 0), -EBADF);
		ck_assert_int_eq(weft_sendmsg(fd, message(), 0), -EBADF);
		ck_assert_int_eq(weft_accept(fd, NULL), -EBADF);
		ck_assert_int_eq(weft_connect(fd, &addr), -EBADF);
		ck_assert_int_eq(weft_shutdown(fd, SHUT_RDWR), -EBADF);
		ck_assert_int_eq(weft_close(fd), -EBADF);
		ck_assert_int_eq(weft_poll(fd, POLLIN), -EBADF);
		ck_assert_int_eq(weft_fstat(fd, &st), -EBADF);
		ck_assert_int_eq(weft_fsync(fd), -EBADF);
		ck_assert_int_eq(weft_fdatasync(fd), -EBADF);
		ck_assert_int_eq(weft_sendfile(fd, fd, 0, 10, NULL), -EBADF);
		ck_assert_int_eq(weft_read_all(fd, buffer, 1, NULL), -EBADF);
		ck_assert_int_eq(weft_pwrite_all(fd, buffer, 1, 0, NULL),
				 -EBADF);
	}
	return 0;
}

/* Silences Valgrind's own report about the same arguments. */
static void silence_valgrind(bool silent)
{
#ifdef WEFT_VALGRIND
	if (silent)
		VALGRIND_DISABLE_ERROR_REPORTING;
	else
		VALGRIND_ENABLE_ERROR_REPORTING;
#else
	(void)silent;
#endif
}

IO_TEST(bad_memory_is_efault)
{
	struct scene scene;

	scene_open(&scene);
	ck_assert_int_eq(write(scene.others[0], "x", 1), 1);
	ck_assert_int_eq(weft_read(scene.empty, NULL, 1), -EFAULT);
	silence_valgrind(true);
	ck_assert_int_eq(weft_write(scene.quiet, (void *)1, 1), -EFAULT);
	silence_valgrind(false);
	ck_assert_int_eq(weft_readv(scene.empty, NULL, 2), -EFAULT);
	ck_assert_int_eq(weft_sendmsg(scene.quiet, NULL, 0), -EFAULT);
	ck_assert_int_eq(weft_recvmsg(scene.quiet, NULL, 0), -EFAULT);
	ck_assert_int_eq(weft_open(NULL, O_RDONLY, 0), -EFAULT);
	ck_assert_int_eq(weft_open((char *)1, O_RDONLY, 0), -EFAULT);
	ck_assert_int_eq(weft_stat(NULL, NULL), -EFAULT);
	ck_assert_int_eq(weft_fstat(scene.quiet, NULL), -EFAULT);
	scene_close(&scene);
	return 0;
}

IO_TEST(counts_and_offsets_out_of_range_are_einval)
{
	struct scene scene;

	scene_open(&scene);
	ck_assert_int_eq(weft_readv(scene.empty, pieces(), -1), -EINVAL);
	ck_assert_int_eq(weft_readv(scene.empty, pieces(), 1025), -EINVAL);
	ck_assert_int_eq(weft_writev(scene.quiet, pieces(), -1), -EINVAL);
	ck_assert_int_eq(weft_pread(scene.empty, buffer, 1, -1), -EINVAL);
	ck_assert_int_eq(weft_pwrite(scene.full, buffer, 1, -1), -EINVAL);
	ck_assert_int_eq(weft_sendfile(scene.quiet, 0, -1, 1, NULL), -EINVAL);
	ck_assert_int_eq(weft_connect(scene.quiet, NULL), -EINVAL);
	ck_assert_int_eq(weft_shutdown(scene.quiet, 77), -EINVAL);
	/* A descriptor that is not a file has no offsets. */
	ck_assert_int_eq(weft_pread(scene.empty, buffer, 1, 0), -ESPIPE);
	ck_assert_int_eq(weft_pwrite(scene.quiet, buffer, 1, 0), -ESPIPE);
	/* A count that is too large for a length makes a short transfer, or an
	 * error. */
	ck_assert_int_eq(write(scene.others[0], "abc", 3), 3);
	ck_assert_int_eq(weft_read(scene.empty, buffer, 0), 0);
	ck_assert_int_eq(weft_readv(scene.empty, pieces(), 0), 0);
	ck_assert_int_eq(weft_read(scene.empty, buffer, sizeof(buffer)), 3);
	scene_close(&scene);
	return 0;
}

static void every_call_is_eperm(void)
{
	struct scene none = { .empty = 0 };
	struct weft_addr addr = { .bytes = 0 };
	struct stat st;

	for (size_t i = 0; i < CALLS; i++)
		ck_assert_msg(calls[i].fn(&none) == -EPERM, "%s: %zd",
			      calls[i].name, calls[i].fn(&none));
	ck_assert_int_eq(weft_close(0), -EPERM);
	ck_assert_int_eq(weft_close(-1), -EPERM);
	ck_assert_int_eq(weft_shutdown(0, SHUT_RD), -EPERM);
	ck_assert_int_eq(weft_connect(0, &addr), -EPERM);
	ck_assert_int_eq(weft_poll(-1, 0), -EPERM);
	ck_assert_int_eq(weft_stat("/", &st), -EPERM);
	ck_assert_int_eq(weft_openat2(0, NULL, NULL, 0), -EPERM);
	ck_assert_int_eq(weft_fstat(0, &st), -EPERM);
	ck_assert_int_eq(weft_fsync(0), -EPERM);
	ck_assert_int_eq(weft_fdatasync(0), -EPERM);
	ck_assert_int_eq(weft_pread(0, buffer, 1, -1), -EPERM);
	ck_assert_int_eq(weft_pwrite(0, buffer, 1, 0), -EPERM);
	ck_assert_int_eq(weft_recv(0, buffer, 1, MSG_DONTWAIT), -EPERM);
	ck_assert_int_eq(weft_sendfile(0, 0, 0, 1, NULL), -EPERM);
	ck_assert_int_eq(weft_tcp_connect("127.0.0.1:1", NULL), -EPERM);
	ck_assert_int_eq(weft_unix_connect("unix:@x", NULL), -EPERM);
}

START_TEST(outside_a_task_every_call_is_eperm)
{
	every_call_is_eperm();
}
END_TEST

/* The rings belong to the parent, which goes on undisturbed. */
IO_TEST(in_a_forked_child_every_call_is_eperm)
{
	int fds[2], status;
	pid_t child;

	socket_pair(fds);
	ck_assert_int_eq(weft_write(fds[0], "1", 1), 1);
	child = fork();
	if (child == 0) {
		every_call_is_eperm();
		_exit(7);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	ck_assert_int_eq(weft_read(fds[1], buffer, 10), 1);
	close_both(fds);
	return 0;
}

/* ---- Signals ---------------------------------------------------------- */

IO_TEST(broken_pipe_is_epipe_and_no_signal)
{
	int fds[2], file;

	signal(SIGPIPE, SIG_DFL);
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_eq(weft_close(fds[0]), 0);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), -EPIPE);
	ck_assert_int_eq(weft_writev(fds[1], pieces(), 2), -EPIPE);
	ck_assert_int_eq(weft_write_all(fds[1], "x", 1, NULL), -EPIPE);
	ck_assert_int_eq(weft_close(fds[1]), 0);
	file = weft_open("/proc/self/exe", O_RDONLY, 0);
	ck_assert_int_ge(file, 0);
	socket_pair(fds);
	ck_assert_int_eq(weft_close(fds[0]), 0);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), -EPIPE);
	ck_assert_int_eq(weft_writev(fds[1], pieces(), 2), -EPIPE);
	ck_assert_int_eq(weft_send(fds[1], "x", 1, 0), -EPIPE);
	ck_assert_int_eq(weft_send(fds[1], "x", 1, MSG_DONTWAIT), -EPIPE);
	ck_assert_int_eq(weft_sendmsg(fds[1], message(), 0), -EPIPE);
	ck_assert_int_eq(weft_sendfile(fds[1], file, 0, 100, NULL), -EPIPE);
	close_both((int[]){ fds[1], file });
	return 0;
}

static int64_t write_full(void *arg)
{
	ssize_t n;

	/* The first write may only fill the room in the pipe's last page. */
	while ((n = weft_write(*(int *)arg, buffer, 10000)) > 0)
		;
	return n;
}

static void expect_sigpipe_at_default(void)
{
	sigset_t mask;

	ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
	ck_assert_int_eq(sigismember(&mask, SIGPIPE), 0);
	ck_assert_int_eq(sigpending(&mask), 0);
	ck_assert_int_eq(sigismember(&mask, SIGPIPE), 0);
}

static void write_to_broken_pipe(int flags)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC | flags), 0);
	ck_assert_int_eq(weft_close(fds[0]), 0);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), -EPIPE);
	ck_assert_int_eq(weft_writev(fds[1], pieces(), 2), -EPIPE);
	ck_assert_int_eq(weft_write_all(fds[1], "x", 1, NULL), -EPIPE);
	ck_assert_int_eq(weft_close(fds[1]), 0);
}

/* The write waits in the kernel when the reader closes. */
static void write_to_pipe_that_breaks(int flags)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	int64_t r = 0;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC | flags), 0);
	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, write_full, &fds[1],
					      sizeof(int), &opts),
				 0);
		wait_until(task_has_settled(task));
		ck_assert_int_eq(weft_close(fds[0]), 0);
		ck_assert_int_eq(weft_join(task, &r), 0);
	}
	ck_assert_int_eq(r, -EPIPE);
	ck_assert_int_eq(weft_close(fds[1]), 0);
}

static void write_to_all_pipes(void)
{
	write_to_broken_pipe(0);
	write_to_broken_pipe(O_NONBLOCK);
	write_to_pipe_that_breaks(0);
	write_to_pipe_that_breaks(O_NONBLOCK);
	expect_sigpipe_at_default();
}

IO_TEST(pipe_that_breaks_while_writing_is_epipe_and_no_signal)
{
	signal(SIGPIPE, SIG_DFL);
	write_to_all_pipes();
	return 0;
}

/* Nor do the workers block it: a process that a task starts would inherit
 * that. */
IO_TEST(older_kernels_raise_no_sigpipe_either)
{
	signal(SIGPIPE, SIG_DFL);
	/* Behaves like a kernel without RWF_NOSIGNAL. */
	weft__reactor(weft_runtime_self())->nosignal = false;
	weft_yield();
	write_to_all_pipes();
	return 0;
}

static void ignore(int signal)
{
	(void)signal;
}

/* Signals interrupt system calls all the time: no call returns EINTR. */
IO_TEST(signals_do_not_end_calls)
{
	struct sigaction action = { .sa_handler = ignore }; /* no SA_RESTART */
	struct itimerval storm = { { 0, 300 }, { 0, 300 } }, calm = { 0 };
	int fds[2];

	sigaction(SIGALRM, &action, NULL);
	socket_pair(fds);
	setitimer(ITIMER_REAL, &storm, NULL);
	for (int i = 0; i < 50; i++) {
		ssize_t n = 0;

		WEFT_WITHIN(WEFT_MS(2))
			n = weft_read(fds[0], buffer, 1);
		ck_assert_int_eq(n, -ETIMEDOUT);
		ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
		ck_assert_int_eq(weft_read(fds[0], buffer, 1), 1);
	}
	setitimer(ITIMER_REAL, &calm, NULL);
	close_both(fds);
	return 0;
}

/* ---- Descriptors that do not block --------------------------------------- */

static int64_t write_late(void *arg)
{
	int fd = *(int *)arg;

	weft_sleep(WEFT_MS(5));
	ck_assert_int_eq(weft_write(fd, "late", 4), 4);
	return 0;
}

IO_TEST(descriptors_that_do_not_block_are_waited_for)
{
	for (int kind = 0; kind < 2; kind++) {
		int fds[2];

		if (kind == 0)
			ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK),
					 0);
		else
			ck_assert_int_eq(
				socketpair(AF_UNIX,
					   SOCK_STREAM | SOCK_CLOEXEC |
						   SOCK_NONBLOCK,
					   0, fds),
				0);
		WEFT_SUPERVISE(scope) {
			ck_assert_int_eq(WEFT_GO(scope, write_late, fds[1]), 0);
			ck_assert_int_eq(weft_read(fds[0], buffer, 10), 4);
		}
		close_both(fds);
	}
	return 0;
}

IO_TEST(dontwait_does_not_wait)
{
	int fds[2];

	socket_pair(fds);
	ck_assert_int_eq(weft_recv(fds[0], buffer, 1, MSG_DONTWAIT), -EAGAIN);
	ck_assert_int_eq(weft_recvmsg(fds[0], message(), MSG_DONTWAIT),
			 -EAGAIN);
	fill(fds[0]);
	ck_assert_int_eq(weft_send(fds[0], buffer, 1, MSG_DONTWAIT), -EAGAIN);
	ck_assert_int_eq(weft_sendmsg(fds[0], message(), MSG_DONTWAIT),
			 -EAGAIN);
	close_both(fds);
	return 0;
}

static uint64_t ops(void)
{
	struct weft_stats stats;

	ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &stats), 0);
	return stats.total.ops;
}

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static ssize_t send_one(int fd)
{
	return weft_send(fd, "a", 1, 0);
}

static ssize_t send_message(int fd)
{
	return weft_sendmsg(fd, message(), 0);
}

static void send_alone_and_in_company(ssize_t (*send)(int fd))
{
	uint64_t before;
	int fds[2], tries = 0;

	socket_pair(fds);
	/* At the start of a tick, which under Valgrind may be over. */
	do {
		ck_assert_int_eq(weft_sleep(WEFT_US(100)), 0);
		before = ops();
		ck_assert_int_gt(send(fds[0]), 0);
	} while (ops() != before && ++tries < 100);
	ck_assert_uint_eq(ops(), before);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go(scope, nothing, NULL, 0), 0);
		ck_assert_int_gt(send(fds[0]), 0);
	}
	/* Without entries to share, only where the tick was over. */
	ck_assert(ops() - before == 1 ||
		  !weft__shard(weft__worker_self())->ring.batches);
	close_both(fds);
}

static int64_t both_sends(__attribute__((unused)) void *arg)
{
	send_alone_and_in_company(send_one);
	send_alone_and_in_company(send_message);
	return 0;
}

/* There is one worker, so no other worker takes the second task away. */
START_TEST(send_that_is_alone_is_a_call)
{
	io_run(both_sends, NULL, 1);
}
END_TEST

static void compute(uint64_t length_ns)
{
	uint64_t end_ns = weft_now() + length_ns;

	while (weft_now() < end_ns)
		;
}

static int64_t note_time(void *arg)
{
	uint64_t *ran_ns = *(uint64_t **)arg;

	ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	*ran_ns = weft_now();
	return 0;
}

static int64_t send_now_and_then(void *arg)
{
	int *fds = *(int **)arg, sent = 0;
	ssize_t r;

	/* The task is cancelled before it has waited for anything. */
	while (sent < 1000 && (r = weft_send(fds[0], "x", 1, 0)) > 0) {
		compute(WEFT_US(300));
		sent++;
	}
	ck_assert_int_eq(r, -ECANCELED);
	return 0;
}

static int64_t send_on(void *arg)
{
	uint64_t ran_ns = 0, *where = &ran_ns, began_ns = weft_now();
	int fds[2], *pair = fds, sent = 0;
	ssize_t r = 0;

	(void)arg;
	socket_pair(fds);
	/* Deadlines are met, */
	WEFT_WITHIN(WEFT_MS(5))
		while (sent < 1000 && (r = weft_send(fds[0], "x", 1, 0)) > 0) {
			compute(WEFT_US(300));
			sent++;
		}
	ck_assert_int_eq(r, -ETIMEDOUT);
	/* sleepers wake in time, */
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, note_time, where), 0);
		weft_yield();
		for (sent = 0; sent < 1000 && !ran_ns; sent++) {
			ck_assert_int_eq(weft_send(fds[0], "x", 1, 0), 1);
			compute(WEFT_US(300));
		}
	}
	ck_assert_int_lt(sent, 100);
	/* and a cancelled task ends. */
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, send_now_and_then, pair), 0);
		ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
		weft_scope_cancel(scope);
	}
	ck_assert_uint_lt(weft_now() - began_ns, WEFT_SEC(10));
	close_both(fds);
	return 0;
}

/* No other task is ready all the while, on one worker. */
START_TEST(sends_that_are_alone_hold_up_nothing)
{
	io_run(send_on, NULL, 1);
}
END_TEST

static int64_t put_on(void *arg)
{
	static const char page[4096];
	uint64_t ran_ns = 0, *where = &ran_ns;
	int fds[2], puts = 0;

	(void)arg;
	socket_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, note_time, where), 0);
		weft_yield();
		/* The socket has room for more than these. */
		for (; puts < 12 && !ran_ns; puts++) {
			ck_assert_int_eq(weft_stream_put(&stream, page,
							 sizeof(page)),
					 0);
			compute(WEFT_US(300));
		}
	}
	ck_assert_int_lt(puts, 12);
	weft_close(fds[1]);
	weft_stream_close(&stream);
	return 0;
}

/* Each put fills a buffer, which is sent at the next put. */
START_TEST(puts_that_are_alone_hold_up_nothing)
{
	io_run(put_on, NULL, 1);
}
END_TEST

static int64_t empty_later(void *arg)
{
	int fd = *(int *)arg;

	ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
	while (weft_recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT) > 0)
		;
	return 0;
}

IO_TEST(send_that_is_alone_waits_for_room)
{
	int fds[2];

	socket_pair(fds);
	fill(fds[0]);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, empty_later, fds[1]), 0);
		/* Makes sure that no other task is ready when the byte is
		 * sent. */
		ck_assert_int_eq(weft_yield(), 0);
		ck_assert_int_eq(weft_send(fds[0], "x", 1, 0), 1);
	}
	close_both(fds);
	return 0;
}

IO_TEST(poll_tells_what_holds)
{
	int fds[2];

	socket_pair(fds);
	ck_assert_int_eq(weft_poll(fds[0], POLLIN | POLLOUT), POLLOUT);
	ck_assert_int_eq(weft_write(fds[1], "x", 1), 1);
	ck_assert_int_eq(weft_poll(fds[0], POLLIN), POLLIN);
	ck_assert_int_eq(weft_close(fds[1]), 0);
	ck_assert_int_eq(weft_poll(fds[0], 0) & POLLHUP, POLLHUP);
	ck_assert_int_eq(weft_close(fds[0]), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/calls");
	TCase *arguments = tcase_create("arguments");
	TCase *signals = tcase_create("signals");
	TCase *blocking = tcase_create("blocking");

	tcase_set_timeout(signals, 60);
	io_add_test(arguments, no_descriptor_is_ebadf);
	io_add_test(arguments, bad_memory_is_efault);
	io_add_test(arguments, counts_and_offsets_out_of_range_are_einval);
	tcase_add_test(arguments, outside_a_task_every_call_is_eperm);
	io_add_test(arguments, in_a_forked_child_every_call_is_eperm);
	io_add_test(signals, broken_pipe_is_epipe_and_no_signal);
	io_add_test(signals,
		    pipe_that_breaks_while_writing_is_epipe_and_no_signal);
	io_add_test(signals, older_kernels_raise_no_sigpipe_either);
	io_add_test(signals, signals_do_not_end_calls);
	io_add_test(blocking, descriptors_that_do_not_block_are_waited_for);
	io_add_test(blocking, dontwait_does_not_wait);
	tcase_add_test(blocking, send_that_is_alone_is_a_call);
	tcase_add_test(blocking, sends_that_are_alone_hold_up_nothing);
	tcase_add_test(blocking, puts_that_are_alone_hold_up_nothing);
	io_add_test(blocking, send_that_is_alone_waits_for_room);
	io_add_test(blocking, poll_tells_what_holds);
	suite_add_tcase(suite, arguments);
	suite_add_tcase(suite, signals);
	suite_add_tcase(suite, blocking);
	return io_tests_run(suite);
}
