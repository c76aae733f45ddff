/* SPDX-License-Identifier: MIT */
/*
 * Several processes accept from one listening socket: each connection is
 * served, by whichever process asks for it.
 *
 *	parent		makes the listener, starts and stops servers, connects,
 *			sends a byte, expects it back
 *	server		a process with a runtime: accepts and echoes, until
 *			a byte tells it to stop accepting; then ends
 */
#include <signal.h>
#include <sys/wait.h>

#include "tests/support/accept_scene.h"

enum { ACCEPTORS = 3, AT_A_TIME = 8 };

struct server {
	pid_t pid;
	int stop; /* a byte stops it */
};

/* ---- The server --------------------------------------------------------- */

struct serving {
	int listener;
	int stop;
	struct weft_scope *peers;
};

static int64_t serve(void *arg)
{
	int fd = *(int *)arg;
	char byte;

	while (weft_read(fd, &byte, 1) == 1)
		if (weft_write(fd, &byte, 1) != 1)
			break;
	return weft_close(fd);
}

static int64_t accept_loop(void *arg)
{
	struct serving *serving = *(struct serving **)arg;
	int fd;

	while ((fd = weft_accept(serving->listener, NULL)) >= 0)
		if (WEFT_GO(serving->peers, serve, fd) < 0)
			_exit(90);
	return fd == -ECANCELED ? 0 : fd;
}

static int64_t serve_until_stopped(void *arg)
{
	struct serving *serving = arg;
	int64_t result = 0;
	char byte;

	WEFT_SUPERVISE(peers) {
		serving->peers = peers;
		WEFT_SCOPE(acceptors, &result) {
			for (int i = 0; i < ACCEPTORS; i++)
				if (WEFT_GO(acceptors, accept_loop, serving) <
				    0)
					_exit(91);
			(void)!weft_read(serving->stop, &byte, 1);
			weft_scope_cancel(acceptors);
		}
	}
	return 0;
}

/* The clients' ends belong to the parent alone. */
static void keep_only(int listener, int stop)
{
	for (int fd = 3; fd < 64; fd++)
		if (fd != listener && fd != stop)
			close(fd);
}

static struct server server_start(int listener, unsigned workers)
{
	struct server server;
	int fds[2];

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	server.pid = fork();
	ck_assert_int_ge(server.pid, 0);
	if (server.pid == 0) {
		struct serving serving = { .listener = listener,
					   .stop = fds[0] };
		struct weft_opts opts = WEFT_OPTS_INIT;

		keep_only(listener, fds[0]);
		opts.workers = workers;
		_exit(weft_run(serve_until_stopped, &serving, &opts) ? 92 : 0);
	}
	close(fds[0]);
	server.stop = fds[1];
	return server;
}

static void server_tell(const struct server *server)
{
	ck_assert_int_eq(write(server->stop, "", 1), 1);
	close(server->stop);
}

/* Its clients are finished, or will be served by it until they are. */
static void server_wait(const struct server *server)
{
	int status;

	ck_assert_int_eq(waitpid(server->pid, &status, 0), server->pid);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		      "the server ended with %x", (unsigned)status);
}

/* ---- The clients -------------------------------------------------------- */

/* Clients of which several are connected at a time; each has its byte echoed
 * before it is closed. */
struct clients {
	const char *address;
	int fds[AT_A_TIME];
	unsigned made;
};

static void client_finish(int fd)
{
	struct timeval patience = { 30, 0 };
	char byte = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ck_assert_msg(recv(fd, &byte, 1, 0) == 1 && byte == 'x',
		      "a connection is not served: %s", strerror(errno));
	close(fd);
}

static void clients_one_more(struct clients *clients)
{
	int *slot = &clients->fds[clients->made++ % AT_A_TIME];

	if (clients->made > AT_A_TIME)
		client_finish(*slot);
	*slot = connect_to(clients->address);
	ck_assert_int_eq(send(*slot, "x", 1, MSG_NOSIGNAL), 1);
}

static void clients_finish(struct clients *clients)
{
	unsigned count =
		clients->made < AT_A_TIME ? clients->made : AT_A_TIME;

	for (unsigned i = 0; i < count; i++)
		client_finish(clients->fds[i]);
	clients->made = 0;
}

/* The listener outlives its servers: the next one is there before the last one
 * stops (a restart), or only afterwards. */
static void hand_over(bool overlap)
{
	bool is_long = getenv("WEFT_TEST_LONG");
	unsigned hand_overs = is_long ? 100 : 10;
	unsigned each = is_long ? 1000 : 100;
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text);
	struct clients clients = { .address = text };
	struct server server = server_start(listener, 1);

	for (unsigned i = 0; i < hand_overs; i++) {
		struct server next;

		for (unsigned n = 0; n < each / 2; n++)
			clients_one_more(&clients);
		if (overlap) {
			next = server_start(listener, 1 + i % 2);
			server_tell(&server);
		} else {
			clients_finish(&clients);
			server_tell(&server);
			server_wait(&server);
			/* These connect while no process accepts. */
			for (unsigned n = 0; n < AT_A_TIME; n++)
				clients_one_more(&clients);
			next = server_start(listener, 1 + i % 2);
		}
		for (unsigned n = 0; n < each / 2; n++)
			clients_one_more(&clients);
		/* The last one may have some of these, until it stops. */
		if (overlap) {
			clients_finish(&clients);
			server_wait(&server);
		}
		server = next;
	}
	clients_finish(&clients);
	server_tell(&server);
	server_wait(&server);
	close(listener);
}

START_TEST(nothing_is_lost_over_hand_overs)
{
	hand_over(_i);
}
END_TEST

/* A process that does not ask takes no connection from one that does. */
static int64_t take_one_and_sleep(void *arg)
{
	struct serving *serving = arg;
	int fd = weft_accept(serving->listener, NULL);
	char byte;

	(void)serve(&fd);
	(void)!write(serving->stop, "", 1);
	/* It has something else to do from now on. */
	return weft_read(STDIN_FILENO, &byte, 1);
}

START_TEST(process_that_does_not_ask_takes_none)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(text), ready[2], block[2];
	struct clients clients = { .address = text };
	struct server server;
	pid_t idle;

	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(block, O_CLOEXEC), 0);
	idle = fork();
	ck_assert_int_ge(idle, 0);
	if (idle == 0) {
		struct serving serving = { .listener = listener,
					   .stop = ready[1] };

		dup2(block[0], STDIN_FILENO);
		close(block[1]);
		_exit(weft_run(take_one_and_sleep, &serving, NULL) ? 1 : 0);
	}
	clients_one_more(&clients);
	clients_finish(&clients);
	ck_assert_int_eq(read(ready[0], &(char){ 0 }, 1), 1);
	server = server_start(listener, 2);
	for (int i = 0; i < 100; i++)
		clients_one_more(&clients);
	clients_finish(&clients);
	server_tell(&server);
	server_wait(&server);
	close(block[0]);
	close(block[1]);
	ck_assert_int_eq(waitpid(idle, NULL, 0), idle);
	close(ready[0]);
	close(ready[1]);
	close(listener);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/prefork");
	TCase *tests = tcase_create("prefork");

	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, nothing_is_lost_over_hand_overs, 0, 2);
	tcase_add_test(tests, process_that_does_not_ask_takes_none);
	suite_add_tcase(suite, tests);
	return io_tests_run(suite);
}
