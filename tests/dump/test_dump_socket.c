/* SPDX-License-Identifier: MIT */
/*
 * Suite dump/socket: the dump socket (weft_opts.dump_path).
 *
 * Each connection to the socket is answered with a dump.  Covered: clients that
 * leave early or do not read, a process without free descriptors, paths that
 * exist already, and options that are refused.
 */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/support/dump_scene.h"
#include "tests/support/idle.h"
#include "tests/support/needs.h"
#include "tests/support/stderr_capture.h"

static int64_t wait_for_ever(void *arg)
{
	(void)arg;
	return weft_sleep(WEFT_NEVER);
}

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static struct sockaddr_un place_of(const char *path)
{
	struct sockaddr_un place = { .sun_family = AF_UNIX };

	snprintf(place.sun_path, sizeof(place.sun_path), "%s", path);
	return place;
}

/* Connects and returns the text that comes back; the caller frees it. */
static char *ask(const char *path)
{
	struct sockaddr_un place = place_of(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *text = calloc(1, 1 << 16);
	size_t used = 0;
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(connect(fd, (void *)&place, sizeof(place)), 0);
	while ((n = read(fd, text + used, (1 << 16) - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	return text;
}

static void path_new(char *path, size_t bytes)
{
	snprintf(path, bytes, "/tmp/weft-test-%d.sock", (int)getpid());
	unlink(path);
}

START_TEST(socket_gives_a_dump)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	struct stat st;
	char path[64];

	path_new(path, sizeof(path));
	opts.dump_path = path;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	ck_assert_int_eq(weft_submit(runtime, wait_for_ever, NULL, 0, NULL),
			 0);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	for (int i = 0; i < 3; i++) {
		char *text = ask(path);

		ck_assert_msg(strstr(text, "weft: 1 task") &&
				      strstr(text, "worker 0: "),
			      "%s", text);
		free(text);
	}
	ck_assert_int_eq(weft_stop(runtime), 0);
	ck_assert_int_ne(stat(path, &st), 0);
}
END_TEST

/* A client that leaves, or does not read, delays other clients only briefly,
 * and does not end the process (no SIGPIPE). */
START_TEST(who_asks_may_leave)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	struct sockaddr_un place;
	char path[64];

	path_new(path, sizeof(path));
	opts.dump_path = path;
	place = place_of(path);
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	for (int i = 0; i < 20; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		ck_assert_int_eq(connect(fd, (void *)&place, sizeof(place)),
				 0);
		close(fd);
	}
	free(ask(path));
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

/* Makes tasks of many kinds with long descriptions: the dump is larger than the
 * buffers of a socket that is not read. */
static int64_t select_many(void)
{
	struct weft_chan chan = WEFT_CHAN_DIRECT(int);
	struct weft_case cases[8];
	int item;

	for (int i = 0; i < 8; i++)
		cases[i] = (struct weft_case)WEFT_RECV(&chan, &item);
	return weft_select(cases, 8) < 0 ? 0 : 1;
}

#define KIND(n)                                 \
	static int64_t kind_##n(void *arg)      \
	{                                       \
		(void)arg;                      \
		return select_many();           \
	}
#define KINDS(X)                                                       \
	X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)  \
	X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21)    \
	X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)    \
	X(32) X(33) X(34) X(35) X(36) X(37) X(38) X(39) X(40) X(41)    \
	X(42) X(43) X(44) X(45) X(46) X(47) X(48) X(49) X(50) X(51)
#define KIND_NAME(n) kind_##n,

KINDS(KIND)
static const weft_fn kinds[] = { KINDS(KIND_NAME) };

enum { KINDS_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

static int64_t have_many_kinds(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(all)
		for (int i = 0; i < 10 * KINDS_COUNT; i++)
			ck_assert_int_eq(weft_go(all, kinds[i / 10], NULL, 0),
					 0);
	return 0;
}

static size_t read_to_end(int fd)
{
	static char room[1 << 16];
	size_t bytes = 0;
	ssize_t n;

	while ((n = read(fd, room, sizeof(room))) > 0)
		bytes += (size_t)n;
	return bytes;
}

/* The watchdog's patience ends with shutdown_ns. */
#define SHUTDOWN_NS WEFT_MS(200)
#define IMPATIENT_NS WEFT_SEC(4)

/* Does less than the dump fit into one? */
static bool sockets_are_small(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), bytes = 0;
	socklen_t length = sizeof(bytes);

	ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length),
			 0);
	close(fd);
	return bytes <= 256 << 10;
}

START_TEST(who_does_not_read_is_given_up)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	weft_nsec start;
	struct pollfd answer = { .events = POLLIN };
	struct weft_runtime *runtime;
	struct sockaddr_un place;
	char path[64], *text;
	size_t bytes;

	if (!test_needs(sockets_are_small(), "who_does_not_read_is_given_up",
			"sockets that send less than the dump"))
		return;
	path_new(path, sizeof(path));
	opts.dump_path = path;
	opts.shutdown_ns = _i ? SHUTDOWN_NS : 0;
	place = place_of(path);
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	ck_assert_int_eq(weft_submit(runtime, have_many_kinds, NULL, 0, NULL),
			 0);
	while (!strstr(text = dump_text(runtime), "521 wait"))
		free(text);
	answer.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(answer.fd, (void *)&place, sizeof(place)), 0);
	ck_assert_int_eq(poll(&answer, 1, -1), 1);
	start = weft_now();
	ck_assert_int_eq(weft_stop(runtime), 0);
	ck_assert(!_i || weft_now() - start < IMPATIENT_NS);
	bytes = read_to_end(answer.fd);
	ck_assert_msg(bytes < strlen(text), "%zu bytes of %zu", bytes,
		      strlen(text));
	close(answer.fd);
	free(text);
}
END_TEST

START_TEST(watchdog_waits_for_descriptors)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct rlimit old;
	struct weft_runtime *runtime;
	struct sockaddr_un place;
	char path[64];
	int fd;

	path_new(path, sizeof(path));
	opts.dump_path = path;
	place = place_of(path);
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	old = limit_set(RLIMIT_NOFILE, 3);
	ck_assert_int_eq(connect(fd, (void *)&place, sizeof(place)), 0);
	expect_idle();
	limit_reset(RLIMIT_NOFILE, old);
	/* The connection is answered after all. */
	ck_assert_uint_gt(read_to_end(fd), 0);
	close(fd);
	ck_assert_int_eq(weft_stop(runtime), 0);
}
END_TEST

START_TEST(places_are_taken_over_from_the_dead_alone)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime, *second;
	struct sockaddr_un place;
	char path[64];
	int fd;

	path_new(path, sizeof(path));
	place = place_of(path);
	/* A socket file that a killed process left behind. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (void *)&place, sizeof(place)), 0);
	close(fd);
	opts.dump_path = path;
	ck_assert_int_eq(weft_start(&opts, &runtime), 0);
	ck_assert_int_eq(weft_start(&opts, &second), -EADDRINUSE);
	free(ask(path));
	ck_assert_int_eq(weft_stop(runtime), 0);
	/* A regular file at the path: it is not replaced. */
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(weft_start(&opts, &runtime), -EADDRINUSE);
	ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* The message names the path and the reason. */
static void expect_refusal(const char *path, int error, const char *why)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	const char *text;

	opts.dump_path = path;
	for (int i = 0; i < 2; i++) {
		said_begin();
		if (i)
			ck_assert_int_eq(weft_run(nothing, NULL, &opts), error);
		else
			ck_assert_int_eq(weft_start(&opts, &runtime), error);
		text = said_end();
		ck_assert_msg(strstr(text, "dump_path") && strstr(text, path) &&
				      strstr(text, why),
			      "it said: %s", text);
	}
}

START_TEST(bad_options_are_refused)
{
	/* The runtime itself uses SIGURG, to interrupt its workers. */
	static const int refused[] = { -1,	SIGKILL, SIGSEGV, SIGBUS,
				       SIGFPE, SIGILL,	SIGTRAP, SIGURG };
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtime;
	int before = fds_open();
	char path[200];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	expect_refusal(path, -EINVAL, "too long");
	expect_refusal("", -EINVAL, "empty");
	expect_refusal("/nowhere/at/all", -ENOENT, strerror(ENOENT));
	expect_refusal("/", -EADDRINUSE, strerror(EADDRINUSE));
	for (unsigned i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		opts.dump_signal = refused[i];
		said_begin();
		ck_assert_int_eq(weft_start(&opts, &runtime), -EINVAL);
		ck_assert_ptr_nonnull(strstr(said_end(), "dump_signal"));
	}
	ck_assert_int_eq(fds_open(), before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("dump/socket");
	TCase *tc = tcase_create("dump socket");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, socket_gives_a_dump);
	tcase_add_test(tc, who_asks_may_leave);
	tcase_add_loop_test(tc, who_does_not_read_is_given_up, 0, 2);
	tcase_add_test(tc, watchdog_waits_for_descriptors);
	tcase_add_test(tc, places_are_taken_over_from_the_dead_alone);
	tcase_add_test(tc, bad_options_are_refused);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
