/* SPDX-License-Identifier: MIT */
/*
 * Suite io/future_connect: futures connect as tasks do.
 *
 * The peer accepts, refuses, or has no room yet; in each case the future is
 * also cancelled, closed or out of time.
 */
#include "io/request/op.h"
#include "runtime/future/future.h"
#include "tests/support/io_future.h"
#include "tests/support/io_place.h"

struct client {
	WEFT_FUTURE_STATE;
	int fd;
	weft_nsec within_ns;
	struct weft_addr addr;
};

static int64_t connect_it(void *state)
{
	struct client *c = state;
	int r;

	WEFT_FUTURE_BEGIN(c);
	if (c->within_ns)
		ck_assert_int_eq(weft_future_within(c->within_ns), 0);
	WEFT_AWAIT_AS(c, r, weft_await_connect(c->fd, &c->addr));
	WEFT_FUTURE_END(c);
	return r;
}

static struct weft_task start_client(struct weft_scope *scope, int fd,
				     const struct weft_addr *addr,
				     weft_nsec within_ns)
{
	struct client c = { 0, fd, within_ns, *addr };

	return start_future(scope, connect_it, &c, sizeof(c));
}

static int stream(int family, int flags)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

	ck_assert_int_ge(fd, 0);
	return fd;
}

/* ---- Answered ------------------------------------------------------------ */

/* The sockets are blocking and non-blocking ones. */
IO_TEST(it_is_connected)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text);
	struct weft_addr addr, peer;

	ck_assert_int_eq(weft_addr_parse(text, &addr), 0);
	WEFT_SUPERVISE (scope)
		for (int i = 0; i < 20; i++) {
			int fd = stream(AF_INET, i % 2 ? SOCK_NONBLOCK : 0);

			ck_assert_int_eq(
				join(start_client(scope, fd, &addr, 0)), 0);
			ck_assert_int_eq(weft_peer_addr(fd, &peer), 0);
			ck_assert(weft_addr_equal(&peer, &addr));
			ck_assert_int_eq(
				join(start_client(scope, fd, &addr, 0)),
				-EISCONN);
			close_both((int[]){ weft_accept(listener, NULL), fd });
		}
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

IO_TEST(it_is_refused)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int fds[2] = { stream(AF_INET, 0), stream(AF_INET, SOCK_NONBLOCK) };
	struct weft_addr addr, none = { .bytes = 0 };

	ck_assert_int_eq(weft_close(tcp_listener(text)), 0);
	ck_assert_int_eq(weft_addr_parse(text, &addr), 0);
	ck_assert_int_eq(weft_await_connect(fds[0], &addr), -EPERM);
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < 4; i++)
			ck_assert_int_eq(
				join(start_client(scope, fds[i % 2], &addr, 0)),
				-ECONNREFUSED);
		ck_assert_int_eq(join(start_client(scope, fds[0], &none, 0)),
				 -EINVAL);
		ck_assert_int_eq(join(start_client(scope, -1, &addr, 0)),
				 -EBADF);
	}
	close_both(fds);
	return 0;
}

/* An older kernel's result for a non-blocking socket, -EINPROGRESS, must not be
 * taken for the future's own WEFT_PENDING.  The result is -EINVAL or 0 if this
 * kernel cannot be made to return -EINPROGRESS. */
static int64_t ask_for_progress(void *state)
{
	enum { INJECT_RESULT = 1 }; /* Linux 6.10 */
	struct weft__request request = {
		.opcode = WEFT__OPCODE_NONE,
		.fd = -1,
		.bytes = (uint32_t)-EINPROGRESS,
		.how = INJECT_RESULT,
	};
	struct weft__worker *worker;
	struct weft__task *task;
	int r;

	(void)state;
	r = weft__await_enter(WEFT__AWAITS_OP, NULL, 0, &worker, &task);
	ck_assert_int_eq(r, 0);
	return weft__op_await(WEFT__AWAITS_OP, worker, task, &request, NULL,
			      0);
}

IO_TEST(progress_of_the_kernel_is_no_pending)
{
	WEFT_SUPERVISE (scope) {
		int64_t r =
			join(start_future(scope, ask_for_progress, NULL, 0));

		ck_assert_msg(r == -EALREADY || r == -EINVAL || r == 0, "%ld",
			      (long)r);
	}
	return 0;
}

static int64_t connect_nowhere(void *state)
{
	return weft_await_connect(*(int *)state, NULL);
}

IO_TEST(no_address_is_refused)
{
	int fd = stream(AF_INET, 0);

	WEFT_SUPERVISE (scope)
		ck_assert_int_eq(join(start_future(scope, connect_nowhere, &fd,
						   sizeof(fd))),
				 -EINVAL);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

/* ---- Waited for ---------------------------------------------------------- */

/* A full TCP listener drops connections, a full Unix listener refuses them with
 * an error.  Non-blocking sockets return to weft what they meet. */
enum { BY_TCP, BY_UNIX, FAMILIES };

static void full_open(struct place *place, int family, bool blocks)
{
	place_init(place);
	if (family == BY_UNIX)
		unix_socket_open(place);
	else
		tcp_socket_open(place);
	if (!blocks)
		ck_assert_int_eq(fcntl(place->fd, F_SETFL, O_NONBLOCK), 0);
}

/* Interrupted twice, and polled without a reason, the connect goes on. */
static struct weft_task start_patient(struct weft_scope *scope,
				      struct place *place)
{
	struct weft_task task = start_client(scope, place->fd, &place->addr, 0);

	wait_until(task_has_settled(task));
	ck_assert_int_eq(weft_sleep(WEFT_MS(3)), 0);
	ck_assert_int_eq(weft_cancel(task), 0);
	ck_assert_int_eq(join(task), -ECANCELED);
	ck_assert_int_eq(
		join(start_client(scope, place->fd, &place->addr, WEFT_MS(2))),
		-ETIMEDOUT);
	task = start_client(scope, place->fd, &place->addr, 0);
	wait_until(task_has_settled(task));
	for (int i = 0; i < 5; i++) {
		ck_assert_int_eq(weft_future_wake(NULL, task), 0);
		weft_yield();
	}
	return task;
}

static void connect_once_there_is_room(bool blocks)
{
	struct place place[FAMILIES];
	struct weft_task tasks[FAMILIES];

	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < FAMILIES; i++) {
			full_open(&place[i], i, blocks);
			tasks[i] = start_patient(scope, &place[i]);
		}
		for (int i = 0; i < FAMILIES; i++)
			ck_assert(crowd_shrink(&place[i]));
		for (int i = 0; i < FAMILIES; i++)
			ck_assert_int_eq(join(tasks[i]), 0);
	}
	for (int i = 0; i < FAMILIES; i++)
		place_close(&place[i]);
}

/* The kernel's next attempt comes only after a second. */
IO_TEST(it_is_connected_once_there_is_room)
{
	connect_once_there_is_room(true);
	connect_once_there_is_room(false);
	return 0;
}

/* The waits cost no more than one look each in a millisecond, and as many in
 * between. */
static void wait_without_spinning(bool blocks)
{
	struct place place[FAMILIES];
	struct weft_task tasks[FAMILIES];
	struct weft_stats before, after;
	weft_nsec began_ns;

	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < FAMILIES; i++) {
			full_open(&place[i], i, blocks);
			tasks[i] = start_client(scope, place[i].fd,
						&place[i].addr, 0);
			wait_until(task_has_settled(tasks[i]));
		}
		ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &before),
				 0);
		began_ns = weft_now();
		ck_assert_int_eq(weft_sleep(WEFT_MS(50)), 0);
		ck_assert_int_eq(weft_stats_get(weft_runtime_self(), &after),
				 0);
		ck_assert_uint_lt(after.total.polls - before.total.polls,
				  (weft_now() - began_ns) / WEFT_US(200));
		for (int i = 0; i < FAMILIES; i++)
			ck_assert_int_eq(weft_cancel(tasks[i]), 0);
	}
	for (int i = 0; i < FAMILIES; i++)
		place_close(&place[i]);
}

IO_TEST(it_waits_without_spinning)
{
	wait_without_spinning(true);
	wait_without_spinning(false);
	return 0;
}

/* ---- Interrupted --------------------------------------------------------- */

enum how { CANCELS, TIMES_OUT, INHERITS, CLOSES, HOWS };

static const int results[HOWS] = { -ECANCELED, -ETIMEDOUT, -ECANCELED,
				   -ECANCELED };

static void interrupt(int way, enum how how, weft_nsec after_ns)
{
	struct place place;
	struct weft_task task;
	int64_t r;

	full_open(&place, way / 2, way % 2);
	WEFT_SUPERVISE (scope) {
		WEFT_WITHIN (how == INHERITS ? WEFT_US(500) : WEFT_SEC(3600))
			task = start_client(scope, place.fd, &place.addr,
					    how == TIMES_OUT ? WEFT_US(500) :
							       0);
		if (after_ns)
			ck_assert_int_eq(weft_sleep(after_ns), 0);
		else
			wait_until(task_has_settled(task));
		if (how == CANCELS)
			ck_assert_int_eq(weft_cancel(task), 0);
		if (how == CLOSES) {
			ck_assert_int_eq(weft_close(place.fd), 0);
			place.fd = -1;
		}
		r = join(task);
		/* The connect may not have begun when the socket was closed. */
		ck_assert_msg(r == results[how] || (how == CLOSES && after_ns &&
						    r == -EBADF),
			      "%d, %d: %ld", way, how, (long)r);
	}
	place_close(&place);
}

IO_TEST(what_interrupts_is_told)
{
	for (int way = 0; way < 2 * FAMILIES; way++)
		for (int how = 0; how < HOWS; how++)
			for (unsigned i = 0; i < 4; i++)
				interrupt(way, (enum how)how,
					  WEFT_US(300) * i * i);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/future_connect");
	TCase *answered = tcase_create("answered");
	TCase *waits = tcase_create("waits");
	TCase *ending = tcase_create("ending");

	tcase_set_timeout(answered, 30);
	tcase_set_timeout(waits, 60);
	tcase_set_timeout(ending, 60);
	io_add_test(answered, it_is_connected);
	io_add_test(answered, it_is_refused);
	io_add_test(answered, progress_of_the_kernel_is_no_pending);
	io_add_test(answered, no_address_is_refused);
	io_add_test(waits, it_is_connected_once_there_is_room);
	io_add_test(waits, it_waits_without_spinning);
	io_add_test(ending, what_interrupts_is_told);
	suite_add_tcase(suite, answered);
	suite_add_tcase(suite, waits);
	suite_add_tcase(suite, ending);
	return io_tests_run(suite);
}
