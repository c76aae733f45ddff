/* SPDX-License-Identifier: MIT */
/*
 * Suite io/future_calls: calls that may suspend are refused inside a future,
 * and do not disturb the worker; calls that never wait work as in a task.
 */
#include <sys/stat.h>
#include <sys/uio.h>

#include "tests/support/io_kit.h"

#define REFUSED(call) ck_assert_int_eq((call), -EPERM)

static int64_t zero(void *arg)
{
	(void)arg;
	return 0;
}

static void nop(void *arg)
{
	(void)arg;
}

static void files(void)
{
	static struct iovec vec = { NULL, 0 };
	struct stat st;
	char byte = 0;

	REFUSED(weft_open("/dev/null", O_RDONLY, 0));
	REFUSED(weft_stat("/", &st));
	REFUSED(weft_fstat(0, &st));
	REFUSED(weft_fsync(0));
	REFUSED(weft_fdatasync(0));
	REFUSED(weft_read(0, &byte, 1));
	REFUSED(weft_write(0, &byte, 1));
	REFUSED(weft_pread(0, &byte, 1, 0));
	REFUSED(weft_pwrite(0, &byte, 1, 0));
	REFUSED(weft_readv(0, &vec, 1));
	REFUSED(weft_writev(0, &vec, 1));
	REFUSED(weft_read_all(0, &byte, 1, NULL));
	REFUSED(weft_write_all(0, &byte, 1, NULL));
	REFUSED(weft_sendfile(0, 0, 0, 1, NULL));
	REFUSED(weft_copy(0, 0, 1, NULL, NULL));
	REFUSED(weft_close(0));
	REFUSED(weft_poll(0, POLLIN));
	REFUSED(weft_poll(-1, POLLIN));
}

static void sockets(int fd)
{
	struct weft_addr addr;
	struct msghdr msg = { 0 };
	char byte = 0;

	ck_assert_int_eq(weft_addr_parse("127.0.0.1:1", &addr), 0);
	REFUSED(weft_accept(fd, &addr));
	REFUSED(weft_connect(fd, &addr));
	REFUSED(weft_connect(fd, NULL));
	REFUSED(weft_tcp_connect("127.0.0.1:1", NULL));
	REFUSED(weft_unix_connect("/nowhere", NULL));
	REFUSED(weft_recv(fd, &byte, 1, 0));
	REFUSED(weft_recv(fd, &byte, 1, MSG_DONTWAIT));
	REFUSED(weft_send(fd, &byte, 1, 0));
	REFUSED(weft_send(fd, &byte, 1, MSG_DONTWAIT));
	REFUSED(weft_send_all(fd, &byte, 1, 0, NULL));
	REFUSED(weft_socket_connect(&addr, NULL));
	REFUSED(weft_recvfrom(fd, &byte, 1, 0, &addr));
	REFUSED(weft_sendto(fd, &byte, 1, 0, &addr));
	REFUSED(weft_recvmsg(fd, &msg, 0));
	REFUSED(weft_sendmsg(fd, &msg, 0));
	/* weft_shutdown() never waits. */
	ck_assert_int_eq(weft_shutdown(fd, SHUT_WR), 0);
}

static void objects(void)
{
	struct weft_event event = WEFT_EVENT_INIT;
	struct weft_notify notify = WEFT_NOTIFY_INIT;
	struct weft_rwlock rwlock = WEFT_RWLOCK_INIT;
	struct weft_barrier barrier = WEFT_BARRIER_INIT(1);
	struct weft_wait_group count = WEFT_WAIT_GROUP_INIT(0);
	struct weft_once once = WEFT_ONCE_INIT;
	struct weft_oneshot *oneshot = NULL;
	int value = 1;

	REFUSED(weft_event_wait(&event));
	weft_event_set(&event);
	ck_assert(weft_event_is_set(&event));
	REFUSED(weft_notify_wait(&notify));
	weft_notify_one(&notify);
	weft_notify_all(&notify);
	REFUSED(weft_rwlock_read(&rwlock));
	REFUSED(weft_rwlock_write(&rwlock));
	ck_assert_int_eq(weft_rwlock_try_write(&rwlock), 0);
	weft_rwlock_unlock(&rwlock);
	REFUSED(weft_barrier_wait(&barrier));
	REFUSED(weft_wait_group_wait(&count));
	weft_wait_group_add(&count, 1);
	weft_wait_group_done(&count);
	REFUSED(weft_once_run(&once, zero, NULL));
	ck_assert_int_eq(weft_oneshot_new(sizeof(value), &oneshot), 0);
	REFUSED(weft_oneshot_recv(oneshot, &value));
	ck_assert_int_eq(weft_oneshot_send(oneshot, &value), 0);
	ck_assert_int_eq(weft_oneshot_try_recv(oneshot, &value), 0);
}

static void tasks(struct weft_scope *scope)
{
	static const struct weft_task_local_key key;
	struct weft_interval interval;
	struct weft_timer timer = { 0 };
	struct weft_case cases[] = { WEFT_JOINED(weft_self()),
				     WEFT_READY(0, POLLIN) };

	REFUSED(weft_sleep(0));
	REFUSED(weft_sleep_until(0));
	REFUSED(weft_yield());
	REFUSED(weft_supervisor_begin(scope));
	REFUSED(weft_race_begin(scope));
	REFUSED(weft_scope_limit(scope, 1));
	REFUSED(weft_scope_wait_room(scope));
	REFUSED(weft_race_drop(scope, NULL));
	REFUSED(weft_blocking(zero, NULL));
	REFUSED(weft_defer(nop, NULL));
	REFUSED(weft_task_local_set(&key, scope));
	ck_assert_ptr_null(weft_task_local_get(&key));
	REFUSED(weft_timer_set(&timer, 0));
	REFUSED(weft_timer_wait(&timer));
	ck_assert(!weft_timer_clear(&timer));
	ck_assert_int_eq(weft_interval_init(&interval, 1, WEFT_MISSED_SKIP),
			 0);
	REFUSED(weft_interval_wait(&interval));
	REFUSED(weft_select(cases, 2));
	/* The case of joining itself fails. */
	ck_assert_int_eq(weft_try_select(cases, 1), 0);
	ck_assert_int_eq(cases[0].result, -EDEADLK);
	ck_assert_int_eq(weft_run(zero, NULL, NULL), -EDEADLK);
	ck_assert_int_eq(weft_stop(weft_runtime_self()), -EDEADLK);
	ck_assert_int_eq(weft_cancel(weft_self()), 0);
}

struct calls {
	struct weft_scope *scope;
	int fd;
};

static int64_t call_all(void *state)
{
	struct calls *calls = state;

	files();
	sockets(calls->fd);
	objects();
	tasks(calls->scope);
	return weft_await_sleep(1);
}

/* A future clears the timer of a task that gave it the pointer. */
static int64_t clear_timer(void *state)
{
	ck_assert(weft_timer_clear(*(struct weft_timer **)state));
	return 0;
}

IO_TEST(each_call_is_refused_or_done)
{
	struct weft_timer timer = { 0 }, *set = &timer;
	int64_t result = 0;
	int fds[2];

	socket_pair(fds);
	ck_assert_int_eq(weft_timer_set(&timer, weft_now() + WEFT_SEC(9)), 0);
	WEFT_SCOPE(scope, &result) {
		struct calls calls = { scope, fds[0] };

		ck_assert_int_eq(WEFT_GO_FUTURE(scope, clear_timer, set),
				 0);
		ck_assert_int_eq(WEFT_GO_FUTURE(scope, call_all, calls), 0);
	}
	ck_assert_int_eq(result, -ECANCELED);
	weft_close(fds[0]);
	weft_close(fds[1]);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/future_calls");
	TCase *tc = tcase_create("calls");

	io_add_test(tc, each_call_is_refused_or_done);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
