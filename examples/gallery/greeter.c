/* SPDX-License-Identifier: MIT */
/*
 * greeter [SOCKET] - a server that asks for a name and greets; on SIGTERM it
 * serves the open connections and then ends.
 *
 * From outside	It answers all day.  After SIGTERM it reports that it is
 *		ending, accepts no more connections, and does not end: its
 *		service manager kills it after a minute and a half.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include <weft/weft.h>

static int64_t greet(void *arg)
{
	int fd = *(int *)arg;
	char name[64], text[128];
	ssize_t n = weft_write_all(fd, "name? ", 6, NULL);
	int bytes;

	if (n == 0)
		n = weft_read(fd, name, sizeof(name));
	if (n > 0) {
		bytes = snprintf(text, sizeof(text), "hello %.*s", (int)n,
				 name);
		n = weft_write_all(fd, text, (size_t)bytes, NULL);
	}
	weft_close(fd);
	return n;
}

struct server {
	int listener, signals;
	struct weft_scope *connections;
};

static int64_t take_connections(void *arg)
{
	const struct server *server = arg;
	int fd;

	while ((fd = weft_accept(server->listener, NULL)) >= 0)
		if (WEFT_GO(server->connections, greet, fd) < 0)
			weft_close(fd);
	return fd;
}

static int64_t serve(void *arg)
{
	struct server *server = arg;
	int number, r = 0;

	WEFT_SUPERVISE(connections) {
		server->connections = connections;
		WEFT_SUPERVISE(taking) {
			r = WEFT_GO(taking, take_connections, *server);
			if (r == 0)
				r = weft_signal_wait(server->signals, &number);
			weft_scope_cancel(taking);
		}
		weft_close(server->listener);
		fprintf(stderr, "ending\n");
	}
	weft_close(server->signals);
	return r;
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct server server = { -1, -1, NULL };
	char text[WEFT_ADDR_TEXT_BYTES];
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	server.signals = weft_signal_open(&signals);
	server.listener = weft_tcp_listen("127.0.0.1:0", NULL);
	if (server.signals < 0 || server.listener < 0)
		return 1;
	printf("listening on %s\n",
	       weft_local_addr_text(server.listener, text));
	fflush(stdout);
	opts.dump_path = argc > 1 ? argv[1] : NULL;
	return weft_run(serve, &server, &opts) < 0;
}
