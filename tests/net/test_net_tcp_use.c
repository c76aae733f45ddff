/* SPDX-License-Identifier: MIT */
/*
 * TCP in use: many clients, resets, one direction that is closed, and the hint
 * that a receive leaves for the next one.
 */
#include "tests/support/io_kit.h"

static int64_t echo(void *arg)
{
	int fd = *(int *)arg;
	char buf[4096];
	ssize_t n;

	while ((n = weft_read(fd, buf, sizeof(buf))) > 0)
		if (weft_write_all(fd, buf, (size_t)n, NULL) < 0)
			break;
	return weft_close(fd);
}

static int64_t serve(void *arg)
{
	int listener = *(int *)arg, fd;

	WEFT_SUPERVISE(peers)
		while ((fd = weft_accept(listener, NULL)) >= 0)
			ck_assert_int_eq(WEFT_GO(peers, echo, fd), 0);
	return 0;
}

struct client {
	const char *text;
	int number;
};

static int64_t ask(void *arg)
{
	const struct client *client = arg;
	char out[3000], in[3000];
	int fd = weft_tcp_connect(client->text, NULL);

	ck_assert_int_ge(fd, 0);
	for (int i = 0; i < 20; i++) {
		memset(out, client->number + i, sizeof(out));
		ck_assert_int_eq(weft_write_all(fd, out, sizeof(out), NULL), 0);
		ck_assert_int_eq(weft_read_all(fd, in, sizeof(in), NULL), 0);
		ck_assert_mem_eq(in, out, sizeof(out));
	}
	return weft_close(fd);
}

/* Each client gets its own bytes back. */
IO_TEST(hundred_clients_are_served)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text);
	int64_t failed = 0;

	WEFT_SUPERVISE(server) {
		ck_assert_int_eq(WEFT_GO(server, serve, listener), 0);
		WEFT_SCOPE(clients, &failed)
			for (int i = 0; i < 100; i++) {
				struct client client = { text, i };

				ck_assert_int_eq(WEFT_GO(clients, ask, client),
						 0);
			}
		ck_assert_int_eq(failed, 0);
		ck_assert_int_eq(weft_close(listener), 0);
	}
	return 0;
}

IO_TEST(reset_connection_is_econnreset)
{
	char text[WEFT_ADDR_TEXT_BYTES], byte = 'x';
	int listener = tcp_listener(text);
	int client = weft_tcp_connect(text, NULL);
	int server = weft_accept(listener, NULL);

	reset_when_closed(client);
	ck_assert_int_eq(weft_close(client), 0);
	ck_assert_int_eq(weft_read(server, &byte, 1), -ECONNRESET);
	ck_assert_int_eq(weft_write(server, &byte, 1), -EPIPE);
	close_both((int[]){ server, listener });
	return 0;
}

IO_TEST(half_closed_connection_still_answers)
{
	char text[WEFT_ADDR_TEXT_BYTES], buf[4];
	int listener = tcp_listener(text);
	int client = weft_tcp_connect(text, NULL);
	int server = weft_accept(listener, NULL);

	ck_assert_int_eq(weft_write(client, "ab", 2), 2);
	ck_assert_int_eq(weft_shutdown(client, SHUT_WR), 0);
	ck_assert_int_eq(weft_read_all(server, buf, 2, NULL), 0);
	ck_assert_int_eq(weft_read(server, buf, 2), 0);
	ck_assert_int_eq(weft_write(server, "cd", 2), 2);
	ck_assert_int_eq(weft_read_all(client, buf, 2, NULL), 0);
	ck_assert_mem_eq(buf, "cd", 2);
	close_both((int[]){ client, server });
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

static bool drained(int fd)
{
	struct weft__reactor *reactor = weft__reactor(weft_runtime_self());

	return weft__fd_drained(weft__fd_find(&reactor->fds, fd));
}

/* A receive that leaves nothing sets a hint, so that the next one does not try
 * first.  One that left something, or may have, does not set it.  A wrong hint
 * loses nothing. */
IO_TEST(receive_knows_whether_something_was_left)
{
	char text[WEFT_ADDR_TEXT_BYTES], buf[8];
	int listener = tcp_listener(text), client, server;

	client = weft_tcp_connect(text, NULL);
	ck_assert_int_ge(client, 0);
	server = weft_accept(listener, NULL);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(weft_write(client, "abcd", 4), 4);
		ck_assert_int_eq(weft_recv(server, buf, 8, MSG_PEEK), 4);
		ck_assert_int_eq(weft_recv(server, buf, 2, 0), 2);
		ck_assert(!drained(server));
		ck_assert_int_eq(weft_read(server, buf, 8), 2);
		ck_assert(drained(server));
		/* The bytes are there before the read. */
		ck_assert_int_eq(weft_write(client, "efgh", 4), 4);
		ck_assert_int_eq(weft_read(server, buf, 4), 4);
		ck_assert(!drained(server));
		/* The bytes are not there yet. */
		ck_assert_int_eq(weft_write(server, buf, 1), 1);
		ck_assert_int_eq(weft_read(client, buf, 8), 1);
	}
	close_both((int[]){ client, server });
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("net/tcp use");
	TCase *tc = tcase_create("use");

	tcase_set_timeout(tc, 30);
	io_add_test(tc, hundred_clients_are_served);
	io_add_test(tc, reset_connection_is_econnreset);
	io_add_test(tc, half_closed_connection_still_answers);
	io_add_test(tc, receive_knows_whether_something_was_left);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
