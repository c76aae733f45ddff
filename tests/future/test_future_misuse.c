/* SPDX-License-Identifier: MIT */
/*
 * Suite future/misuse: a program whose futures break a rule ends with a message
 * that names the rule.
 *
 * Most rules concern a second await while the first one is not done.  Each
 * function below breaks one; the table at the end lists the messages.
 */
#include "tests/support/io_kit.h"
#include "tests/support/misuse_kit.h"

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int64_t end_before_it_has_come(void *state)
{
	(void)state;
	return weft_await_sleep(WEFT_SEC(1)) == WEFT_PENDING ? 0 : 1;
}

static int64_t await_two_kinds(void *state)
{
	(void)state;
	if (weft_await_sleep(WEFT_SEC(1)) != WEFT_PENDING)
		return 0;
	return weft_await_yield();
}

/* Two awaits of the same kind. */
static int64_t await_two_channels(void *state)
{
	static struct weft_chan first = WEFT_CHAN_DIRECT(int);
	static struct weft_chan second = WEFT_CHAN_DIRECT(int);
	static int value;

	(void)state;
	if (weft_await_chan_recv(&first, &value) != WEFT_PENDING)
		return 0;
	return weft_await_chan_recv(&second, &value);
}

static int64_t await_two_events(void *state)
{
	static struct weft_event first, second;

	(void)state;
	if (weft_await_event(&first) != WEFT_PENDING)
		return 0;
	return weft_await_event(&second);
}

static int64_t await_two_semaphores(void *state)
{
	static struct weft_sem first, second;

	(void)state;
	if (weft_await_sem_acquire(&first, 1) != WEFT_PENDING)
		return 0;
	return weft_await_sem_acquire(&second, 1);
}

static int64_t await_other_item(void *state)
{
	static struct weft_chan chan = WEFT_CHAN_DIRECT(int);
	static int values[2];

	(void)state;
	if (weft_await_chan_recv(&chan, &values[0]) != WEFT_PENDING)
		return 0;
	return weft_await_chan_recv(&chan, &values[1]);
}

static int64_t await_other_permits(void *state)
{
	static struct weft_sem sem;

	(void)state;
	if (weft_await_sem_acquire(&sem, 1) != WEFT_PENDING)
		return 0;
	return weft_await_sem_acquire(&sem, 2);
}

static int64_t await_two_descriptors(void *state)
{
	static int fds[2] = { -1, -1 };

	(void)state;
	if (fds[0] < 0)
		socket_pair(fds);
	if (weft_await_ready(fds[0], POLLIN) != WEFT_PENDING)
		return 0;
	return weft_await_ready(fds[1], POLLIN);
}

/* Returns a pair of sockets for two awaits on one descriptor. */
static int *fresh_pair(void)
{
	static int fds[2] = { -1, -1 };

	if (fds[0] < 0)
		socket_pair(fds);
	return fds;
}

static int64_t await_other_events(void *state)
{
	int fd = fresh_pair()[0];

	(void)state;
	if (weft_await_ready(fd, POLLIN) != WEFT_PENDING)
		return 0;
	return weft_await_ready(fd, POLLIN | POLLOUT);
}

static int64_t await_then_send(void *state)
{
	int fd = fresh_pair()[0];
	char byte;

	(void)state;
	if (weft_await_recv(fd, &byte, 1, 0) != WEFT_PENDING)
		return 0;
	return weft_await_send(fd, "x", 1, 0);
}

static int64_t await_then_receive(void *state)
{
	int fd = fresh_pair()[0];
	char byte;

	(void)state;
	if (weft_await_ready(fd, POLLIN) != WEFT_PENDING)
		return 0;
	return weft_await_recv(fd, &byte, 1, 0);
}

/* So many calls came before it in this turn that it begins in the next one. */
static int64_t await_then_send_later(void *state)
{
	int fd = fresh_pair()[0];
	char byte = 0;
	ssize_t r = 1;

	(void)state;
	while (r == 1)
		r = weft_await_send(fd, &byte, 1, 0);
	if (r != WEFT_PENDING)
		return 0;
	return weft_await_recv(fd, &byte, 1, 0);
}

/* A connection of the first listener may already be meant for this future. */
static int64_t await_two_listeners(void *state)
{
	static int fds[2] = { -1, -1 };

	(void)state;
	for (int i = 0; i < 2 && fds[i] < 0; i++)
		fds[i] = weft_tcp_listen("127.0.0.1:0", NULL);
	if (weft_await_accept(fds[0], NULL) != WEFT_PENDING)
		return 0;
	return weft_await_accept(fds[1], NULL);
}

static int64_t await_two_connections(void *state)
{
	static struct weft_addr addr;
	static int fds[2] = { -1, -1 };

	(void)state;
	ck_assert_int_eq(weft_addr_parse("127.0.0.1:1", &addr), 0);
	for (int i = 0; i < 2 && fds[i] < 0; i++)
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (weft_await_connect(fds[0], &addr) != WEFT_PENDING)
		return 0;
	return weft_await_connect(fds[1], &addr);
}

static bool receives;

static int64_t receive(void *arg)
{
	char byte;

	receives = true;
	return weft_recv(*(int *)arg, &byte, 1, 0);
}

/* The first close waits for a task that receives. */
static int64_t await_two_closes(void *state)
{
	static int fds[2] = { -1, -1 };

	if (fds[0] < 0) {
		socket_pair(fds);
		ck_assert_int_eq(WEFT_GO(*(struct weft_scope **)state, receive,
					 fds[0]),
				 0);
	}
	/* A tick may end before the task has had its turn. */
	do
		if (weft_await_yield() == WEFT_PENDING)
			return WEFT_PENDING;
	while (!receives);
	if (weft_await_close(fds[0]) != WEFT_PENDING)
		return 0;
	return weft_await_close(fds[1]);
}

/* An await that must wait for the next turn, because many came before it. */
static struct weft_sem many = WEFT_SEM_INIT(1000);

static int await_many(void)
{
	int r = 0;

	while (r == 0)
		r = weft_await_sem_acquire(&many, 1);
	return r;
}

static int64_t end_before_its_turn(void *state)
{
	(void)state;
	return await_many() == WEFT_PENDING ? 0 : 1;
}

static int64_t await_another_before_its_turn(void *state)
{
	static struct weft_event event;

	(void)state;
	return await_many() == WEFT_PENDING ? weft_await_event(&event) : 1;
}

static int64_t await_more_before_its_turn(void *state)
{
	(void)state;
	return await_many() == WEFT_PENDING ? weft_await_sem_acquire(&many, 2) :
					      1;
}

static int64_t close_before_its_turn(void *state)
{
	(void)state;
	return await_many() == WEFT_PENDING ? weft_await_close(STDIN_FILENO) :
					      1;
}

static int64_t close_before_it_has_come(void *state)
{
	(void)state;
	if (weft_await_sleep(WEFT_SEC(1)) != WEFT_PENDING)
		return 0;
	return weft_await_close(STDIN_FILENO);
}

static int64_t set_deadline_while_it_awaits(void *state)
{
	(void)state;
	if (weft_await_sleep(WEFT_SEC(1)) != WEFT_PENDING)
		return 0;
	return weft_future_within(WEFT_SEC(1));
}

static int64_t open_scope_in_future(void *state)
{
	(void)state;
	WEFT_SCOPE(scope, NULL)
		ck_assert_int_eq(weft_go(scope, nothing, NULL, 0), 0);
	return 0;
}

static int64_t open_deadline_in_future(void *state)
{
	(void)state;
	WEFT_WITHIN(WEFT_SEC(1))
		(void)weft_now();
	return 0;
}

static int64_t open_shield_in_future(void *state)
{
	(void)state;
	WEFT_SHIELD
		(void)weft_now();
	return 0;
}

static int64_t end_scope_in_future(void *state)
{
	return weft_scope_end(*(struct weft_scope **)state);
}

/* ---- All of them ------------------------------------------------------ */

#define TWO_AWAITS "a future awaits another thing before the last has come"

static const struct misuse in_futures[] = {
	{ end_before_it_has_come,
	  "a future ended before what it awaits has come" },
	{ await_two_kinds, TWO_AWAITS },
	{ await_two_channels, TWO_AWAITS },
	{ await_two_events, TWO_AWAITS },
	{ await_two_semaphores, TWO_AWAITS },
	{ await_two_descriptors, TWO_AWAITS },
	{ await_other_item, TWO_AWAITS },
	{ await_other_permits, TWO_AWAITS },
	{ await_other_events, TWO_AWAITS },
	{ await_then_send, TWO_AWAITS },
	{ await_then_receive, TWO_AWAITS },
	{ await_then_send_later, TWO_AWAITS },
	{ await_two_listeners, TWO_AWAITS },
	{ await_two_connections, TWO_AWAITS },
	{ await_two_closes, TWO_AWAITS },
	{ end_before_its_turn,
	  "a future ended before what it awaits has come" },
	{ await_another_before_its_turn, TWO_AWAITS },
	{ await_more_before_its_turn, TWO_AWAITS },
	{ close_before_its_turn,
	  "a future closes before what it awaits has come" },
	{ close_before_it_has_come,
	  "a future closes before what it awaits has come" },
	{ set_deadline_while_it_awaits,
	  "a future set a deadline while it awaits something" },
	{ open_scope_in_future, "a scope block outside of a task" },
	{ open_deadline_in_future, "a deadline block outside of a task" },
	{ open_shield_in_future, "a shield outside of a task" },
	{ end_scope_in_future,
	  "a scope was ended by a task that did not begin it" },
	{ return_in_forked_child, "a child of fork() returned from its task" },
};

enum { IN_FUTURES = sizeof(in_futures) / sizeof(in_futures[0]) };

static int64_t start_the_future(void *arg)
{
	const struct misuse *misuse = arg;

	WEFT_SUPERVISE(all)
		ck_assert_int_eq(WEFT_GO_FUTURE(all, misuse->fn, all), 0);
	return 0;
}

static void run_in_future(void *arg)
{
	run_one_worker(start_the_future, arg);
}

START_TEST(misuse_in_a_future_is_told_in_a_sentence)
{
	struct misuse misuse = in_futures[_i];

	expect_sentence(run_in_future, &misuse, misuse.sentence);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("future/misuse");
	TCase *tc = tcase_create("sentences");

	tcase_add_loop_test(tc, misuse_in_a_future_is_told_in_a_sentence, 0,
			    IN_FUTURES);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
