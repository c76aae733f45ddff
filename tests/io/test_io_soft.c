/* SPDX-License-Identifier: MIT */
/*
 * Suite io/soft: what goes wrong in loops over epoll, after reports of others,
 * on the epoll engine; each test names the report.
 */
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "tests/support/soft_kit.h"

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
		wait_until(calls_waiting(in) == 1);
		for (int i = 0; i < 10; i++) {
			EXPECT(WEFT_GO(scope, put_later, out) == 0);
			WEFT_WITHIN (LONG_NS)
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
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_recv(fds[0], bytes, 8, 0) == -ETIMEDOUT);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, put_later, fds[1]) == 0);
		EXPECT(weft_recv(fds[0], bytes, 8, MSG_PEEK) == 1);
		/* A worker that has the number in no set knows nothing; the
		 * edge may still come. */
		wait_until(!watched(fds[0]) ||
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
	return rounds_while_idle();
}

/* Nothing reads the eventfd: it stays ready. */
START_TEST(wake_before_the_first_sleep_keeps_no_worker_awake)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.engine = WEFT_ENGINE_EPOLL;
	opts.workers = 1 + (unsigned)_i;
	ck_assert_int_le(weft_run(idle_after_a_wake, NULL, &opts),
			 IDLE_ROUNDS_MAX);
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
	WEFT_WITHIN (WEFT_MS(1))
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
	fill(fds[0]);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, send_until_closed, fds[0]) == 0);
		wait_until(calls_waiting(fds[0]) == 1);
		EXPECT(shutdown(fds[1], SHUT_WR) == 0);
		EXPECT(weft_recv(fds[0], &byte, 1, 0) == 0);
		EXPECT(rounds_while_idle() <= IDLE_ROUNDS_MAX);
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

		if (now == seen) {
			sched_yield();
			continue;
		}
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
static weft__atomic(int) refused_fd; /* 0: none */

__attribute__((used)) int
__wrap_epoll_ctl(int epoll_fd, int how, int fd, struct epoll_event *event);

/* Replaces the library's function, and counts. */
int __wrap_epoll_ctl(int epoll_fd, int how, int fd, struct epoll_event *event)
{
	/* relaxed: a count. */
	weft__add(&controls, 1u, relaxed);
	/* relaxed: a switch. */
	if (how == EPOLL_CTL_ADD && fd == weft__load(&refused_fd, relaxed)) {
		errno = ENOSPC;
		return -1;
	}
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

/* The user has no more watches.  An accept does not wait for some. */
SOFT_TEST(lack_of_watches_is_an_error)
{
	char text[WEFT_ADDR_TEXT_BYTES], byte;
	int fds[2], listener = tcp_listener(text), r = 0;

	socket_pair(fds);
	/* relaxed: a switch. */
	weft__store(&refused_fd, fds[0], relaxed);
	ck_assert_int_eq(weft_recv(fds[0], &byte, 1, 0), -ENOMEM);
	weft__store(&refused_fd, listener, relaxed);
	WEFT_WITHIN(WEFT_SEC(20))
		r = weft_accept(listener, NULL);
	ck_assert_int_eq(r, -ENOMEM);
	weft__store(&refused_fd, 0, relaxed);
	close_both(fds);
	return weft_close(listener);
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
		 * it set anew, and so may a move to another worker.  With one
		 * for each request there were 2 * ROUNDS.  relaxed: a count. */
		EXPECT(weft__load(&controls, relaxed) - before < ROUNDS);
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
		WEFT_WITHIN (WEFT_MS(1))
			EXPECT(weft_recv(fds[0], &byte, 1, 0) == -ETIMEDOUT);
		WEFT_WITHIN (WEFT_MS(1))
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
	TCase *edges = tcase_create("edges");

	/* The tests choose the engine themselves. */
	unsetenv("WEFT_ENGINE");
	tcase_set_timeout(edges, 60);
	io_add_test(edges, two_tasks_may_wait_for_both_directions);
	io_add_test(edges, tasks_that_receive_from_one_socket_get_all);
	io_add_test(edges, task_that_waits_for_errors_hides_no_data);
	io_add_test(edges, look_takes_nothing);
	io_add_test(edges, wake_before_the_first_sleep_keeps_no_worker_awake);
	io_add_test(edges, pipe_whose_other_end_goes_ends);
	io_add_test(edges, half_closed_peer_keeps_no_worker_awake);
	io_add_test(edges, no_edge_is_lost);
	io_add_test(edges, lack_of_watches_is_an_error);
	io_add_test(edges, epoll_set_is_not_changed_for_each_request);
	io_add_test(edges, o_nonblock_is_never_changed);
	io_add_test(edges, file_that_epoll_refuses_is_ready);
	suite_add_tcase(suite, edges);
	return io_tests_run(suite);
}
