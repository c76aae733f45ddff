/* SPDX-License-Identifier: MIT */
/*
 * Sending files: what arrives, which way it goes, and that no thread waits.
 *
 * This file defines sendfile(2) in the place of the C library: it counts the
 * calls, expects a socket that does not block and, where pages can be counted,
 * that they are in the cache, and fails when a test wants it to.  Most tests
 * send a file of a megabyte over socket pairs or TCP connections, which block
 * or do not, and have less room than the file needs; the bytes that a receiver
 * gets are compared with those of the file.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

#include "io/os/syscall.h"
#include "tests/support/idle.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/page_cache.h"

enum { FILE_BYTES = 1 << 20 };

static char expected[FILE_BYTES], got[FILE_BYTES + 1];

/* ---- A sendfile(2) that checks, and fails on demand ---------------------- */

static weft__atomic(unsigned) sendfiles; /* calls by the library */
static weft__atomic(int) sendfile_error; /* 0: none */
static int put_in_place = -1; /* a socket that takes its number after a call */

/* The library must not call this for a blocking socket, nor for parts of a file
 * that are not in the page cache. */
ssize_t sendfile(int to, int from, off_t *offset, size_t bytes)
{
	int error = weft__load(&sendfile_error, relaxed);

	weft__add(&sendfiles, 1u, relaxed);
	ck_assert(fcntl(to, F_GETFL) & O_NONBLOCK);
	/* Where the cached pages cannot be counted, weft looks only at samples
	 * of them; of an overlay it believes for a moment what it saw. */
	ck_assert(pages_counted(from) < 0 || is_on_overlay(from) ||
		  is_resident(from, *offset, bytes));
	if (error) {
		errno = error;
		return -1;
	}
	bytes = (size_t)syscall(SYS_sendfile, to, from, offset, bytes);
	if (put_in_place >= 0) {
		ck_assert_int_eq(weft_close(to), 0);
		ck_assert_int_eq(dup2(put_in_place, to), to);
		put_in_place = -1;
	}
	return (ssize_t)bytes;
}

static unsigned sendfiles_taken(void)
{
	return weft__swap(&sendfiles, 0u, relaxed);
}

/* ---- The scene ---------------------------------------------------------- */

/* Returns an unnamed file of one megabyte on a disk. */
static int file_new(void)
{
	char name[] = "/var/tmp/weft-sendfile-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	unlink(name);
	for (size_t i = 0; i < sizeof(expected); i++)
		expected[i] = (char)(i * 7 + i / 4096);
	ck_assert_int_eq(write(fd, expected, FILE_BYTES), FILE_BYTES);
	ck_assert_int_eq(fsync(fd), 0);
	return fd;
}

static void tcp_pair(int fds[2])
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text);

	fds[0] = weft_tcp_connect(text, NULL);
	ck_assert_int_ge(fds[0], 0);
	fds[1] = weft_accept(listener, NULL);
	ck_assert_int_ge(fds[1], 0);
	ck_assert_int_eq(weft_close(listener), 0);
}

enum { TCP = 1, NONBLOCK = 2, KINDS = 4 };

/* Opens a sender and a receiver whose buffers are too small for the file. */
static void pair_open(int fds[2], int kind)
{
	int bytes = 65536;

	if (kind & TCP)
		tcp_pair(fds);
	else
		socket_pair(fds);
	if (kind & NONBLOCK)
		ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	setsockopt(fds[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

static int64_t receive(void *arg)
{
	int fd = *(int *)arg;
	size_t at = 0;
	ssize_t n;

	while ((n = weft_read(fd, got + at, FILE_BYTES + 1 - at)) > 0)
		at += (size_t)n;
	ck_assert_int_eq(n, 0);
	return (int64_t)at;
}

static void send_and_check(int kind, int file, off_t offset, size_t bytes,
			   size_t arrive)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task;
	size_t done = 77;
	int64_t r = 0;
	int fds[2];

	pair_open(fds, kind);
	opts.ret_task = &task;
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(weft_go_opts(scope, receive, &fds[1],
					      sizeof(int), &opts),
				 0);
		ck_assert_int_eq(weft_sendfile(fds[0], file, offset, bytes,
					       &done),
				 (ssize_t)arrive);
		ck_assert_uint_eq(done, arrive);
		ck_assert_int_eq(weft_shutdown(fds[0], SHUT_WR), 0);
		ck_assert_int_eq(weft_join(task, &r), 0);
	}
	ck_assert_int_eq(r, (int64_t)arrive);
	if (arrive)
		ck_assert_mem_eq(got, expected + offset, arrive);
	close_both(fds);
}

/* ---- The bytes that arrive ---------------------------------------------- */

IO_TEST(what_was_asked_for_is_sent)
{
	int file = file_new();

	ck_assert_int_eq(lseek(file, 99, SEEK_SET), 99);
	for (int kind = 0; kind < KINDS; kind++) {
		send_and_check(kind, file, 0, FILE_BYTES, FILE_BYTES);
		send_and_check(kind, file, 12345, 200000, 200000);
		send_and_check(kind, file, 5, 1, 1);
		send_and_check(kind, file, 5, 0, 0);
		/* Sends to the end of the file, and not beyond. */
		send_and_check(kind, file, FILE_BYTES - 10, SIZE_MAX, 10);
		send_and_check(kind, file, FILE_BYTES, 10, 0);
		send_and_check(kind, file, (off_t)1 << 62, 10, 0);
	}
	ck_assert_int_eq(lseek(file, 0, SEEK_CUR), 99);
	ck_assert_int_eq(weft_close(file), 0);
	return 0;
}

IO_TEST(cached_files_are_not_copied_to_sockets_that_do_not_block)
{
	int file = file_new();

	for (int kind = 0; kind < KINDS; kind++) {
		sendfiles_taken();
		send_and_check(kind, file, 0, FILE_BYTES, FILE_BYTES);
		if (kind & NONBLOCK)
			ck_assert_uint_ge(sendfiles_taken(), 4);
		else
			ck_assert_uint_eq(sendfiles_taken(), 0);
		/* A short transfer is not worth a call of sendfile(2). */
		send_and_check(kind, file, 9999, 10000, 10000);
		ck_assert_uint_eq(sendfiles_taken(), 0);
	}
	ck_assert_int_eq(weft_close(file), 0);
	return 0;
}

IO_TEST(uncached_files_arrive_too)
{
	int file = file_new();

	evict(file);
	for (int kind = 0; kind < KINDS; kind++) {
		send_and_check(kind, file, 0, FILE_BYTES, FILE_BYTES);
		evict(file);
		if (pages_counted(file) < 0)
			continue;
		/* Leaves a gap in the middle of the cached pages. */
		ck_assert_int_eq(pread(file, got, 40 * PAGE, 0), 40 * PAGE);
		ck_assert_int_eq(pread(file, got, 20 * PAGE, 44 * PAGE),
				 20 * PAGE);
		send_and_check(kind, file, 0, FILE_BYTES, FILE_BYTES);
		evict(file);
	}
	ck_assert_int_eq(weft_close(file), 0);
	return 0;
}

static void cache_check(int fd, bool counts)
{
	ck_assert(!counts || !weft__syscall_is_cached(fd, 0, 1));
	ck_assert(!counts || !weft__syscall_is_cached(fd, 0, FILE_BYTES));
	ck_assert_int_eq(pread(fd, got, 32 * PAGE, 0), 32 * PAGE);
	ck_assert(weft__syscall_is_cached(fd, 0, 32 * PAGE));
	ck_assert(weft__syscall_is_cached(fd, 32 * PAGE - 1, 1));
	ck_assert(!counts || !weft__syscall_is_cached(fd, 0, 32 * PAGE + 1));
}

IO_TEST(owner_is_told_what_is_cached)
{
	int fd = file_new();

	if (!test_needs(!is_on_tmpfs(fd) && !is_on_overlay(fd),
			"owner_is_told_what_is_cached", NEEDS_DISK))
		return weft_close(fd);
	evict(fd);
	cache_check(fd, pages_counted(fd) >= 0);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

static bool become_nobody(void)
{
	return geteuid() == 0 && seteuid(65534) == 0;
}

/* A user who neither owns a file nor may write it may not count its cached
 * pages.  Weft then tries pages; a try starts reading the page, and a fast disk
 * may finish that before the try ends. */
IO_TEST(whoever_asks_is_told_what_is_cached)
{
	int fd = file_new(), reader;
	char path[64];

	if (!test_needs(!is_on_tmpfs(fd) && !is_on_overlay(fd),
			"whoever_asks_is_told_what_is_cached", NEEDS_DISK))
		return weft_close(fd);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = weft_open(path, O_RDONLY, 0);
	ck_assert_int_ge(reader, 0);
	evict(reader);
	ck_assert(become_nobody());
	cache_check(reader, pages_counted(reader) >= 0);
	ck_assert_int_eq(seteuid(0), 0);
	close_both((int[]){ fd, reader });
	return 0;
}

IO_TEST(what_sendfile_refuses_is_copied)
{
	static const int errors[] = { EINVAL, EOPNOTSUPP, ENOSYS };
	int file = file_new();

	for (size_t i = 0; i < 3; i++) {
		weft__store(&sendfile_error, errors[i], relaxed);
		sendfiles_taken();
		send_and_check(TCP | NONBLOCK, file, 0, FILE_BYTES,
			       FILE_BYTES);
		ck_assert_uint_eq(sendfiles_taken(), 1);
	}
	weft__store(&sendfile_error, 0, relaxed);
	ck_assert_int_eq(weft_close(file), 0);
	return 0;
}

/* Returns how long the bytes are on their way. */
static weft_nsec send_shrunk(void)
{
	int file = file_new(), fds[2];
	weft_nsec sent_ns;
	size_t done = 0;
	ssize_t r = 0;

	pair_open(fds, TCP | NONBLOCK);
	ck_assert_int_eq(ftruncate(file, 1000), 0);
	WEFT_WITHIN(WEFT_SEC(20))
		r = weft_sendfile(fds[0], file, 0, FILE_BYTES, &done);
	ck_assert_int_eq(r, 1000);
	ck_assert_uint_eq(done, 1000);
	sent_ns = weft_now();
	ck_assert_int_eq(weft_read_all(fds[1], got, 1000, NULL), 0);
	sent_ns = weft_now() - sent_ns;
	ck_assert_int_eq(weft_close(file), 0);
	close_both(fds);
	return sent_ns;
}

/* No byte is held back, as the kernel does for 200 ms.  A machine with other
 * things to do may be late now and then. */
IO_TEST(file_that_shrinks_ends_early)
{
	weft_nsec least_ns = WEFT_NEVER;

	for (int i = 0; i < 10 && least_ns >= WEFT_MS(150); i++) {
		weft_nsec took_ns = send_shrunk();

		least_ns = took_ns < least_ns ? took_ns : least_ns;
	}
	ck_assert_uint_lt(least_ns, WEFT_MS(150));
	return 0;
}

/* ---- Waiting ------------------------------------------------------------ */

IO_TEST(deadline_tells_how_far_it_came)
{
	int file = file_new();

	for (int kind = 0; kind < KINDS; kind++) {
		size_t done = 0, arrived;
		ssize_t r = 0;
		int fds[2];

		pair_open(fds, kind);
		/* A deadline that has passed at the beginning leaves none. */
		for (weft_nsec ns = WEFT_MS(20); !done; ns *= 2) {
			WEFT_WITHIN(ns)
				r = weft_sendfile(fds[0], file, 0, FILE_BYTES,
						  &done);
			ck_assert_int_eq(r, -ETIMEDOUT);
		}
		ck_assert_uint_lt(done, FILE_BYTES);
		/* Exactly that many bytes arrive. */
		ck_assert_int_eq(weft_close(fds[0]), 0);
		ck_assert_int_eq(weft_read_all(fds[1], got, FILE_BYTES,
					       &arrived),
				 -ENODATA);
		ck_assert_uint_eq(arrived, done);
		ck_assert_mem_eq(got, expected, done);
		ck_assert_int_eq(weft_close(fds[1]), 0);
	}
	ck_assert_int_eq(weft_close(file), 0);
	return 0;
}

struct stuck {
	int fds[2];
	int file;
	size_t done;
};

static int64_t send_stuck(void *arg)
{
	struct stuck *stuck = *(struct stuck **)arg;

	return weft_sendfile(stuck->fds[0], stuck->file, 0, FILE_BYTES,
			     &stuck->done);
}

static bool has_bytes(int fd)
{
	int bytes = 0;

	ck_assert_int_eq(ioctl(fd, FIONREAD, &bytes), 0);
	return bytes > 0;
}

/* Waits until some bytes have arrived and the rest waits for room. */
static void await_stuck(const int fds[2])
{
	struct weft_runtime *runtime = weft__worker_self()->runtime;
	struct weft__fd_table *table = &weft__reactor(runtime)->fds;
	bool waits = false;

	while (!waits) {
		struct weft__fd *entry;

		ck_assert_int_eq(weft_sleep(WEFT_US(100)), 0);
		if (!has_bytes(fds[1]))
			continue;
		entry = weft__fd_find(table, fds[0]);
		weft__lock_take(&entry->lock);
		waits = entry->waiting != NULL;
		weft__lock_drop(&entry->lock);
	}
}

/* No thread waits, and none spins. */
IO_TEST(waiting_for_room_costs_nothing)
{
	struct stuck stuck = { .file = file_new() }, *it = &stuck;

	pair_open(stuck.fds, TCP | NONBLOCK);
	sendfiles_taken();
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, send_stuck, it), 0);
		wait_until(has_bytes(stuck.fds[1]));
		expect_idle();
		weft_scope_cancel(scope);
	}
	ck_assert_uint_lt(sendfiles_taken(), 200);
	ck_assert_int_eq(weft_close(stuck.file), 0);
	close_both(stuck.fds);
	return 0;
}

IO_TEST(close_ends_it)
{
	for (int kind = 0; kind < KINDS; kind++) {
		struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
		struct stuck stuck = { .file = file_new() }, *it = &stuck;
		struct weft_task task;
		int64_t r = 0;

		pair_open(stuck.fds, kind);
		opts.ret_task = &task;
		WEFT_SUPERVISE(scope) {
			ck_assert_int_eq(weft_go_opts(scope, send_stuck, &it,
						      sizeof(it), &opts),
					 0);
			await_stuck(stuck.fds);
			ck_assert_int_eq(weft_close(stuck.fds[0]), 0);
			ck_assert_int_eq(weft_join(task, &r), 0);
		}
		ck_assert_int_eq(r, -ECANCELED);
		ck_assert_uint_gt(stuck.done, 0);
		ck_assert_int_eq(weft_close(stuck.fds[1]), 0);
		ck_assert_int_eq(weft_close(stuck.file), 0);
	}
	return 0;
}

/* Between two steps of the call, the socket is closed and its number goes to
 * another socket.  The rest must not be sent to that one. */
IO_TEST(nothing_goes_to_who_gets_the_number_next)
{
	int file = file_new(), fds[2], others[2];
	size_t done = 0;

	pair_open(fds, TCP | NONBLOCK);
	pair_open(others, TCP | NONBLOCK);
	fds[0] = fd_far(fds[0]);
	put_in_place = others[0];
	ck_assert_int_eq(weft_sendfile(fds[0], file, 0, FILE_BYTES, &done),
			 -ECANCELED);
	ck_assert_uint_gt(done, 0);
	ck_assert_int_eq(weft_recv(others[1], got, 1, MSG_DONTWAIT), -EAGAIN);
	ck_assert_int_eq(weft_close(file), 0);
	close_both(fds);
	close_both(others);
	return 0;
}

/* ---- Refusals ----------------------------------------------------------- */

IO_TEST(broken_connection_is_epipe_and_no_signal)
{
	int file = file_new();
	sigset_t mask;

	signal(SIGPIPE, SIG_DFL);
	for (int kind = 0; kind < KINDS; kind++) {
		int fds[2];

		pair_open(fds, kind);
		ck_assert_int_eq(weft_shutdown(fds[0], SHUT_WR), 0);
		ck_assert_int_eq(weft_sendfile(fds[0], file, 0, 50000, NULL),
				 -EPIPE);
		close_both(fds);
	}
	sigpending(&mask);
	ck_assert_int_eq(sigismember(&mask, SIGPIPE), 0);
	ck_assert_int_eq(weft_close(file), 0);
	return 0;
}

/* The reset answers the first bytes while sendfile(2) sends more: the call
 * returns a count, and the kernel raises SIGPIPE nevertheless. */
IO_TEST(connection_that_breaks_halfway_raises_no_signal)
{
	int file = file_new(), fds[2];
	size_t done;

	signal(SIGPIPE, SIG_DFL);
	tcp_pair(fds);
	ck_assert_int_eq(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	ck_assert_int_eq(weft_close(fds[1]), 0);
	ck_assert_int_eq(weft_sendfile(fds[0], file, 0, FILE_BYTES, &done),
			 -EPIPE);
	ck_assert_uint_gt(done, 0);
	ck_assert_int_eq(weft_close(file), 0);
	ck_assert_int_eq(weft_close(fds[0]), 0);
	return 0;
}

/* The file is sent as one message or not at all; it is never split. */
IO_TEST(messages_are_not_cut)
{
	int file = file_new(), fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
						     SOCK_NONBLOCK,
				    0, fds),
			 0);
	sendfiles_taken();
	ck_assert_int_eq(weft_sendfile(fds[0], file, 0, 50000, NULL), 50000);
	ck_assert_int_eq(weft_recv(fds[1], got, FILE_BYTES, 0), 50000);
	ck_assert_mem_eq(got, expected, 50000);
	ck_assert_uint_eq(sendfiles_taken(), 0);
	ck_assert_int_eq(weft_close(file), 0);
	close_both(fds);
	return 0;
}

IO_TEST(wrong_descriptors_are_refused)
{
	int file = file_new(), fds[2];
	size_t done;

	for (int kind = 0; kind < KINDS; kind++) {
		pair_open(fds, kind);
		done = 77;
		ck_assert_int_eq(weft_sendfile(fds[0], fds[1], 0, 9, &done),
				 -ESPIPE);
		ck_assert_uint_eq(done, 0);
		ck_assert_int_eq(weft_sendfile(fds[0], -1, 0, 9, NULL),
				 -EBADF);
		done = 77;
		ck_assert_int_eq(weft_sendfile(-1, file, 0, 9, &done), -EBADF);
		ck_assert_uint_eq(done, 0);
		ck_assert_int_eq(weft_sendfile(file, file, 0, 9, NULL),
				 -ENOTSOCK);
		done = 77;
		ck_assert_int_eq(weft_sendfile(fds[0], file, -1, 9, &done),
				 -EINVAL);
		ck_assert_uint_eq(done, 0);
		close_both(fds);
	}
	ck_assert_int_eq(weft_close(file), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/sendfile");
	TCase *arriving = tcase_create("arriving");
	TCase *waiting = tcase_create("waiting");
	TCase *refusing = tcase_create("refusing");

	io_add_test(arriving, what_was_asked_for_is_sent);
	io_add_test(arriving,
		    cached_files_are_not_copied_to_sockets_that_do_not_block);
	io_add_test(arriving, uncached_files_arrive_too);
	io_add_test(arriving, owner_is_told_what_is_cached);
	if (test_needs(test_can(become_nobody),
		       "whoever_asks_is_told_what_is_cached",
		       "root, who becomes another user for a while"))
		io_add_test(arriving, whoever_asks_is_told_what_is_cached);
	io_add_test(arriving, what_sendfile_refuses_is_copied);
	io_add_test(arriving, file_that_shrinks_ends_early);
	io_add_test(waiting, deadline_tells_how_far_it_came);
	io_add_test(waiting, waiting_for_room_costs_nothing);
	io_add_test(waiting, close_ends_it);
	io_add_test(waiting, nothing_goes_to_who_gets_the_number_next);
	io_add_test(refusing, broken_connection_is_epipe_and_no_signal);
	io_add_test(refusing, connection_that_breaks_halfway_raises_no_signal);
	io_add_test(refusing, messages_are_not_cut);
	io_add_test(refusing, wrong_descriptors_are_refused);
	suite_add_tcase(suite, arriving);
	suite_add_tcase(suite, waiting);
	suite_add_tcase(suite, refusing);
	return io_tests_run(suite);
}
