/* SPDX-License-Identifier: MIT */
/*
 * Suite io/future_later: a future awaits an operation on a descriptor that can
 * begin only in the future's next turn.  If the descriptor is closed before,
 * the await ends: it must not act on the descriptor that has the number then.
 */
#include "io/request/call.h"
#include "tests/support/errno_now.h"
#include "tests/support/expect.h"
#include "tests/support/io_future.h"

/* Why the operation must wait: the future has used up its turn; or all entries
 * of the ring are in use, and a helper holds the ring. */
enum why { ENOUGH, FULL_RING };

enum way { READIES, RECEIVES, SENDS, CONNECTS, ACCEPTS, WAYS };

struct late {
	enum why why;
	enum way way;
	bool closes;
	int fd, peer;
	struct weft_addr addr;
	unsigned polls;
};

static int64_t late_call(struct late *l)
{
	char byte = 0;

	switch (l->way) {
	case READIES:
		return weft_await_ready(l->fd, POLLIN);
	case RECEIVES:
		return weft_await_recv(l->fd, &byte, 1, 0);
	case SENDS:
		return weft_await_send(l->fd, &byte, 1, 0);
	case CONNECTS:
		return weft_await_connect(l->fd, &l->addr);
	default:
		return weft_await_accept(l->fd, NULL);
	}
}

static void fill_ring(struct weft__shard *shard)
{
	struct weft__request nothing = { .opcode = WEFT__OPCODE_NONE };

	weft__shard_lock(shard);
	while (weft__ring_has_room(&shard->ring)) {
		weft__ring_prepare(&shard->ring, &nothing,
				   weft__user_data(WEFT__TAG_WAKE, 0, 0));
		weft__ring_publish(&shard->ring);
	}
}

/* Does what a close does at its start. */
static void begin_to_close(int fd)
{
	struct weft__reactor *reactor =
		weft__reactor(weft__worker_self()->runtime);
	struct weft__fd *entry;

	ck_assert_int_eq(weft__fd_get(&reactor->fds, fd, &entry), 0);
	/* relaxed: this task is the next to look. */
	weft__add(&entry->closes, (uint8_t)1, relaxed);
}

static void fill(int fd)
{
	char bytes[4096] = { 0 };

	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(errno_now(), EAGAIN);
}

static void empty(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	ck_assert_int_eq(errno_now(), EAGAIN);
}

/* Makes the operation possible. */
static void let(struct late *l)
{
	if (l->way == SENDS)
		empty(l->peer);
	else if (l->way == ACCEPTS)
		ck_assert_int_eq(connect(l->peer, weft_addr_sockaddr(&l->addr),
					 weft_addr_sockaddr_bytes(&l->addr)),
				 0);
	else if (l->way != CONNECTS)
		ck_assert_int_eq(send(l->peer, "", 1, 0), 1);
}

static int64_t call_later(void *state)
{
	struct late *l = state;
	struct weft__worker *worker = weft__worker_self();

	if (l->polls++ > 0)
		return late_call(l);
	if (l->why == FULL_RING)
		fill_ring(weft__shard(worker));
	else
		worker->ops_left = 1;
	ck_assert_int_eq(late_call(l), WEFT_PENDING);
	if (l->why == FULL_RING)
		(void)weft__trylock_drop(&weft__shard(worker)->lock);
	if (l->closes)
		begin_to_close(l->fd);
	let(l);
	return WEFT_PENDING;
}

static void open_both(struct late *l)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int fds[2];

	if (l->way >= CONNECTS) {
		fds[0] = tcp_listener(text);
		fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		ck_assert_int_eq(weft_addr_parse(text, &l->addr), 0);
	} else {
		socket_pair(fds);
	}
	l->fd = fds[l->way == CONNECTS];
	l->peer = fds[l->way != CONNECTS];
	if (l->way == SENDS)
		fill(l->fd);
}

static void end_later(struct late late)
{
	int64_t r = -1;

	open_both(&late);
	WEFT_SUPERVISE (scope)
		r = join(start_future(scope, call_later, &late, sizeof(late)));
	if (late.closes)
		ck_assert_int_eq(r, -ECANCELED);
	else if (late.way == ACCEPTS)
		ck_assert_int_eq(weft_close((int)r), 0);
	else if (late.way == CONNECTS)
		ck_assert_int_eq(r, 0);
	else
		ck_assert_int_eq(r, 1);
	close_both((int[]){ late.fd, late.peer });
}

_Static_assert(POLLIN == 1, "readiness is told as one byte is");

IO_TEST(who_has_done_enough_forgets_no_close)
{
	for (unsigned i = 0; i < 2 * WAYS; i++)
		end_later((struct late){
			.why = ENOUGH, .way = i / 2, .closes = i % 2 });
	return 0;
}

/* Accepting a connection needs no entry of the future's own. */
IO_TEST(who_finds_no_entry_forgets_no_close)
{
	for (unsigned i = 0; i < 2 * ACCEPTS; i++)
		end_later((struct late){
			.why = FULL_RING, .way = i / 2, .closes = i % 2 });
	return 0;
}

/* ---- A close ------------------------------------------------------------- */

struct closer {
	WEFT_FUTURE_STATE;
	int fd;
};

static weft__atomic(int) close_begun, close_ended;

static int64_t close_a_pipe(void *arg)
{
	struct closer *closer = arg;
	int r;

	WEFT_FUTURE_BEGIN(closer);
	/* relaxed: a look follows. */
	weft__store(&close_begun, 1, relaxed);
	WEFT_AWAIT_AS(closer, r, weft_await_close(closer->fd));
	EXPECT(r == 0);
	weft__store(&close_ended, 1, relaxed);
	WEFT_FUTURE_END(closer);
	return 0;
}

/* Takes the number as soon as it is free. */
static int64_t take_the_number(void *arg)
{
	int fd = *(int *)arg, taken = -1;

	/* relaxed: looks. */
	while (!weft__load(&close_ended, relaxed) && taken < 0) {
		if (weft__load(&close_begun, relaxed) &&
		    fcntl(fd, F_GETFD) < 0)
			taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		(void)weft_yield();
	}
	while (!weft__load(&close_ended, relaxed))
		(void)weft_yield();
	if (taken >= 0)
		EXPECT(fcntl(taken, F_GETFD) >= 0 && close(taken) == 0);
	return 0;
}

/* The future is polled again when the number belongs to another. */
IO_TEST(number_that_is_taken_during_a_close_stays_open)
{
	for (int i = 0; i < 20; i++) {
		struct closer closer = { .fd = -1 };
		int fds[2];

		/* relaxed: no task looks. */
		weft__store(&close_begun, 0, relaxed);
		weft__store(&close_ended, 0, relaxed);
		ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
		closer.fd = fds[0];
		WEFT_SUPERVISE(scope) {
			ck_assert_int_eq(WEFT_GO(scope, take_the_number,
						 fds[0]),
					 0);
			ck_assert_int_eq(WEFT_GO_FUTURE(scope, close_a_pipe,
							closer),
					 0);
		}
		ck_assert_int_eq(weft_close(fds[1]), 0);
	}
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/future_later");
	TCase *tc = tcase_create("closing");

	tcase_set_timeout(tc, 60);
	io_add_test(tc, who_has_done_enough_forgets_no_close);
	io_add_test(tc, who_finds_no_entry_forgets_no_close);
	io_add_test(tc, number_that_is_taken_during_a_close_stays_open);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
