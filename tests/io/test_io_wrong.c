/* SPDX-License-Identifier: MIT */
/*
 * Each call on a descriptor of the wrong kind or on a closed one, on full
 * disks, and with no free descriptors.
 */
#include <linux/openat2.h>
#include <signal.h>
#include <sys/syscall.h>

#include "tests/support/child_kit.h"
#include "tests/support/errno_now.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_calls.h"

/* Results in the table: the call succeeds, or it waits until the deadline. */
#define OK 1
#define WAITS (-ETIMEDOUT)

static char buffer[64];
static int file; /* source of weft_sendfile() */
static int peer; /* destination of weft_sendfile() */

static struct iovec *pieces(void)
{
	static struct iovec iov[2] = { { buffer, 10 }, { buffer + 10, 10 } };

	return iov;
}

static struct msghdr *message(void)
{
	static struct msghdr msg;

	msg = (struct msghdr){ .msg_iov = pieces(), .msg_iovlen = 2 };
	return &msg;
}

static ssize_t do_read(int fd)
{
	return weft_read(fd, buffer, 10);
}
static ssize_t do_readv(int fd)
{
	return weft_readv(fd, pieces(), 2);
}
static ssize_t do_read_all(int fd)
{
	return weft_read_all(fd, buffer, 10, NULL);
}
static ssize_t do_pread(int fd)
{
	return weft_pread(fd, buffer, 10, 0);
}
static ssize_t do_pread_all(int fd)
{
	return weft_pread_all(fd, buffer, 10, 0, NULL);
}
static ssize_t do_write(int fd)
{
	return weft_write(fd, buffer, 10);
}
static ssize_t do_writev(int fd)
{
	return weft_writev(fd, pieces(), 2);
}
static ssize_t do_write_all(int fd)
{
	return weft_write_all(fd, buffer, 10, NULL);
}
static ssize_t do_pwrite(int fd)
{
	return weft_pwrite(fd, buffer, 10, 0);
}
static ssize_t do_pwrite_all(int fd)
{
	return weft_pwrite_all(fd, buffer, 10, 0, NULL);
}
static ssize_t do_recv(int fd)
{
	return weft_recv(fd, buffer, 10, 0);
}
static ssize_t do_recv_at_once(int fd)
{
	return weft_recv(fd, buffer, 10, MSG_DONTWAIT);
}
static ssize_t do_recvmsg(int fd)
{
	return weft_recvmsg(fd, message(), 0);
}
static ssize_t do_send(int fd)
{
	return weft_send(fd, buffer, 10, 0);
}
static ssize_t do_send_at_once(int fd)
{
	return weft_send(fd, buffer, 10, MSG_DONTWAIT);
}
static ssize_t do_sendmsg(int fd)
{
	return weft_sendmsg(fd, message(), 0);
}
static ssize_t do_send_all(int fd)
{
	return weft_send_all(fd, buffer, 10, 0, NULL);
}
static ssize_t do_sendfile_to(int fd)
{
	return weft_sendfile(fd, file, 0, 50000, NULL);
}
static ssize_t do_sendfile_from(int fd)
{
	return weft_sendfile(peer, fd, 0, 10, NULL);
}
static ssize_t do_copy_to(int fd)
{
	return weft_copy(fd, file, 10, NULL, NULL);
}
static ssize_t do_copy_from(int fd)
{
	return weft_copy(peer, fd, 10, NULL, NULL);
}
static ssize_t do_accept(int fd)
{
	return weft_accept(fd, NULL);
}
static ssize_t do_connect(int fd)
{
	struct weft_addr addr;

	ck_assert_int_eq(weft_addr_parse("127.0.0.1:1", &addr), 0);
	return weft_connect(fd, &addr);
}
static ssize_t do_shutdown(int fd)
{
	return weft_shutdown(fd, SHUT_RDWR);
}
static ssize_t do_poll(int fd)
{
	return weft_poll(fd, POLLIN | POLLOUT);
}
static ssize_t do_fstat(int fd)
{
	struct stat st;

	return weft_fstat(fd, &st);
}
static ssize_t do_fsync(int fd)
{
	return weft_fsync(fd);
}
static ssize_t do_fdatasync(int fd)
{
	return weft_fdatasync(fd);
}
static ssize_t do_openat(int fd)
{
	return weft_openat(fd, "none", O_RDONLY, 0);
}
static ssize_t do_openat2(int fd)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK };

	return weft_openat2(fd, "none", &how, sizeof(how));
}
static ssize_t do_local_addr(int fd)
{
	struct weft_addr addr;

	return weft_local_addr(fd, &addr);
}
static ssize_t do_peer_addr(int fd)
{
	struct weft_addr addr;

	return weft_peer_addr(fd, &addr);
}

enum { CLOSED, REGULAR, DIRECTORY, SOCKET, FULL, PIPE, KINDS };

/* The columns: a number closed a moment ago; a file opened for reading; a
 * directory; a TCP socket without connection; /dev/full; the read end of a
 * pipe. */
static const struct {
	const char *name;
	ssize_t (*fn)(int fd);
	int expected[KINDS];
} calls[] = {
#define E(x) (-E##x)
	{ "read", do_read,
	  { E(BADF), OK, E(ISDIR), E(NOTCONN), OK, WAITS } },
	{ "readv", do_readv,
	  { E(BADF), OK, E(ISDIR), E(NOTCONN), OK, WAITS } },
	{ "read_all", do_read_all,
	  { E(BADF), OK, E(ISDIR), E(NOTCONN), OK, WAITS } },
	{ "pread", do_pread,
	  { E(BADF), OK, E(ISDIR), E(SPIPE), OK, E(SPIPE) } },
	{ "pread_all", do_pread_all,
	  { E(BADF), OK, E(ISDIR), E(SPIPE), OK, E(SPIPE) } },
	{ "write", do_write,
	  { E(BADF), E(BADF), E(BADF), E(PIPE), E(NOSPC), E(BADF) } },
	{ "writev", do_writev,
	  { E(BADF), E(BADF), E(BADF), E(PIPE), E(NOSPC), E(BADF) } },
	{ "write_all", do_write_all,
	  { E(BADF), E(BADF), E(BADF), E(PIPE), E(NOSPC), E(BADF) } },
	{ "pwrite", do_pwrite,
	  { E(BADF), E(BADF), E(BADF), E(SPIPE), E(NOSPC), E(SPIPE) } },
	{ "pwrite_all", do_pwrite_all,
	  { E(BADF), E(BADF), E(BADF), E(SPIPE), E(NOSPC), E(SPIPE) } },
	{ "recv", do_recv,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(NOTCONN), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "recv MSG_DONTWAIT", do_recv_at_once,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(NOTCONN), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "recvmsg", do_recvmsg,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(NOTCONN), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "send", do_send,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(PIPE), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "send MSG_DONTWAIT", do_send_at_once,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(PIPE), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "sendmsg", do_sendmsg,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(PIPE), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "send_all", do_send_all,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(PIPE), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "sendfile to", do_sendfile_to,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(PIPE), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "sendfile from", do_sendfile_from,
	  { E(BADF), OK, E(ISDIR), E(SPIPE), OK, E(SPIPE) } },
	{ "copy to", do_copy_to,
	  { E(BADF), E(BADF), E(BADF), E(PIPE), E(NOSPC), E(BADF) } },
	{ "copy from", do_copy_from,
	  { E(BADF), OK, E(ISDIR), E(NOTCONN), OK, WAITS } },
	{ "accept", do_accept,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(INVAL), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "connect", do_connect,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(CONNREFUSED), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "shutdown", do_shutdown,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(NOTCONN), E(NOTSOCK),
	    E(NOTSOCK) } },
	{ "poll", do_poll, { E(BADF), OK, OK, OK, OK, WAITS } },
	{ "fstat", do_fstat, { E(BADF), OK, OK, OK, OK, OK } },
	{ "fsync", do_fsync,
	  { E(BADF), OK, OK, E(INVAL), E(INVAL), E(INVAL) } },
	{ "fdatasync", do_fdatasync,
	  { E(BADF), OK, OK, E(INVAL), E(INVAL), E(INVAL) } },
	{ "openat", do_openat,
	  { E(BADF), E(NOTDIR), E(NOENT), E(NOTDIR), E(NOTDIR),
	    E(NOTDIR) } },
	{ "openat2", do_openat2,
	  { E(BADF), E(NOTDIR), E(NOENT), E(NOTDIR), E(NOTDIR),
	    E(NOTDIR) } },
	{ "local_addr", do_local_addr,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), OK, E(NOTSOCK), E(NOTSOCK) } },
	{ "peer_addr", do_peer_addr,
	  { E(BADF), E(NOTSOCK), E(NOTSOCK), E(NOTCONN), E(NOTSOCK),
	    E(NOTSOCK) } },
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static int kind_open(int kind, int *ret_other)
{
	int fds[2], fd = -1;

	*ret_other = -1;
	switch (kind) {
	case CLOSED:
		fd = weft_open("/dev/null", O_RDONLY, 0);
		ck_assert_int_eq(weft_close(fd), 0);
		return fd;
	case REGULAR:
		return weft_open("/proc/self/exe", O_RDONLY, 0);
	case DIRECTORY:
		return weft_open("/tmp", O_RDONLY | O_DIRECTORY, 0);
	case SOCKET:
		return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	case FULL:
		return weft_open("/dev/full", O_RDWR, 0);
	default:
		ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
		*ret_other = fds[1];
		return fds[0];
	}
}

/* Each call gets a fresh descriptor. */
IO_TEST(wrong_descriptors_give_one_error_each)
{
	int fds[2];

	socket_pair(fds);
	peer = fds[0];
	file = weft_open("/proc/self/exe", O_RDONLY, 0);
	ck_assert_int_ge(file, 0);
	for (int i = 0; i < CALLS * KINDS; i++) {
		int kind = i % KINDS, other, fd = kind_open(kind, &other);
		int expected = calls[i / KINDS].expected[kind];
		ssize_t r = 0;

		ck_assert_int_ge(fd, 0);
		/* A call that is to wait has little time for it, any other as
		 * much as a busy machine takes. */
		WEFT_WITHIN(expected == WAITS ? WEFT_MS(5) : WEFT_SEC(20))
			r = calls[i / KINDS].fn(fd);
		ck_assert_msg(expected == OK ? r >= 0 : r == expected,
			      "%s, kind %d: %zd", calls[i / KINDS].name, kind,
			      r);
		ck_assert_int_eq(weft_close(fd), kind ? 0 : -EBADF);
		if (other >= 0)
			ck_assert_int_eq(weft_close(other), 0);
	}
	ck_assert_int_eq(weft_close(file), 0);
	close_both(fds);
	return 0;
}

/* ---- Disks ------------------------------------------------------------ */

/* Each call that writes, at the limit of a file's size and beyond it. */
IO_TEST(limit_of_file_size_gives_what_fits_and_then_efbig)
{
	static ssize_t (*const writers[])(int) = { do_write, do_writev,
						   do_write_all };
	char name[] = "/var/tmp/weft-wrong-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);
	struct rlimit old;

	ck_assert_int_ge(fd, 0);
	unlink(name);
	signal(SIGXFSZ, SIG_IGN);
	old = limit_set(RLIMIT_FSIZE, 25);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(lseek(fd, 20, SEEK_SET), 20);
		ck_assert_int_eq(writers[i](fd), i < 2 ? 5 : -EFBIG);
		ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 25);
		ck_assert_int_eq(writers[i](fd), -EFBIG);
		ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 25);
	}
	ck_assert_int_eq(weft_pwrite(fd, buffer, 10, 20), 5);
	ck_assert_int_eq(weft_pwrite(fd, buffer, 10, 25), -EFBIG);
	limit_reset(RLIMIT_FSIZE, old);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* ---- Descriptors ------------------------------------------------------ */

static char listener_text[WEFT_ADDR_TEXT_BYTES];
static int listener;

static int make_open(void)
{
	return weft_open("/dev/null", O_RDONLY, 0);
}
static int make_openat(void)
{
	return weft_openat(AT_FDCWD, "/dev/null", O_RDONLY, 0);
}
static int make_openat2(void)
{
	struct open_how how = { .flags = O_RDONLY };

	return weft_openat2(AT_FDCWD, "/dev/null", &how, sizeof(how));
}
static int make_openat2_cached(void)
{
	struct open_how how = { .flags = O_RDONLY | O_NONBLOCK };

	return weft_openat2(AT_FDCWD, "/dev/null", &how, sizeof(how));
}
static int make_tcp_listener(void)
{
	return weft_tcp_listen("127.0.0.1:0", NULL);
}
static int make_any_listener(void)
{
	return weft_tcp_listen(":0", NULL);
}
static char unix_text[64];
static int make_unix_listener(void)
{
	char text[64];

	snprintf(text, sizeof(text), "unix:@weft-wrong-other-%d", getpid());
	return weft_unix_listen(text, NULL);
}
static int make_unix_connection(void)
{
	return weft_unix_connect(unix_text, NULL);
}
static int make_connection(void)
{
	return weft_tcp_connect(listener_text, NULL);
}

static const struct {
	const char *name;
	int (*fn)(void);
} makers[] = {
	{ "open", make_open },
	{ "openat", make_openat },
	{ "openat2", make_openat2 },
	{ "openat2, cached", make_openat2_cached },
	{ "tcp_listen", make_tcp_listener },
	{ "tcp_listen, any", make_any_listener },
	{ "unix_listen", make_unix_listener },
	{ "unix_connect", make_unix_connection },
	{ "tcp_connect", make_connection },
};

enum { MAKERS = sizeof(makers) / sizeof(makers[0]), LIMIT = 64 };

static void descriptors_use_up(int fds[LIMIT], int *ret_count)
{
	*ret_count = 0;
	while ((fds[*ret_count] = dup(listener)) >= 0)
		(*ret_count)++;
	ck_assert_int_eq(errno_now(), EMFILE);
}

/* Each call that makes a descriptor returns the error, loses no descriptor, and
 * works again afterwards. */
IO_TEST(lack_of_descriptors_is_emfile)
{
	struct rlimit old;
	int unix_listener, count, fds[LIMIT];
	struct weft_addr addr;

	listener = tcp_listener(listener_text);
	snprintf(unix_text, sizeof(unix_text), "unix:@weft-wrong-%d", getpid());
	unix_listener = weft_unix_listen(unix_text, NULL);
	ck_assert_int_ge(unix_listener, 0);
	old = limit_set(RLIMIT_NOFILE, LIMIT);
	for (size_t i = 0; i < MAKERS; i++) {
		int r = 0;

		descriptors_use_up(fds, &count);
		ck_assert_msg((r = makers[i].fn()) == -EMFILE, "%s: %d",
			      makers[i].name, r);
		ck_assert_int_eq(weft_addr_parse("[fe80::1%lo]:80", &addr),
				 -EMFILE);
		ck_assert_int_eq(weft_close(fds[--count]), 0);
		ck_assert_msg((r = makers[i].fn()) >= 0, "%s: %d",
			      makers[i].name, r);
		ck_assert_int_eq(weft_close(r), 0);
		while (count > 0)
			ck_assert_int_eq(weft_close(fds[--count]), 0);
	}
	limit_reset(RLIMIT_NOFILE, old);
	close_both((int[]){ listener, unix_listener });
	return 0;
}

/* ---- Writes that move nothing -------------------------------------------- */

/* No file does that; a kernel that answers with 0 plays one.  It refuses calls
 * alone, so no ring is used. */
static int64_t write_nothing(void *arg)
{
	int fd = *(int *)arg;
	size_t done = 77;

	NEED(weft_send_all(fd, buffer, 10, 0, &done) == -EIO && done == 0);
	done = 77;
	NEED(weft_write_all(fd, buffer, 10, &done) == -EIO && done == 0);
	return 0;
}

static int64_t run_without_writes(void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	const unsigned numbers[] = { SYS_write, SYS_writev, SYS_pwritev2,
				     SYS_sendto, SYS_sendmsg };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		NEED(refuse_call_with(numbers[i], 0, *(unsigned *)arg, 0));
	NEED(unsetenv("WEFT_ENGINE") == 0);
	opts.engine = WEFT_ENGINE_EPOLL;
	return weft_run(write_nothing, arg, &opts);
}

START_TEST(write_that_moves_nothing_is_eio)
{
	int fds[2];

	socket_pair(fds);
	child_run(run_without_writes, &fds[0]);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* ---- A number that is reused soon --------------------------------------- */

static int64_t accept_nothing(void *arg)
{
	int r = weft_accept(*(int *)arg, NULL);

	ck_assert(r == -EBADF || r == -ECANCELED);
	return 0;
}

/* A task asked at a number that was not open, and has gone when the kernel
 * reports the error.  The number is a listener's by then: the error is not the
 * listener's. */
IO_TEST(error_of_a_closed_number_is_not_for_who_has_it_next)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int server = tcp_listener(text), number = 200;

	for (int i = 0; i < 200; i++) {
		int client = weft_tcp_connect(text, NULL), fd = -1;

		ck_assert_int_ge(client, 0);
		WEFT_SUPERVISE(scope) {
			ck_assert_int_eq(WEFT_GO(scope, accept_nothing,
						 number),
					 0);
			ck_assert_int_eq(weft_yield(), 0);
			weft_scope_cancel(scope);
		}
		ck_assert_int_eq(dup2(server, number), number);
		WEFT_WITHIN(WEFT_SEC(20))
			fd = weft_accept(number, NULL);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(weft_close(number), 0);
		close_both((int[]){ fd, client });
	}
	ck_assert_int_eq(weft_close(server), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/wrong");
	TCase *kinds = tcase_create("kinds");
	TCase *limits = tcase_create("limits");

	io_add_test(kinds, wrong_descriptors_give_one_error_each);
	if (test_needs(test_can(child_may_refuse),
		       "write_that_moves_nothing_is_eio", NEEDS_REFUSED_CALLS))
		tcase_add_test(kinds, write_that_moves_nothing_is_eio);
	io_add_test(kinds, error_of_a_closed_number_is_not_for_who_has_it_next);
	io_add_test(limits, limit_of_file_size_gives_what_fits_and_then_efbig);
	io_add_test(limits, lack_of_descriptors_is_emfile);
	suite_add_tcase(suite, kinds);
	suite_add_tcase(suite, limits);
	return io_tests_run(suite);
}
