/* SPDX-License-Identifier: MIT */
/*
 * Suite io/soft: what goes wrong in loops over epoll, after reports of others,
 * on the epoll engine; each test names the report.
 */
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "io/ring/soft/soft.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/stream_kit.h"

/* The body is the first task of a runtime on epoll, with one worker and two. */
#define SOFT_TEST(name)                                         \
	static int64_t name##_task(void *arg);                  \
	START_TEST(name)                                        \
	{                                                       \
		struct weft_opts opts = WEFT_OPTS_INIT;         \
                                                                \
		opts.engine = WEFT_ENGINE_EPOLL;                \
		opts.workers = 1 + (unsigned)_i;                \
		ck_assert_int_eq(                               \
			io_run_opts(name##_task, NULL, &opts), 0); \
	}                                                       \
	END_TEST                                                \
	static int64_t name##_task(__attribute__((unused)) void *arg)

/* Within that even a slow machine gets what has come. */
#define LONG_NS WEFT_SEC(20)

static struct weft__ring *own_ring(void)
{
	return &weft__shard(weft__worker_self())->ring;
}

/* The events that the calling worker's ring has of the number. */
static uint32_t watched(int fd)
{
	struct weft__soft *soft = weft__soft(own_ring());
	struct weft__soft_watch *watch;
	uint32_t events;

	weft__lock_take(&soft->lock);
	watch = weft__soft_watch_find(&soft->watches, fd);
	events = watch ? watch->events : 0;
	weft__lock_drop(&soft->lock);
	return events;
}

static void fill(int fd)
{
	static const char bytes[4096];

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

/* The worker's rounds during 20 ms in which nothing comes. */
static uint64_t rounds_while_idle(void)
{
	struct weft_stats before, after;

	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	EXPECT(weft_stats_get(weft_runtime_self(), &before) == 0);
	EXPECT(weft_sleep(WEFT_MS(20)) == 0);
	EXPECT(weft_stats_get(weft_runtime_self(), &after) == 0);
	return after.total.ticks - before.total.ticks;
}

static void put(int fd)
{
	EXPECT(send(fd, "x", 1, 0) == 1);
}

static int64_t put_later(void *arg)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	put(*(int *)arg);
	return 0;
}

/* ---- Cancelling --------------------------------------------------------- */

/* compio#345: the cancel of a request that never gets an event. */
SOFT_TEST(request_without_an_event_can_be_cancelled)
{
	char byte;
	int fds[2];

	socket_pair(fds);
	for (int i = 0; i < 100; i++) {
		WEFT_WITHIN(WEFT_US(50))
			EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
		put(fds[1]);
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == 1);
	}
	fill(fds[0]);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_send(fds[0], &byte, 1, 0) == -ETIMEDOUT);
	EXPECT(weft_close(fds[0]) == 0);
	return weft_close(fds[1]);
}

/* ---- Numbers ------------------------------------------------------------ */

/* golang/go#59545, libxev#230: a number that is closed and used again.  With
 * close(2) weft is not told: that costs time, and no event. */
SOFT_TEST(number_that_close_gave_to_another_file_is_served)
{
	for (int i = 0; i < 4; i++) {
		char byte;
		int fds[2], again[2];

		socket_pair(fds);
		WEFT_WITHIN(WEFT_MS(1))
			EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
		EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
		socket_pair(again);
		EXPECT(again[0] == fds[0]);
		WEFT_WITHIN(WEFT_MS(1))
			EXPECT(weft_recv(again[0], &byte, 1, 0) == -ETIMEDOUT);
		WEFT_SCOPE (scope, NULL) {
			EXPECT(WEFT_GO(scope, put_later, again[1]) == 0);
			WEFT_WITHIN(LONG_NS)
				EXPECT(weft_recv(again[0], &byte, 1, 0) == 1);
		}
		EXPECT(close(again[0]) == 0 && close(again[1]) == 0);
	}
	return 0;
}

/* Is the best of a few below the age at which descriptors are set anew?  What
 * was overlooked takes longer each time. */
static bool is_at_once(weft_nsec (*take_ns)(void))
{
	for (int i = 0; i < 10; i++)
		if (take_ns() < WEFT_MS(100))
			return true;
	return false;
}

/* Waits for a number that close(2) has given to another file before. */
static weft_nsec poll_of_another_file_ns(void)
{
	weft_nsec began_ns;
	int fds[2], again[2];

	socket_pair(fds);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_poll(fds[0], POLLIN) == -ETIMEDOUT);
	EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
	socket_pair(again);
	EXPECT(again[0] == fds[0]);
	began_ns = weft_now();
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, put_later, again[1]) == 0);
		EXPECT(weft_poll(again[0], POLLIN) == POLLIN);
	}
	EXPECT(close(again[0]) == 0 && close(again[1]) == 0);
	return weft_now() - began_ns;
}

/* Other libraries close their descriptors by close(2), and weft polls them: a
 * database's, a resolver's.  That costs no time. */
SOFT_TEST(poll_of_a_number_that_close_gave_to_another_file_is_not_late)
{
	EXPECT(is_at_once(poll_of_another_file_ns));
	return 0;
}

/* A copy keeps the older file open, and epoll with it, but by close(2) weft is
 * not told. */
SOFT_TEST(event_of_an_older_file_is_not_the_newer_ones)
{
	int fds[2], again[2], copy;

	socket_pair(fds);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_poll(fds[0], POLLIN) == -ETIMEDOUT);
	copy = dup(fds[0]);
	EXPECT(copy >= 0 && close(fds[0]) == 0);
	socket_pair(again);
	EXPECT(again[0] == fds[0]);
	for (int i = 0; i < 10; i++) {
		WEFT_WITHIN(WEFT_MS(1))
			EXPECT(weft_poll(again[0], POLLIN) == -ETIMEDOUT);
		put(fds[1]);
	}
	EXPECT(close(copy) == 0 && close(fds[1]) == 0);
	EXPECT(weft_close(again[0]) == 0);
	return weft_close(again[1]);
}

/* Another descriptor keeps the file open, and epoll with it.  Its events are
 * not taken for those of the file that has the number now, and wake nobody. */
SOFT_TEST(file_that_a_copy_keeps_open_is_no_longer_watched)
{
	char byte;
	int fds[2], again[2], copy;

	socket_pair(fds);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
	copy = dup(fds[0]);
	EXPECT(copy >= 0);
	EXPECT(weft_close(fds[0]) == 0);
	socket_pair(again);
	EXPECT(again[0] == fds[0]);
	put(fds[1]);
	WEFT_WITHIN(WEFT_MS(5))
		EXPECT(weft_recv(again[0], &byte, 1, 0) == -ETIMEDOUT);
	put(again[1]);
	EXPECT(weft_recv(again[0], &byte, 1, 0) == 1);
	EXPECT(close(copy) == 0 && close(fds[1]) == 0);
	EXPECT(weft_close(again[0]) == 0);
	EXPECT(watched(again[0]) == 0);
	return weft_close(again[1]);
}

/* Reads through a stream what a poll has reported before. */
static weft_nsec stream_after_a_poll_ns(void)
{
	struct weft_stream stream;
	weft_nsec began_ns;
	const void *data;
	int fds[2];

	socket_pair(fds);
	stream = (struct weft_stream)WEFT_STREAM_INIT(fds[0]);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, put_later, fds[1]) == 0);
		EXPECT(weft_poll(fds[0], POLLIN) == POLLIN);
	}
	began_ns = weft_now();
	WEFT_WITHIN(LONG_NS)
		EXPECT(weft_stream_peek(&stream, &data) == 1);
	weft_stream_skip(&stream, 1);
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
	return weft_now() - began_ns;
}

SOFT_TEST(stream_reads_what_a_poll_reported_without_delay)
{
	EXPECT(is_at_once(stream_after_a_poll_ns));
	return 0;
}

/* ---- Two tasks, one descriptor ------------------------------------------- */

struct half {
	int fd;
	unsigned count;
};

static int64_t receive_all(void *arg)
{
	struct half *half = arg;
	char byte;

	for (unsigned i = 0; i < half->count; i++)
		EXPECT(weft_recv(half->fd, &byte, 1, 0) == 1);
	return 0;
}

static int64_t send_all(void *arg)
{
	struct half *half = arg;

	for (unsigned i = 0; i < half->count; i++)
		EXPECT(weft_send(half->fd, "x", 1, 0) == 1);
	return 0;
}

/* Photon#381. */
SOFT_TEST(two_tasks_may_wait_for_both_directions)
{
	struct half left, right;
	int fds[2];

	socket_pair(fds);
	left = (struct half){ fds[0], 5000 };
	right = (struct half){ fds[1], 5000 };
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, receive_all, left) == 0);
		EXPECT(WEFT_GO(scope, send_all, left) == 0);
		EXPECT(WEFT_GO(scope, receive_all, right) == 0);
		EXPECT(WEFT_GO(scope, send_all, right) == 0);
	}
	EXPECT(weft_close(fds[0]) == 0);
	return weft_close(fds[1]);
}

SOFT_TEST(tasks_that_receive_from_one_socket_get_all)
{
	enum { TASKS = 5, EACH = 1000 };
	struct half half;
	int fds[2];

	socket_pair(fds);
	half = (struct half){ fds[0], EACH };
	WEFT_SCOPE (scope, NULL) {
		for (int i = 0; i < TASKS; i++)
			EXPECT(WEFT_GO(scope, receive_all, half) == 0);
		half = (struct half){ fds[1], TASKS * EACH };
		EXPECT(WEFT_GO(scope, send_all, half) == 0);
	}
	EXPECT(weft_close(fds[0]) == 0);
	return weft_close(fds[1]);
}

static int64_t await_errors(void *arg)
{
	char control[256];
	struct msghdr msg = {
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};

	EXPECT(weft_recvmsg(*(int *)arg, &msg, MSG_ERRQUEUE) == -ECANCELED);
	return 0;
}

/* The first finds no error, and that says nothing of the second. */
SOFT_TEST(task_that_waits_for_errors_hides_no_data)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(at);
	int in = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int out = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char byte;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	EXPECT(bind(in, (struct sockaddr *)&at, sizeof(at)) == 0);
	EXPECT(getsockname(in, (struct sockaddr *)&at, &bytes) == 0);
	EXPECT(connect(out, (struct sockaddr *)&at, bytes) == 0);
	WEFT_SUPERVISE (scope) {
		EXPECT(WEFT_GO(scope, await_errors, in) == 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		for (int i = 0; i < 10; i++) {
			EXPECT(WEFT_GO(scope, put_later, out) == 0);
			WEFT_WITHIN(LONG_NS)
				EXPECT(weft_recv(in, &byte, 1, 0) == 1);
		}
		weft_scope_cancel(scope);
	}
	EXPECT(weft_close(in) == 0);
	return weft_close(out);
}

static uint8_t flags_of(int fd)
{
	struct weft__soft *soft = weft__soft(own_ring());
	struct weft__soft_watch *watch;
	uint8_t flags;

	weft__lock_take(&soft->lock);
	watch = weft__soft_watch_find(&soft->watches, fd);
	flags = watch ? watch->flags : 0;
	weft__lock_drop(&soft->lock);
	return flags;
}

/* Data that was looked at is still there, and no edge tells it again. */
SOFT_TEST(look_takes_nothing)
{
	char bytes[8];
	int fds[2];

	tcp_pair(fds);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_recv(fds[0], bytes, 8, 0) == -ETIMEDOUT);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, put_later, fds[1]) == 0);
		EXPECT(weft_recv(fds[0], bytes, 8, MSG_PEEK) == 1);
		/* A worker that has the number in no set knows nothing. */
		EXPECT(!watched(fds[0]) ||
		       (flags_of(fds[0]) & WEFT__WATCH_READY_IN));
	}
	EXPECT(weft_recv(fds[0], bytes, 8, 0) == 1);
	EXPECT(weft_close(fds[0]) == 0);
	return weft_close(fds[1]);
}

static int64_t idle_after_a_wake(void *arg)
{
	uint64_t one = 1;

	(void)arg;
	EXPECT(write(weft__shard(weft__worker_self())->wake_fd, &one,
		     sizeof(one)) == sizeof(one));
	return (int64_t)rounds_while_idle();
}

/* Nothing reads the eventfd: it stays ready. */
START_TEST(wake_before_the_first_sleep_keeps_no_worker_awake)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.engine = WEFT_ENGINE_EPOLL;
	opts.workers = 1 + (unsigned)_i;
	ck_assert_int_lt(weft_run(idle_after_a_wake, NULL, &opts), 100);
}
END_TEST

/* ---- Ends --------------------------------------------------------------- */

static int64_t close_later(void *arg)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	return weft_close(*(int *)arg);
}

/* tokio-core#117: a pipe whose writer goes is reported without EPOLLIN. */
SOFT_TEST(pipe_whose_other_end_goes_ends)
{
	char bytes[4096] = { 0 };
	int fds[2];

	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, close_later, fds[1]) == 0);
		EXPECT(weft_read(fds[0], bytes, 1) == 0);
	}
	EXPECT(weft_close(fds[0]) == 0);
	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	WEFT_SCOPE (scope, NULL) {
		ssize_t r;

		EXPECT(WEFT_GO(scope, close_later, fds[0]) == 0);
		do
			r = weft_write(fds[1], bytes, sizeof(bytes));
		while (r > 0);
		EXPECT(r == -EPIPE);
	}
	return weft_close(fds[1]);
}

static int64_t send_until_closed(void *arg)
{
	EXPECT(weft_send(*(int *)arg, "x", 1, 0) == -ECANCELED);
	return 0;
}

/* mio#933: the peer has ended its direction, and ours is full. */
SOFT_TEST(half_closed_peer_keeps_no_worker_awake)
{
	char byte;
	int fds[2];

	socket_pair(fds);
	WEFT_WITHIN(WEFT_MS(1))
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
	fill(fds[0]);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, send_until_closed, fds[0]) == 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(shutdown(fds[1], SHUT_WR) == 0);
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == 0);
		EXPECT(rounds_while_idle() < 100);
		EXPECT(weft_close(fds[0]) == 0);
	}
	return weft_close(fds[1]);
}

/* ---- Files that epoll refuses -------------------------------------------- */

SOFT_TEST(file_that_epoll_refuses_is_ready)
{
	char name[] = "/tmp/weft-soft-XXXXXX", bytes[3];
	int fd = mkstemp(name), dir = weft_open("/", O_RDONLY | O_DIRECTORY, 0);

	EXPECT(fd >= 0 && dir >= 0 && unlink(name) == 0);
	EXPECT(weft_poll(fd, POLLIN | POLLOUT) > 0);
	EXPECT(weft_poll(dir, POLLIN) > 0);
	EXPECT(weft_pwrite(fd, "abc", 3, 0) == 3);
	EXPECT(weft_fsync(fd) == 0);
	EXPECT(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	EXPECT(weft_pread(fd, bytes, 3, 0) == 3);
	EXPECT(memcmp(bytes, "abc", 3) == 0);
	EXPECT(weft_recv(fd, bytes, 3, 0) == -ENOTSOCK);
	EXPECT(weft_close(dir) == 0);
	return weft_close(fd);
}

/* ---- Nothing is lost, nothing is changed --------------------------------- */

static weft__atomic(uint32_t) asked;

static void *answer_from_a_thread(void *arg)
{
	const int *fds = arg;
	uint32_t seed = 1, seen = 0;

	while (seen != UINT32_MAX) {
		uint32_t now = weft__load(&asked, acquire);

		if (now == seen)
			continue;
		seen = now;
		if (seen == UINT32_MAX)
			break;
		seed = seed * 1664525u + 1013904223u;
		for (uint32_t i = seed >> 22; i > 0; i--)
			weft__spin_hint();
		put(fds[1]);
	}
	return NULL;
}

/* The answer comes at any moment: before the try, between the try and the link,
 * while the worker falls asleep. */
SOFT_TEST(no_edge_is_lost)
{
	enum { ROUNDS = 20000 };
	pthread_t thread;
	char byte;
	int fds[2];

	socket_pair(fds);
	/* relaxed: before the thread. */
	weft__store(&asked, 0u, relaxed);
	EXPECT(pthread_create(&thread, NULL, answer_from_a_thread, fds) == 0);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		weft__store(&asked, i, release);
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == 1);
	}
	weft__store(&asked, UINT32_MAX, release);
	EXPECT(pthread_join(thread, NULL) == 0);
	EXPECT(weft_close(fds[0]) == 0);
	return weft_close(fds[1]);
}

static weft__atomic(uint32_t) controls;

/* Replaces the library's function, and counts. */
int epoll_ctl(int epoll_fd, int how, int fd, struct epoll_event *event)
{
	/* relaxed: a count. */
	weft__add(&controls, 1u, relaxed);
	return (int)syscall(SYS_epoll_ctl, epoll_fd, how, fd, event);
}

static int64_t echo(void *arg)
{
	int fd = *(int *)arg;
	char byte;

	while (weft_recv(fd, &byte, 1, 0) == 1)
		EXPECT(weft_send(fd, &byte, 1, 0) == 1);
	return weft_close(fd);
}

/* lalinsky/zio#510: a request that waits costs no epoll_ctl(). */
SOFT_TEST(epoll_set_is_not_changed_for_each_request)
{
	enum { ROUNDS = 1000 };
	uint32_t before;
	char byte;
	int fds[2];

	tcp_pair(fds);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, echo, fds[1]) == 0);
		/* relaxed: a count. */
		before = weft__load(&controls, relaxed);
		for (int i = 0; i < ROUNDS; i++) {
			EXPECT(weft_send(fds[0], "x", 1, 0) == 1);
			EXPECT(weft_recv(fds[0], &byte, 1, 0) == 1);
		}
		/* Each worker adds each descriptor; rounds that take long have
		 * it set anew, and so may a move to another worker.  relaxed: a
		 * count. */
		EXPECT(weft__load(&controls, relaxed) - before < ROUNDS / 4);
		EXPECT(weft_close(fds[0]) == 0);
	}
	return 0;
}

SOFT_TEST(o_nonblock_is_never_changed)
{
	char byte;
	int fds[2], pipes[2];

	for (int nonblock = 0; nonblock < 2; nonblock++) {
		int flags = nonblock ? O_NONBLOCK : 0;

		socket_pair(fds);
		EXPECT(pipe2(pipes, O_CLOEXEC | flags) == 0);
		EXPECT(fcntl(fds[0], F_SETFL, flags) == 0);
		WEFT_WITHIN(WEFT_MS(1))
			EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
		WEFT_WITHIN(WEFT_MS(1))
			EXPECT(weft_read(pipes[0], &byte, 1) == -ETIMEDOUT);
		EXPECT(weft_write(pipes[1], "x", 1) == 1);
		EXPECT(weft_read(pipes[0], &byte, 1) == 1);
		EXPECT((fcntl(fds[0], F_GETFL) & O_NONBLOCK) == flags);
		for (int i = 0; i < 2; i++) {
			EXPECT((fcntl(pipes[i], F_GETFL) & O_NONBLOCK) ==
			       flags);
			EXPECT(weft_close(pipes[i]) == 0);
			EXPECT(weft_close(fds[i]) == 0);
		}
	}
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/soft");
	TCase *numbers = tcase_create("numbers");
	TCase *edges = tcase_create("edges");

	/* The tests choose the engine themselves. */
	unsetenv("WEFT_ENGINE");
	tcase_set_timeout(edges, 60);
	tcase_set_timeout(numbers, 60);
	io_add_test(numbers, request_without_an_event_can_be_cancelled);
	io_add_test(numbers, number_that_close_gave_to_another_file_is_served);
	io_add_test(numbers,
		    poll_of_a_number_that_close_gave_to_another_file_is_not_late);
	io_add_test(numbers, event_of_an_older_file_is_not_the_newer_ones);
	io_add_test(numbers, stream_reads_what_a_poll_reported_without_delay);
	io_add_test(numbers, file_that_a_copy_keeps_open_is_no_longer_watched);
	io_add_test(numbers, file_that_epoll_refuses_is_ready);
	io_add_test(edges, two_tasks_may_wait_for_both_directions);
	io_add_test(edges, tasks_that_receive_from_one_socket_get_all);
	io_add_test(edges, task_that_waits_for_errors_hides_no_data);
	io_add_test(edges, look_takes_nothing);
	io_add_test(edges,
		    wake_before_the_first_sleep_keeps_no_worker_awake);
	io_add_test(edges, pipe_whose_other_end_goes_ends);
	io_add_test(edges, half_closed_peer_keeps_no_worker_awake);
	io_add_test(edges, no_edge_is_lost);
	io_add_test(edges, epoll_set_is_not_changed_for_each_request);
	io_add_test(edges, o_nonblock_is_never_changed);
	suite_add_tcase(suite, numbers);
	suite_add_tcase(suite, edges);
	return io_tests_run(suite);
}
