/* SPDX-License-Identifier: MIT */
/*
 * Shared by the C echo servers: their options and the listening socket.
 *
 *	--port P [--threads T] [--buf BYTES]
 *
 * Each thread opens its own SO_REUSEPORT listener, on loopback only.
 */
#ifndef BENCH_ECHO_COMMON_H
#define BENCH_ECHO_COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THREADS_MAX = 64, BUF_MIN = 64, BUF_MAX = 1 << 20 };

struct opts {
	int port, threads, buf;
};

static inline int opts__set(struct opts *o, const char *name, int value)
{
	if (strcmp(name, "--port") == 0)
		o->port = value;
	else if (strcmp(name, "--threads") == 0)
		o->threads = value;
	else if (strcmp(name, "--buf") == 0)
		o->buf = value;
	else
		return -1;
	return 0;
}

static inline int opts__valid(const struct opts *o)
{
	return o->port > 0 && o->port <= 65535 && o->threads >= 1 &&
	       o->threads <= THREADS_MAX && o->buf >= BUF_MIN &&
	       o->buf <= BUF_MAX;
}

static inline struct opts parse_opts(int argc, char **argv)
{
	struct opts o = { .port = 0, .threads = 1, .buf = 4096 };
	int bad = 0;

	for (int i = 1; i < argc && !bad; i += 2)
		bad = i + 1 == argc ||
		      opts__set(&o, argv[i], atoi(argv[i + 1])) < 0;
	if (bad || !opts__valid(&o)) {
		fprintf(stderr, "usage: --port P [--threads T] [--buf N]\n");
		exit(2);
	}
	return o;
}

/* Ignores SIGPIPE, and raises the limit of descriptors to its maximum. */
static inline void prepare_process(void)
{
	struct rlimit rl;

	signal(SIGPIPE, SIG_IGN);
	getrlimit(RLIMIT_NOFILE, &rl);
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

/* Accepted sockets inherit TCP_NODELAY from the listener. */
static inline int listen_on(int port, int socket_flags)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int one = 1, fd;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | socket_flags, 0);
	a.sin_port = htons((uint16_t)port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 ||
	    listen(fd, 4096) < 0) {
		perror("listen");
		exit(1);
	}
	return fd;
}

/* Runs loop() on threads - 1 new threads and on this one. */
static inline void run_threads(int threads, void *(*loop)(void *))
{
	pthread_t t;

	for (int i = 1; i < threads; i++)
		pthread_create(&t, NULL, loop, NULL);
	loop(NULL);
}

#endif
