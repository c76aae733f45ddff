/* SPDX-License-Identifier: MIT */
/*
 * A number that belongs to another file than before: the program closed it with
 * close(2), or put another file in its place with dup2(2).  The kind that weft
 * knows is only a hint: each call does what it does on a descriptor that weft
 * never saw.
 */
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>

#include "tests/support/io_kit.h"

enum { SOURCE_BYTES = 20000 };

static char junk[SOURCE_BYTES];

/* ---- Files --------------------------------------------------------------- */

static int source; /* for weft_sendfile() */

static int file_in(const char *place)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/weft-reuse-XXXXXX", place);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return fd;
	unlink(path);
	ck_assert_int_eq(write(fd, "0123456789", 10), 10);
	ck_assert_int_eq(lseek(fd, 2, SEEK_SET), 2);
	return fd;
}

static int make_file(int *ret_other)
{
	*ret_other = -1;
	return file_in("/tmp");
}

/* On tmpfs, as a rule; else once more the same. */
static int make_file_in_memory(int *ret_other)
{
	int fd = file_in("/dev/shm");

	*ret_other = -1;
	return fd < 0 ? file_in("/var/tmp") : fd;
}

static int make_device(int *ret_other)
{
	*ret_other = -1;
	return open("/dev/zero", O_RDWR | O_CLOEXEC);
}

static int make_pipe_to_read(int *ret_other)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_eq(write(fds[1], "abcdef", 6), 6);
	*ret_other = fds[1];
	return fds[0];
}

static int make_pipe_to_write(int *ret_other)
{
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	*ret_other = fds[0];
	return fds[1];
}

static int make_broken_pipe(int *ret_other)
{
	int fd = make_pipe_to_write(ret_other);

	close(*ret_other);
	*ret_other = -1;
	return fd;
}

static int make_pair(int type, int *ret_other)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX,
				    type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
				    fds),
			 0);
	ck_assert_int_eq(write(fds[1], "abcdef", 6), 6);
	*ret_other = fds[1];
	return fds[0];
}

static int make_socket(int *ret_other)
{
	return make_pair(SOCK_STREAM, ret_other);
}

static int make_messages(int *ret_other)
{
	return make_pair(SOCK_DGRAM, ret_other);
}

static int make_broken_socket(int *ret_other)
{
	int fd = make_socket(ret_other);

	close(*ret_other);
	*ret_other = -1;
	return fd;
}

/* One that blocks, and whose other end was there and has gone. */
static int make_fifo(int flags)
{
	char path[64];
	int fd, other;

	snprintf(path, sizeof(path), "/tmp/weft-reuse-fifo-%d", (int)getpid());
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	other = open(path, O_RDWR | O_CLOEXEC);
	fd = open(path, flags | O_CLOEXEC);
	ck_assert_int_eq(unlink(path), 0);
	close(other);
	return fd;
}

static int make_fifo_at_its_end(int *ret_other)
{
	*ret_other = -1;
	return make_fifo(O_RDONLY);
}

static int make_broken_fifo(int *ret_other)
{
	*ret_other = -1;
	return make_fifo(O_WRONLY);
}

static int make_lone_socket(int *ret_other)
{
	*ret_other = -1;
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

/* Its other side, which echoes nothing, has gone. */
static int make_terminal(int *ret_other)
{
	int side, fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios raw;
	char name[64];

	*ret_other = -1;
	if (fd < 0) /* or else once more a device */
		return make_device(ret_other);
	ck_assert(grantpt(fd) == 0 && unlockpt(fd) == 0 &&
		  ptsname_r(fd, name, sizeof(name)) == 0);
	side = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	ck_assert_int_eq(tcgetattr(side, &raw), 0);
	cfmakeraw(&raw);
	ck_assert_int_eq(tcsetattr(side, TCSANOW, &raw), 0);
	close(side);
	return fd;
}

static const struct {
	const char *name;
	int (*fn)(int *ret_other);
} makers[] = {
	{ "a file", make_file },
	{ "a file in memory", make_file_in_memory },
	{ "a device", make_device },
	{ "a pipe to read", make_pipe_to_read },
	{ "a pipe to write", make_pipe_to_write },
	{ "a broken pipe", make_broken_pipe },
	{ "a socket", make_socket },
	{ "a socket of messages", make_messages },
	{ "a broken socket", make_broken_socket },
	{ "a lone socket", make_lone_socket },
	{ "a FIFO at its end", make_fifo_at_its_end },
	{ "a broken FIFO", make_broken_fifo },
	{ "a terminal", make_terminal },
};

enum { MAKERS = sizeof(makers) / sizeof(makers[0]) };

/* ---- Calls --------------------------------------------------------------- */

static ssize_t do_read(int fd, char *data)
{
	return weft_read(fd, data, 4);
}

static ssize_t do_read_nothing(int fd, char *data)
{
	return weft_read(fd, data, 0);
}

static ssize_t do_readv(int fd, char *data)
{
	return weft_readv(fd, (struct iovec[]){ { data, 1 }, { data + 1, 2 } },
			  2);
}

static ssize_t do_write(int fd, char *data)
{
	(void)data;
	return weft_write(fd, "XYZ", 3);
}

static ssize_t do_writev(int fd, char *data)
{
	char text[] = "XYZ";

	(void)data;
	return weft_writev(fd, (struct iovec[]){ { text, 1 }, { text + 1, 1 } },
			   2);
}

static ssize_t do_pread(int fd, char *data)
{
	return weft_pread(fd, data, 4, 0);
}

static ssize_t do_pwrite(int fd, char *data)
{
	(void)data;
	return weft_pwrite(fd, "XYZ", 3, 0);
}

static ssize_t do_sendfile(int fd, char *data)
{
	(void)data;
	return weft_sendfile(fd, source, 0, SOURCE_BYTES, NULL);
}

static const struct {
	const char *name;
	ssize_t (*fn)(int fd, char *data);
} calls[] = {
	{ "read", do_read },	 { "read nothing", do_read_nothing },
	{ "readv", do_readv },	 { "write", do_write },
	{ "writev", do_writev }, { "pread", do_pread },
	{ "pwrite", do_pwrite }, { "sendfile", do_sendfile },
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* A drained socket's number, now that of a pipe that cannot be read: a read, an
 * error of the program's, may wait (io/send_recv.c). */
static bool may_wait(int maker, int call, bool drained)
{
	bool reads = calls[call].fn == do_read;

	return drained && reads &&
	       (makers[maker].fn == make_pipe_to_write ||
		makers[maker].fn == make_broken_pipe);
}

/* All that can be seen of a call. */
struct outcome {
	ssize_t result;
	char data[8];
	off_t position;
	off_t bytes; /* of the file */
	int left_here, left_there;
};

static int left_in(int fd)
{
	int bytes = 0;

	return fd < 0 || ioctl(fd, FIONREAD, &bytes) < 0 ? -1 : bytes;
}

static struct outcome call_on(int call, int fd, int other)
{
	struct outcome outcome;
	struct stat st;

	memset(&outcome, 0, sizeof(outcome));
	/* No call has to wait here. */
	WEFT_WITHIN(WEFT_SEC(20))
		outcome.result = calls[call].fn(fd, outcome.data);
	outcome.position = lseek(fd, 0, SEEK_CUR);
	ck_assert_int_eq(fstat(fd, &st), 0);
	outcome.bytes = S_ISREG(st.st_mode) ? st.st_size : 0;
	outcome.left_here = left_in(fd);
	outcome.left_there = left_in(other);
	return outcome;
}

static void expect_same(const struct outcome *outcome,
			const struct outcome *expected, int call, int maker,
			const char *before)
{
	ck_assert_msg(
		memcmp(outcome, expected, sizeof(*outcome)) == 0,
		"%s on %s that was %s: %zd not %zd, at %ld not %ld, %ld bytes "
		"not %ld, left %d not %d, there %d not %d",
		calls[call].name, makers[maker].name, before, outcome->result,
		expected->result, (long)outcome->position,
		(long)expected->position, (long)outcome->bytes,
		(long)expected->bytes, outcome->left_here, expected->left_here,
		outcome->left_there, expected->left_there);
}

static struct weft__fd *entry_of(int fd)
{
	struct weft__fd *entry;

	ck_assert_int_eq(
		weft__fd_get(&weft__reactor(weft_runtime_self())->fds, fd,
			     &entry),
		0);
	return entry;
}

static void end(int fd, int other)
{
	ck_assert_int_eq(weft_close(fd), 0);
	if (other >= 0)
		ck_assert_int_eq(weft_close(other), 0);
}

/* On a number of which nothing is known. */
static struct outcome call_on_new(int call, int maker)
{
	int other, fd = makers[maker].fn(&other);
	struct outcome outcome;

	ck_assert_int_ge(fd, 0);
	weft__fd_set_kind(entry_of(fd), WEFT__FD_UNKNOWN);
	outcome = call_on(call, fd, other);
	end(fd, other);
	return outcome;
}

static void setup(void)
{
	/* A SIGPIPE would end the process. */
	signal(SIGPIPE, SIG_DFL);
	source = file_in("/tmp");
	ck_assert_int_ge(source, 0);
	ck_assert_int_eq(pwrite(source, junk, SOURCE_BYTES, 0), SOURCE_BYTES);
}

/* ---- Tests --------------------------------------------------------------- */

/* Every call, on everything, whatever it is taken for. */
static void call_with_all_hints(void)
{
	static const int hints[] = {
		WEFT__FD_SOCKET,
		WEFT__FD_SOCKET | WEFT__FD_DRAINED,
		WEFT__FD_MESSAGES,
		WEFT__FD_FILE,
		WEFT__FD_FILE | WEFT__FD_POOLED,
		WEFT__FD_FILE | WEFT__FD_NO_QUICK_READ,
		WEFT__FD_FILE | WEFT__FD_NO_QUICK_WRITE,
		WEFT__FD_DIRECT,
		WEFT__FD_LOCAL,
		WEFT__FD_STORED,
		WEFT__FD_STORED | WEFT__FD_POOLED,
		WEFT__FD_STREAM,
		WEFT__FD_TERMINAL,
		WEFT__FD_FIFO,
		WEFT__FD_OTHER,
	};

	setup();
	for (int i = 0; i < MAKERS * CALLS; i++) {
		int maker = i % MAKERS, call = i / MAKERS;
		struct outcome expected = call_on_new(call, maker);

		for (size_t h = 0; h < sizeof(hints) / sizeof(hints[0]); h++) {
			int other, fd = makers[maker].fn(&other);
			struct outcome outcome;
			char before[32];

			ck_assert_int_ge(fd, 0);
			if (may_wait(maker, call,
				     hints[h] & WEFT__FD_DRAINED)) {
				end(fd, other);
				continue;
			}
			weft__fd_set_kind(entry_of(fd), hints[h]);
			snprintf(before, sizeof(before), "kind %#x", hints[h]);
			outcome = call_on(call, fd, other);
			expect_same(&outcome, &expected, call, maker, before);
			end(fd, other);
		}
	}
	ck_assert_int_eq(weft_close(source), 0);
}

IO_TEST(kind_is_only_a_hint)
{
	call_with_all_hints();
	return 0;
}

/* Those have no RWF_NOSIGNAL. */
IO_TEST(kind_is_only_a_hint_on_older_kernels)
{
	weft__reactor(weft_runtime_self())->nosignal = false;
	call_with_all_hints();
	return 0;
}

/* Makes another file that has the number `fd`; returns the other end. */
static int make_at(int fd, int maker, bool closes)
{
	int other, made = makers[maker].fn(&other);

	ck_assert_int_ge(made, 0);
	if (closes)
		close(fd);
	ck_assert_int_eq(dup3(made, fd, O_CLOEXEC), fd);
	close(made);
	return other;
}

/* Everything comes after everything, and the number was used before. */
IO_TEST(number_is_used_for_the_file_that_has_it_now)
{
	setup();
	for (int i = 0; i < MAKERS * MAKERS * CALLS; i++) {
		int before = i % MAKERS, maker = i / MAKERS % MAKERS;
		int call = i / MAKERS / MAKERS;
		struct outcome outcome, expected = call_on_new(call, maker);
		int other, fd = makers[before].fn(&other);
		char data[8];
		bool drained;

		ck_assert_int_ge(fd, 0);
		(void)!weft_write(fd, "x", 1);
		(void)!weft_pread(fd, data, 1, 0);
		(void)!weft_read(fd, data, sizeof(data));
		drained = weft__fd_drained(entry_of(fd));
		close(other);
		other = make_at(fd, maker, i % 2);
		if (may_wait(maker, call, drained)) {
			end(fd, other);
			continue;
		}
		outcome = call_on(call, fd, other);
		expect_same(&outcome, &expected, call, maker,
			    makers[before].name);
		end(fd, other);
	}
	ck_assert_int_eq(weft_close(source), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/reuse");
	TCase *tcase = tcase_create("reuse");

	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, kind_is_only_a_hint);
	io_add_test(tcase, kind_is_only_a_hint_on_older_kernels);
	io_add_test(tcase, number_is_used_for_the_file_that_has_it_now);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
