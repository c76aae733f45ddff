/* SPDX-License-Identifier: MIT */
/*
 * Suite io/engine: which engine a runtime uses, and what it says of it, and
 * which features of the kernel it leaves alone: where
 * the kernel, or a filter as containers have one, refuses io_uring; and where
 * the program or whoever runs it has chosen.
 */
#include <sys/resource.h>

#include "tests/support/dump_scene.h"
#include "tests/support/engine.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_setup.h"
#include "tests/support/stderr_capture.h"

struct seen {
	unsigned engine;
	const char *why;
};

/* Uses a socket, a file, a sleep, and another task. */
static int64_t answer(void *arg)
{
	char byte;
	int fd = *(int *)arg;

	EXPECT(weft_recv(fd, &byte, 1, 0) == 1);
	EXPECT(weft_send(fd, &byte, 1, 0) == 1);
	return weft_close(fd);
}

static void expect_dump_to_say(const struct seen *seen)
{
	char *text = dump_text(NULL), line[256];

	(void)snprintf(line, sizeof(line), "weft: %s: %s\n",
		       seen->engine == WEFT_ENGINE_URING ? "io_uring" :
							   "epoll",
		       seen->why);
	ck_assert_msg(strstr(text, line) != NULL, "%s", text);
	free(text);
}

static int64_t look(void *arg)
{
	struct seen *seen = arg;
	char byte = 'x';
	int fds[2], fd;

	seen->engine = weft_engine(weft_runtime_self(), &seen->why);
	expect_dump_to_say(seen);
	socket_pair(fds);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(weft_go(scope, answer, &fds[1], sizeof(int)) == 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_send(fds[0], &byte, 1, 0) == 1);
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == 1);
	}
	EXPECT(weft_recv(fds[0], &byte, 1, 0) == 0);
	EXPECT(weft_close(fds[0]) == 0);
	fd = weft_open("/proc/self/status", O_RDONLY, 0);
	EXPECT(fd >= 0);
	EXPECT(weft_read(fd, &byte, 1) == 1 && byte == 'N');
	EXPECT(weft_close(fd) == 0);
	return 0;
}

static struct seen seen_with(const struct weft_opts *opts)
{
	struct seen seen = { 0, "" };

	ck_assert_int_eq(io_run_opts(look, &seen, opts), 0);
	return seen;
}

static void variable_is(const char *name)
{
	ck_assert_int_eq(name ? setenv("WEFT_ENGINE", name, 1) :
				unsetenv("WEFT_ENGINE"),
			 0);
}

/* ---- Refused ------------------------------------------------------------ */

#ifdef WEFT_WITHOUT_URING
#define FORBIDDEN "weft was built without io_uring"
#define LACKING FORBIDDEN
#else
#define FORBIDDEN "io_uring is forbidden here"
#define LACKING "this kernel has no io_uring that suffices"
#endif

static const unsigned refusals[] = { EPERM, EACCES, ENOSYS, EINVAL };
enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };
static const unsigned calls[] = { SYS_io_uring_setup, SYS_io_uring_enter,
				  SYS_io_uring_register };
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* Each of the three system calls with each error. */
START_TEST(program_runs_where_io_uring_is_refused)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct seen seen;

	variable_is(NULL);
	refuse_call(calls[_i / REFUSALS], refusals[_i % REFUSALS]);
	for (opts.workers = 1; opts.workers <= 2; opts.workers++) {
		seen = seen_with(&opts);
		ck_assert_uint_eq(seen.engine, WEFT_ENGINE_EPOLL);
		ck_assert_ptr_nonnull(strstr(seen.why, "io_uring"));
	}
}
END_TEST

/* As in a container that gives little: no memory to lock, few descriptors, and
 * a user without privileges. */
START_TEST(refused_program_needs_little)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct rlimit none = { 0, 0 }, few = { 64, 64 };
	struct seen seen;

	variable_is(NULL);
	opts.workers = 4;
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	ck_assert(become_unprivileged());
	refuse_setup(EPERM);
	seen = seen_with(&opts);
	ck_assert_uint_eq(seen.engine, WEFT_ENGINE_EPOLL);
	ck_assert_str_eq(seen.why, FORBIDDEN);
}
END_TEST

static int64_t write_much(void *arg)
{
	static const char much[1 << 20];

	EXPECT(weft_write_all(*(int *)arg, much, sizeof(much), NULL) ==
	       -EPIPE);
	return 0;
}

static int64_t look_at_a_pipe(void *arg)
{
	char buf[8];
	int fds[2];

	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_read(fds[0], buf, sizeof(buf)) == -ETIMEDOUT);
	WEFT_WITHIN(WEFT_SEC(20)) {
		EXPECT(weft_write(fds[0], "abc", 3) == -EBADF);
		EXPECT(weft_read(fds[1], buf, sizeof(buf)) == -EBADF);
	}
	EXPECT(weft_write(fds[1], "abc", 3) == 3);
	EXPECT(weft_read(fds[0], buf, sizeof(buf)) == 3);
	/* A write that has done a part raises SIGPIPE as well. */
	WEFT_SCOPE (scope, NULL) {
		EXPECT(weft_go(scope, write_much, &fds[1], sizeof(int)) == 0);
		EXPECT(weft_poll(fds[0], POLLIN) == POLLIN);
		EXPECT(weft_sleep(WEFT_MS(5)) == 0);
		EXPECT(weft_close(fds[0]) == 0);
	}
	EXPECT(weft_write(fds[1], "abc", 3) == -EPIPE);
	EXPECT(weft_close(fds[1]) == 0);
	return look(arg);
}

static int64_t look_at_a_file(void *arg)
{
	char path[] = "/tmp/test_io_engine.XXXXXX", buf[8];
	int fd = mkstemp(path);

	EXPECT(fd >= 0 && unlink(path) == 0);
	EXPECT(weft_write(fd, "abcd", 4) == 4);
	EXPECT(weft_pwrite(fd, "xy", 2, 1) == 2);
	EXPECT(weft_pread(fd, buf, sizeof(buf), 0) == 4);
	EXPECT(memcmp(buf, "axyd", 4) == 0);
	EXPECT(weft_read(fd, buf, sizeof(buf)) == 0);
	EXPECT(weft_close(fd) == 0);
	return look_at_a_pipe(arg);
}

/* An emulator or a filter may know no calls of the last ten years. */
START_TEST(newer_calls_may_be_missing)
{
	static const unsigned newer[] = {
		SYS_preadv2,  SYS_pwritev2,   SYS_openat2,
		SYS_clone3,   SYS_close_range, SYS_epoll_pwait2,
		SYS_membarrier,
	};
	enum { NEWER = sizeof(newer) / sizeof(newer[0]) };
	unsigned from = _i == NEWER ? 0 : (unsigned)_i;
	unsigned count = _i == NEWER ? NEWER : 1;
	struct seen seen = { 0, "" };

	variable_is("epoll");
	ck_assert(refuse_calls(newer + from, count, ENOSYS));
	ck_assert_int_eq(weft_run(look_at_a_file, &seen, NULL), 0);
	ck_assert_uint_eq(seen.engine, WEFT_ENGINE_EPOLL);
}
END_TEST

static int missing_signal; /* 0: none */

/* The linker puts it in the place of the C library's (--wrap). */
int __wrap_timer_create(clockid_t clock, struct sigevent *event,
			timer_t *ret_timer);
int __real_timer_create(clockid_t clock, struct sigevent *event,
			timer_t *ret_timer);

int __wrap_timer_create(clockid_t clock, struct sigevent *event,
			timer_t *ret_timer)
{
	if (missing_signal && event &&
	    event->sigev_signo == missing_signal) {
		errno = EINVAL;
		return -1;
	}
	return __real_timer_create(clock, event, ret_timer);
}

static int64_t open_in_vain(void *arg)
{
	int fd = 0;

	EXPECT(mkfifo(arg, 0600) == 0);
	WEFT_WITHIN(WEFT_MS(20))
		fd = weft_open(arg, O_RDONLY, 0);
	EXPECT(unlink(arg) == 0);
	return fd;
}

/* A thread that opens is interrupted by a signal; qemu-user has not all of
 * those that it says it has. */
START_TEST(signal_that_cannot_be_sent_is_not_chosen)
{
	char path[64];

	variable_is("epoll");
	(void)snprintf(path, sizeof(path), "/tmp/test_io_engine.%d",
		       (int)getpid());
	missing_signal = SIGRTMAX;
	ck_assert(refuse_call_with(SYS_rt_tgsigqueueinfo, 2,
				   (unsigned)SIGRTMAX, EINVAL));
	ck_assert_int_eq(weft_run(open_in_vain, path, NULL), -ETIMEDOUT);
}
END_TEST

/* A lack of something is no refusal (lalinsky/zio#642). */
START_TEST(lack_of_descriptors_is_an_error)
{
	variable_is(NULL);
	refuse_setup(_i ? ENFILE : EMFILE);
	ck_assert_int_eq(weft_run(look, NULL, NULL), _i ? -ENFILE : -EMFILE);
}
END_TEST

START_TEST(who_asks_for_io_uring_in_vain_is_told)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	const char *text;
	int64_t r;

	variable_is(_i ? "uring" : NULL);
	opts.engine = _i ? WEFT_ENGINE_ANY : WEFT_ENGINE_URING;
	refuse_setup(EPERM);
	said_begin();
	r = weft_run(look, NULL, &opts);
	text = said_end();
	ck_assert_int_eq(r, -ENOSYS);
	ck_assert_ptr_nonnull(strstr(text, FORBIDDEN));
	ck_assert_ptr_nonnull(
		strstr(text, _i ? "WEFT_ENGINE" : "the program asked"));
}
END_TEST

#ifdef WEFT_WITHOUT_URING
START_TEST(build_without_io_uring_says_so)
{
	struct seen seen;

	variable_is(NULL);
	seen = seen_with(NULL);
	ck_assert_uint_eq(seen.engine, WEFT_ENGINE_EPOLL);
	ck_assert_str_eq(seen.why, FORBIDDEN);
}
END_TEST
#endif

/* ---- Chosen ------------------------------------------------------------- */

START_TEST(option_chooses)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct seen seen;

	variable_is(NULL);
	opts.engine = WEFT_ENGINE_EPOLL;
	seen = seen_with(&opts);
	ck_assert_uint_eq(seen.engine, WEFT_ENGINE_EPOLL);
	ck_assert_ptr_nonnull(strstr(seen.why, "program"));
	if (!test_has_uring())
		return;
	opts.engine = WEFT_ENGINE_URING;
	ck_assert_uint_eq(seen_with(&opts).engine, WEFT_ENGINE_URING);
	ck_assert_uint_eq(seen_with(NULL).engine, WEFT_ENGINE_URING);
}
END_TEST

/* On the machine as it is: the launcher tests/tools/refuse.c makes one of which
 * only the kernel knows. */
START_TEST(kernel_chooses_where_nobody_does)
{
	const char *allowed = "the kernel allows it";
	bool refused = syscall(SYS_io_uring_setup, 1, NULL) < 0 &&
		       (errno == EPERM || errno == EACCES);
	struct seen seen;

	variable_is(NULL);
	seen = seen_with(NULL);
	if (seen.engine == WEFT_ENGINE_URING)
		ck_assert_str_eq(seen.why, allowed);
	else
		ck_assert_str_eq(seen.why, refused ? FORBIDDEN : LACKING);
}
END_TEST

START_TEST(variable_comes_before_the_option)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct seen seen;

	opts.engine = WEFT_ENGINE_URING;
	variable_is("epoll");
	seen = seen_with(&opts);
	ck_assert_uint_eq(seen.engine, WEFT_ENGINE_EPOLL);
	ck_assert_ptr_nonnull(strstr(seen.why, "WEFT_ENGINE"));
	variable_is("");
	opts.engine = WEFT_ENGINE_EPOLL;
	ck_assert_uint_eq(seen_with(&opts).engine, WEFT_ENGINE_EPOLL);
}
END_TEST

START_TEST(unknown_engine_is_refused)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	const char *text;
	int64_t r;

	variable_is("kqueue");
	said_begin();
	r = weft_run(look, NULL, NULL);
	text = said_end();
	ck_assert_int_eq(r, -EINVAL);
	ck_assert_ptr_nonnull(strstr(text, "kqueue"));
	variable_is(NULL);
	opts.engine = WEFT_ENGINE_EPOLL + 1;
	ck_assert_int_eq(weft_run(look, NULL, &opts), -EINVAL);
	ck_assert_uint_eq(weft_engine(NULL, NULL), WEFT_ENGINE_ANY);
}
END_TEST

/* ---- Masked ------------------------------------------------------------- */

static const char *const features[] = {
	"accept_poll_first", "buf_ring",       "coop_taskrun",
	"defer_taskrun",     "epoll_pwait2",   "fixed_files",
	"multishot_recv",    "no_iowait",      "rwf_nosignal",
	"rwf_nowait",	     "udp_gro",	       "udp_segment",
	"close_range",	     "pidfd",
	"buf_ring,,multishot_recv,rwf_nowait,",
};
enum { FEATURES = sizeof(features) / sizeof(features[0]) };

static int64_t stream_look(void *arg)
{
	const void *data;
	int fds[2];

	socket_pair(fds);
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);

	EXPECT(weft_send(fds[1], "abc", 3, 0) == 3);
	EXPECT(weft_stream_peek(&stream, &data) == 3);
	EXPECT(memcmp(data, "abc", 3) == 0);
	*(bool *)arg =
		weft__shard(weft__worker_self())->pools[WEFT__POOL_SMALL].ring;
	EXPECT(weft_stream_close(&stream) == 0);
	return weft_close(fds[1]);
}

/* On both engines; a stream has no buffers of the ring where those are
 * masked. */
START_TEST(weft_does_without_each_feature)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	bool has_ring = false;

	opts.workers = 1;
	ck_assert_int_eq(setenv("WEFT_MASK", features[_i], 1), 0);
	variable_is("epoll");
	(void)seen_with(NULL);
	ck_assert_int_eq(weft_run(stream_look, &has_ring, &opts), 0);
	ck_assert_int_eq(has_ring, strstr(features[_i], "buf_ring") == NULL);
	if (!test_has_uring_at_all())
		return;
	variable_is("uring");
	(void)seen_with(NULL);
	ck_assert_int_eq(weft_run(stream_look, &has_ring, &opts), 0);
}
END_TEST

static int64_t sleep_a_little(void *arg)
{
	int before = fds_open();

	(void)arg;
	EXPECT(weft_sleep(WEFT_US(500)) == 0);
	return fds_open() - before;
}

/* It might be the last one that there is, and the program waits for it. */
START_TEST(no_wait_takes_a_descriptor)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	variable_is("epoll");
	ck_assert_int_eq(setenv("WEFT_MASK", "epoll_pwait2", 1), 0);
	ck_assert_int_eq(weft_run(sleep_a_little, NULL, &opts), 0);
}
END_TEST

START_TEST(unknown_feature_is_refused)
{
	const char *text;
	int64_t r;

	ck_assert_int_eq(setenv("WEFT_MASK", "buf_ring,kqueue", 1), 0);
	said_begin();
	r = weft_run(look, NULL, NULL);
	text = said_end();
	ck_assert_int_eq(r, -EINVAL);
	ck_assert_ptr_nonnull(strstr(text, "'kqueue'"));
	ck_assert_ptr_nonnull(strstr(text, "multishot_recv"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/engine");
	TCase *refused = tcase_create("refused");
	TCase *chosen = tcase_create("chosen");
	TCase *masked = tcase_create("masked");

	tcase_add_loop_test(refused, program_runs_where_io_uring_is_refused, 0,
			    CALLS * REFUSALS);
	tcase_add_test(refused, refused_program_needs_little);
	tcase_add_test(refused, signal_that_cannot_be_sent_is_not_chosen);
	tcase_add_loop_test(refused, newer_calls_may_be_missing, 0, 8);
	if (test_needs(test_has_uring_at_all(),
		       "lack_of_descriptors_is_an_error", NEEDS_URING))
		tcase_add_loop_test(refused, lack_of_descriptors_is_an_error, 0,
				    2);
	tcase_add_loop_test(refused, who_asks_for_io_uring_in_vain_is_told, 0,
			    2);
#ifdef WEFT_WITHOUT_URING
	tcase_add_test(refused, build_without_io_uring_says_so);
#endif
	tcase_add_test(chosen, option_chooses);
	tcase_add_test(chosen, kernel_chooses_where_nobody_does);
	tcase_add_test(chosen, variable_comes_before_the_option);
	tcase_add_test(chosen, unknown_engine_is_refused);
	tcase_add_loop_test(masked, weft_does_without_each_feature, 0,
			    FEATURES);
	tcase_add_test(masked, no_wait_takes_a_descriptor);
	tcase_add_test(masked, unknown_feature_is_refused);
	suite_add_tcase(suite, masked);
	suite_add_tcase(suite, refused);
	suite_add_tcase(suite, chosen);
	return io_tests_run(suite);
}
