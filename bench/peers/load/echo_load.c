/* SPDX-License-Identifier: MIT */
/*
 * Closed-loop TCP echo load: one thread, epoll, N connections to loopback.
 * Prints one JSON line.
 *
 *	echo_load --port P [--conns N] [--size M] [--secs D] [--warmup W]
 *		  [--mode echo|pipe|churn|idle] [--depth K]
 *		  [--server-pid PID] [--label S]
 *
 *	echo	each connection sends M bytes, reads M bytes back, repeats
 *	pipe	the same with K requests in flight: for the answers that one
 *		read returns, one write sends the same number of new requests
 *	churn	each connection connects, makes one echo, half-closes, waits for
 *		the peer's end of stream and closes; all of this is one request
 *	idle	opens N connections, makes one echo on each, then reports the
 *		growth of the server's resident memory (needs --server-pid)
 *
 * With --server-pid the server's CPU time over the measured window is read from
 * /proc: only this tells servers apart once the load has filled its own core.
 *
 * All bytes that come back are compared with those that were sent: the stream
 * of a connection repeats one pattern of M bytes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cpu.h"
#include "histogram.h"

enum {
	CONNS_MAX = 16000,
	SIZE_MAX_ = 1 << 20,
	DEPTH_MAX = 64,
	SECS_MAX = 120,
	ERRORS_MAX = 10000,
	READ_SIZE = 1 << 20,
};

enum mode { ECHO, PIPE, CHURN, IDLE };
static const char *const mode_names[] = { "echo", "pipe", "churn", "idle" };

enum state { CLOSED, CONNECTING, TALKING, WAIT_EOF };

struct conn {
	int fd;
	enum state state;
	uint64_t sent, got; /* bytes since it connected */
	uint64_t goal; /* bytes to be sent: whole requests */
	uint64_t *began_ns; /* by request, a ring of depth */
};

static struct {
	int port, conns, server_pid;
	uint32_t size, depth;
	double secs, warmup;
	enum mode mode;
	const char *label;
} opt = { .conns = 64, .size = 64, .depth = 1, .secs = 3, .warmup = 0.5,
	  .label = "" };

static struct conn *conns;
static struct histogram latency;
static char *pattern, *in_buf;
static int ep;
static uint64_t errors, done_total;
static uint32_t source_seq;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct sockaddr_in loopback(uint32_t host, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	a.sin_port = htons((uint16_t)port);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
	return a;
}

/* Spreads source addresses, so that TIME_WAIT never exhausts the ports. */
static int spread_source(int fd)
{
	struct sockaddr_in a = loopback(source_seq++ % 200, 0);
	int one = 1;

	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&a, sizeof(a));
}

static int start_connect(struct conn *c)
{
	struct sockaddr_in a = loopback(0, opt.port);
	struct epoll_event ev = { .events = EPOLLOUT, .data.ptr = c };
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return -1;
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if ((opt.mode == CHURN || opt.mode == IDLE) && spread_source(c->fd) < 0)
		return -1;
	c->sent = c->got = c->goal = 0;
	c->state = CONNECTING;
	c->began_ns[0] = now_ns();
	if (connect(c->fd, (struct sockaddr *)&a, sizeof(a)) < 0 &&
	    errno != EINPROGRESS)
		return -1;
	return epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &ev);
}

static void want(struct conn *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	epoll_ctl(ep, EPOLL_CTL_MOD, c->fd, &ev);
}

static void fail(struct conn *c)
{
	errors++;
	if (c->fd >= 0)
		close(c->fd);
	c->state = CLOSED;
	if (errors < ERRORS_MAX && start_connect(c) < 0)
		c->state = CLOSED;
}

static void pump_send(struct conn *c)
{
	while (c->sent < c->goal) {
		ssize_t n = send(c->fd, pattern + c->sent % opt.size,
				 c->goal - c->sent, MSG_NOSIGNAL);

		if (n > 0) {
			c->sent += (uint64_t)n;
		} else if (n < 0 && errno == EAGAIN) {
			want(c, EPOLLIN | EPOLLOUT);
			return;
		} else {
			fail(c);
			return;
		}
	}
}

/* Sends n more requests; a request of churn began with its connect. */
static void begin(struct conn *c, uint64_t n)
{
	uint64_t t = now_ns();

	for (uint64_t i = 0; i < n && opt.mode != CHURN; i++)
		c->began_ns[(c->goal / opt.size + i) % opt.depth] = t;
	c->goal += n * opt.size;
	pump_send(c);
}

static void record(const struct conn *c, uint64_t request, uint64_t now)
{
	histogram_add(&latency, now - c->began_ns[request % opt.depth]);
	done_total++;
}

static void on_connected(struct conn *c)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err != 0) {
		fail(c);
		return;
	}
	want(c, EPOLLIN);
	c->state = TALKING;
	begin(c, opt.depth);
}

static void on_writable(struct conn *c)
{
	pump_send(c);
	if (c->state == TALKING && c->sent == c->goal)
		want(c, EPOLLIN);
}

static void on_life_over(struct conn *c, ssize_t n)
{
	if (n != 0) {
		fail(c);
		return;
	}
	record(c, 0, now_ns());
	close(c->fd);
	if (start_connect(c) < 0)
		fail(c);
}

/* Whole answers came back: counts them, and does the mode's next step. */
static void on_answered(struct conn *c, uint64_t first, uint64_t n)
{
	uint64_t now = now_ns();

	if (n == 0)
		return;
	if (opt.mode == CHURN) {
		c->state = WAIT_EOF;
		shutdown(c->fd, SHUT_WR);
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		record(c, first + i, now);
	if (opt.mode == IDLE)
		c->state = CLOSED; /* done; the connection stays open */
	else
		begin(c, n);
}

static void on_echo(struct conn *c, size_t n)
{
	uint64_t answered = c->got / opt.size;

	if (n == 0 || c->got + n > c->sent ||
	    memcmp(in_buf, pattern + c->got % opt.size, n) != 0) {
		fail(c);
		return;
	}
	c->got += n;
	on_answered(c, answered, c->got / opt.size - answered);
}

static void on_event(struct conn *c, uint32_t events)
{
	ssize_t n;

	if (c->state == CONNECTING) {
		on_connected(c);
		return;
	}
	if ((events & EPOLLOUT) && c->state == TALKING && c->sent < c->goal)
		on_writable(c);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	n = recv(c->fd, in_buf, READ_SIZE, 0);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0)
		fail(c);
	else if (c->state == WAIT_EOF)
		on_life_over(c, n);
	else
		on_echo(c, (size_t)n);
}

static void loop_until(uint64_t deadline, uint64_t done_max)
{
	struct epoll_event ev[256];

	while (done_total < done_max && now_ns() < deadline &&
	       errors < ERRORS_MAX) {
		int n = epoll_wait(ep, ev, 256, 100);

		for (int i = 0; i < n; i++)
			on_event(ev[i].data.ptr, ev[i].events);
	}
}

static void loop_for(double secs, uint64_t done_max)
{
	loop_until(now_ns() + (uint64_t)(secs * 1e9), done_max);
}

/* The server may still be starting: probes for up to five seconds. */
static int await_server(void)
{
	struct sockaddr_in a = loopback(0, opt.port);

	for (int i = 0; i < 500; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		int r = connect(fd, (struct sockaddr *)&a, sizeof(a));

		close(fd);
		if (r == 0) {
			usleep(50000);
			return 0;
		}
		usleep(10000);
	}
	fprintf(stderr, "no server on port %d\n", opt.port);
	return -1;
}

static void open_all(void)
{
	for (int i = 0; i < opt.conns; i++) {
		if (start_connect(&conns[i]) < 0)
			fail(&conns[i]);
		/* Do not overrun the accept queue. */
		if (i % 256 == 255)
			loop_for(0.003, UINT64_MAX);
	}
}

static void run_idle(long rss_before_kb)
{
	long rss_after_kb;

	loop_for(opt.secs, (uint64_t)opt.conns);
	usleep(300000);
	rss_after_kb = pid_rss_kb(opt.server_pid);
	printf("{\"label\":\"%s\",\"mode\":\"idle\",\"conns\":%d,"
	       "\"echoed\":%llu,\"rss_before_kb\":%ld,\"rss_after_kb\":%ld,"
	       "\"bytes_per_conn\":%.0f,\"errors\":%llu}\n",
	       opt.label, opt.conns, (unsigned long long)done_total,
	       rss_before_kb, rss_after_kb,
	       (double)(rss_after_kb - rss_before_kb) * 1024.0 / opt.conns,
	       (unsigned long long)errors);
}

static void print_rates(double took, double load, double server, double machine)
{
	double count = (double)latency.count;

	printf("{\"label\":\"%s\",\"mode\":\"%s\",\"conns\":%d,\"size\":%u,"
	       "\"depth\":%u,\"secs\":%.2f,\"rps\":%.0f,",
	       opt.label, mode_names[opt.mode], opt.conns, opt.size, opt.depth,
	       took, count / took);
	printf("\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,"
	       "\"max_us\":%.1f,\"errors\":%llu,",
	       (double)histogram_percentile(&latency, .5) / 1e3,
	       (double)histogram_percentile(&latency, .99) / 1e3,
	       (double)histogram_percentile(&latency, .999) / 1e3,
	       (double)latency.max / 1e3, (unsigned long long)errors);
	/* other_cpu: used by neither side, but by other programs. */
	printf("\"load_cpu\":%.2f,\"server_cpu\":%.2f,"
	       "\"server_us_per_req\":%.3f,\"other_cpu\":%.3f}\n",
	       load / took, server < 0 ? -1 : server / took,
	       server < 0 || count < 1 ? -1 : server * 1e6 / count,
	       server < 0 ? -1 : (machine - load - server) / took);
}

static void run_rate(void)
{
	double load, server, machine;
	uint64_t t0;

	loop_for(opt.warmup, UINT64_MAX);
	histogram_clear(&latency);
	load = self_cpu();
	server = pid_cpu(opt.server_pid);
	machine = machine_cpu();
	t0 = now_ns();
	loop_for(opt.secs, UINT64_MAX);
	print_rates((double)(now_ns() - t0) / 1e9, self_cpu() - load,
		    server < 0 ? -1 : pid_cpu(opt.server_pid) - server,
		    machine_cpu() - machine);
}

static bool parse_mode(const char *name)
{
	for (unsigned i = 0; i < sizeof(mode_names) / sizeof(*mode_names); i++)
		if (strcmp(name, mode_names[i]) == 0) {
			opt.mode = (enum mode)i;
			return true;
		}
	return false;
}

static bool parse_option(const char *name, const char *value)
{
	if (strcmp(name, "--port") == 0)
		opt.port = atoi(value);
	else if (strcmp(name, "--conns") == 0)
		opt.conns = atoi(value);
	else if (strcmp(name, "--size") == 0)
		opt.size = (uint32_t)atoi(value);
	else if (strcmp(name, "--depth") == 0)
		opt.depth = (uint32_t)atoi(value);
	else if (strcmp(name, "--secs") == 0)
		opt.secs = atof(value);
	else if (strcmp(name, "--warmup") == 0)
		opt.warmup = atof(value);
	else if (strcmp(name, "--server-pid") == 0)
		opt.server_pid = atoi(value);
	else if (strcmp(name, "--label") == 0)
		opt.label = value;
	else if (strcmp(name, "--mode") == 0)
		return parse_mode(value);
	else
		return false;
	return true;
}

static bool options_in_range(void)
{
	return opt.port > 0 && opt.port <= 65535 && opt.conns >= 1 &&
	       opt.conns <= CONNS_MAX && opt.size >= 1 &&
	       opt.size <= SIZE_MAX_ && opt.depth >= 1 &&
	       opt.depth <= DEPTH_MAX &&
	       (opt.depth == 1 || opt.mode == PIPE) && opt.secs > 0 &&
	       opt.secs <= SECS_MAX && opt.warmup >= 0 && opt.warmup <= 10;
}

static void parse_options(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2)
		if (i + 1 == argc || !parse_option(argv[i], argv[i + 1])) {
			fprintf(stderr, "bad option %s\n", argv[i]);
			exit(2);
		}
	if (!options_in_range()) {
		fprintf(stderr, "argument out of range\n");
		exit(2);
	}
}

static void raise_descriptor_limit(void)
{
	struct rlimit rl;

	getrlimit(RLIMIT_NOFILE, &rl);
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

static void allocate(void)
{
	uint64_t *began = calloc((size_t)opt.conns * opt.depth, sizeof(*began));
	size_t len;

	/* One read may return every request in flight, from any offset. */
	len = (size_t)opt.size * (opt.depth + 1);
	conns = calloc((size_t)opt.conns, sizeof(*conns));
	pattern = malloc(len);
	in_buf = malloc(READ_SIZE);
	if (began == NULL || conns == NULL || pattern == NULL || !in_buf)
		exit(1);
	for (size_t i = 0; i < len; i++)
		pattern[i] = (char)(i % opt.size * 31 + 7);
	for (int i = 0; i < opt.conns; i++)
		conns[i].began_ns = began + (size_t)i * opt.depth;
}

int main(int argc, char **argv)
{
	long rss_kb;

	parse_options(argc, argv);
	raise_descriptor_limit();
	allocate();
	ep = epoll_create1(EPOLL_CLOEXEC);
	if (await_server() < 0)
		return 1;
	rss_kb = pid_rss_kb(opt.server_pid);
	open_all();
	if (opt.mode == IDLE)
		run_idle(rss_kb);
	else
		run_rate();
	return errors != 0;
}
