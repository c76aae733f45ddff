/* SPDX-License-Identifier: MIT */
/*
 * What do slow and hostile clients cost a server, and what do others lose?
 *
 *	bench_hostile slow|flood|emfile|reset [--secs S]
 *
 * Method.  A server of weft in a process of its own answers each line with the
 * same line.  This process is its clients.
 *   slow    5,000 connections send a line byte by byte, at the same time.  A
 *           well-behaved client asks meanwhile.
 *   flood   one client sends as fast as it can, and never reads.  100 others
 *           send a line each 10 ms.
 *   emfile  the server may open about 8 descriptors, and 200 clients come.
 *           Until the time is over, no answered client leaves.
 *   reset   connections are reset: before, within and behind a line, with the
 *           answer unread, and after a half-close; again and again.
 * _lost are lines that had no answer, _bytes what the server's resident memory
 * grew, for each connection of slow and in all of flood and reset, _p99 the
 * time until a well-behaved client has its answer, _cpu the server's processor
 * time in a second without descriptors, _fds the descriptors that it kept.
 *
 * What would fool it: with one processor for both, _p99 has the load's time,
 * too.  A limit of descriptors below 10,100 means fewer connections in slow;
 * the figures are for each.
 */
#include "bench/bench.h"

#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LINE_BYTES = 16,
	SLOW_CLIENTS = 5000,
	TRICKLING = 100,
	FEW_FDS = 8,
	CROWD = 200,
	PATIENCE_MS = 20000,
	LATENCIES_MAX = 1 << 20,
};

static const char line[LINE_BYTES + 1] = "fifteen letters\n";

static struct {
	const char *secs;
} opt = { .secs = "2" };

static struct {
	pid_t pid;
	struct sockaddr_in addr;
	int fds; /* without clients */
} server;

/* ---- Server -------------------------------------------------------------- */

static int64_t serve_one(void *arg)
{
	struct weft_stream stream = WEFT_STREAM_INIT(*(int *)arg);
	char text[256];
	ssize_t n;

	while ((n = weft_stream_line(&stream, text, sizeof(text))) > 0)
		if (weft_stream_put(&stream, text, (size_t)n) < 0)
			break;
	return weft_stream_close(&stream);
}

static int64_t serve(void *arg)
{
	int listener = *(int *)arg, fd = 0;

	WEFT_SUPERVISE (all)
		while ((fd = weft_accept(listener, NULL)) >= 0)
			if (WEFT_GO(all, serve_one, fd) < 0)
				weft_close(fd);
	return fd;
}

static void server_start(void)
{
	socklen_t bytes = sizeof(server.addr);
	pid_t parent = getpid();
	int fd = weft_tcp_listen("127.0.0.1:0", NULL);
	cpu_set_t last;

	bench_must("weft_tcp_listen", fd);
	if (getsockname(fd, (struct sockaddr *)&server.addr, &bytes) < 0)
		bench_die("getsockname", -errno);
	server.pid = fork();
	if (server.pid < 0)
		bench_die("fork", -errno);
	if (server.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			bench_run(serve, &fd);
		_exit(1);
	}
	close(fd);
	/* The server may be pinned, as the caller was. */
	CPU_ZERO(&last);
	CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
	(void)sched_setaffinity(0, sizeof(last), &last);
}

/* A number from a file of the server's in /proc. */
static uint64_t server_number(const char *file, int skip)
{
	char path[64], text[1024], *at = text;
	unsigned long long number = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)server.pid, file);
	f = fopen(path, "r");
	if (!f || !fgets(text, sizeof(text), f))
		bench_die(path, -errno);
	fclose(f);
	for (int i = 0; at && i < skip; i++)
		at = strchr(at + 1, ' ');
	if (at)
		number = strtoull(at, NULL, 10);
	return number;
}

static uint64_t server_bytes(void)
{
	return server_number("statm", 1) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Its name has no spaces. */
static uint64_t server_cpu_ns(void)
{
	return (server_number("stat", 13) + server_number("stat", 14)) *
	       (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

static int server_fds(void)
{
	char path[64];
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)server.pid);
	dir = opendir(path);
	if (!dir)
		bench_die(path, -errno);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

/* ---- Clients ------------------------------------------------------------- */

static int client_new(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&server.addr,
			      sizeof(server.addr)) < 0)
		bench_die("connect", -errno);
	return fd;
}

static void client_send(int fd, const char *bytes, size_t count)
{
	if (send(fd, bytes, count, MSG_NOSIGNAL) != (ssize_t)count)
		bench_die("send", -errno);
}

/* Waits for the answer to a line: is it there, in time? */
static bool client_hears(int fd)
{
	struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
	char answer[LINE_BYTES];

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			 sizeof(patience));
	return recv(fd, answer, sizeof(answer), MSG_WAITALL) == LINE_BYTES &&
	       memcmp(answer, line, LINE_BYTES) == 0;
}

/* Until it answers: then it has all that it opens and allocates at first. */
static void server_await(void)
{
	int fd = client_new();

	client_send(fd, line, LINE_BYTES);
	if (!client_hears(fd))
		bench_die("the server does not answer", -EIO);
	server.fds = server_fds() - 1;
	close(fd);
}

static void client_reset(int fd)
{
	struct linger now = { .l_onoff = 1 };

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static bool is_over(uint64_t end_ns)
{
	return now_ns() >= end_ns;
}

static uint64_t end_of_time(void)
{
	return now_ns() + (uint64_t)(atof(opt.secs) * 1e9);
}

/* ---- Well-behaved clients ------------------------------------------------ */

static struct {
	int count;
	uint64_t end_ns, lost;
	double *us; /* how long each answer took */
	size_t answers;
} others;

static void *others_ask(void *arg)
{
	int fds[TRICKLING];
	uint64_t sent_ns[TRICKLING];

	(void)arg;
	for (int i = 0; i < others.count; i++)
		fds[i] = client_new();
	while (!is_over(others.end_ns)) {
		for (int i = 0; i < others.count; i++) {
			sent_ns[i] = now_ns();
			client_send(fds[i], line, LINE_BYTES);
		}
		for (int i = 0; i < others.count; i++) {
			others.lost += !client_hears(fds[i]);
			if (others.answers < LATENCIES_MAX)
				others.us[others.answers++] =
					(double)(now_ns() - sent_ns[i]) / 1e3;
		}
		poll(NULL, 0, 10);
	}
	for (int i = 0; i < others.count; i++)
		close(fds[i]);
	return NULL;
}

static pthread_t others_begin(int count, uint64_t end_ns)
{
	pthread_t thread;

	others.count = count;
	others.end_ns = end_ns;
	others.us = bench_alloc(LATENCIES_MAX, sizeof(*others.us));
	if (pthread_create(&thread, NULL, others_ask, NULL) != 0)
		bench_die("pthread_create", -EAGAIN);
	return thread;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void emit_named(const char *what, const char *figure, double value,
		       const char *unit)
{
	char name[64];

	snprintf(name, sizeof(name), "hostile_%s_%s", what, figure);
	emit(name, value, unit);
}

static void others_end(pthread_t thread, const char *what, uint64_t lost)
{
	pthread_join(thread, NULL);
	qsort(others.us, others.answers, sizeof(*others.us), by_size);
	emit_named(what, "lost", (double)(lost + others.lost), "count");
	emit_named(what, "p99", others.us[others.answers * 99 / 100], "us");
	free(others.us);
}

/* ---- Cases --------------------------------------------------------------- */

/* As many as both processes may have. */
static int slow_clients(void)
{
	struct rlimit limit;
	int count = SLOW_CLIENTS;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur < SLOW_CLIENTS + 100)
		count = (int)limit.rlim_cur - 100;
	return count;
}

static void slow(void)
{
	int count = slow_clients(), *fds;
	uint64_t before = server_bytes(), most = 0, lost = 0;
	uint64_t end_ns;
	pthread_t thread;

	fds = bench_alloc((size_t)count, sizeof(*fds));
	for (int i = 0; i < count; i++)
		fds[i] = client_new();
	end_ns = end_of_time();
	thread = others_begin(1, end_ns);
	do {
		for (int at = 0; at < LINE_BYTES; at++)
			for (int i = 0; i < count; i++)
				client_send(fds[i], line + at, 1);
		for (int i = 0; i < count; i++)
			lost += !client_hears(fds[i]);
		if (server_bytes() > most)
			most = server_bytes();
	} while (!is_over(end_ns));
	others_end(thread, "slow", lost);
	emit_named("slow", "bytes",
		   (double)(most > before ? most - before : 0) / count,
		   "bytes");
	for (int i = 0; i < count; i++)
		close(fds[i]);
	free(fds);
}

static void flood(void)
{
	enum { FLOOD_BYTES = 4096 * LINE_BYTES };
	char *lines = bench_alloc(FLOOD_BYTES, 1);
	uint64_t before = server_bytes(), most = 0, end_ns = end_of_time();
	pthread_t thread = others_begin(TRICKLING, end_ns);
	int fd = client_new();

	for (int i = 0; i < FLOOD_BYTES; i += LINE_BYTES)
		memcpy(lines + i, line, LINE_BYTES);
	while (!is_over(end_ns)) {
		if (send(fd, lines, FLOOD_BYTES, MSG_DONTWAIT | MSG_NOSIGNAL) <
		    0)
			poll(NULL, 0, 1);
		if (server_bytes() > most)
			most = server_bytes();
	}
	client_reset(fd);
	others_end(thread, "flood", 0);
	emit_named("flood", "bytes",
		   (double)(most > before ? most - before : 0), "bytes");
	free(lines);
}

/* Takes the answers that are there, within a time, of clients that have none
 * yet; those that have one leave if they may.  Returns how many had none. */
static int crowd_hears(struct pollfd *crowd, bool *heard, bool leave, int ms)
{
	int left = 0;

	for (int i = 0; i < CROWD; i++) {
		if (heard[i] && leave && crowd[i].fd >= 0) {
			close(crowd[i].fd);
			crowd[i].fd = -1;
		}
		crowd[i].events = heard[i] ? 0 : POLLIN;
	}
	(void)poll(crowd, CROWD, ms);
	for (int i = 0; i < CROWD; i++) {
		if (!heard[i] && crowd[i].fd >= 0 && crowd[i].revents)
			heard[i] = client_hears(crowd[i].fd);
		left += !heard[i];
	}
	return left;
}

static void emfile(void)
{
	struct pollfd crowd[CROWD] = { 0 };
	bool heard[CROWD] = { false };
	struct rlimit few;
	uint64_t end_ns, cpu_ns, began_ns;
	int left = CROWD;

	few.rlim_cur = few.rlim_max = (rlim_t)(server.fds + FEW_FDS);
	if (prlimit(server.pid, RLIMIT_NOFILE, &few, NULL) < 0)
		bench_die("prlimit", -errno);
	for (int i = 0; i < CROWD; i++) {
		crowd[i].fd = client_new();
		client_send(crowd[i].fd, line, LINE_BYTES);
	}
	began_ns = now_ns();
	cpu_ns = server_cpu_ns();
	end_ns = end_of_time();
	while (!is_over(end_ns))
		left = crowd_hears(crowd, heard, false, 50);
	cpu_ns = server_cpu_ns() - cpu_ns;
	/* Of the numbers up to the limit, some may be free. */
	if (left < CROWD / 2 || left == CROWD)
		bench_die("the limit of descriptors did not hold", -EINVAL);
	emit_named("emfile", "cpu",
		   (double)cpu_ns / 1e6 / ((double)(now_ns() - began_ns) / 1e9),
		   "ms/s");
	end_ns = now_ns() + PATIENCE_MS * 1000000ull;
	while (left > 0 && !is_over(end_ns))
		left = crowd_hears(crowd, heard, true, 50);
	emit_named("emfile", "lost", left, "count");
	(void)crowd_hears(crowd, heard, true, 0);
}

enum reset_point {
	EARLY,
	FIRST_BYTE,
	HALF_A_LINE,
	UNREAD,
	HEARD,
	HALF_CLOSED,
	RESET_POINTS
};

static void reset_at(enum reset_point point)
{
	int fd = client_new();

	if (point == FIRST_BYTE)
		client_send(fd, line, 1);
	else if (point == HALF_A_LINE)
		client_send(fd, line, LINE_BYTES / 2);
	else if (point >= UNREAD)
		client_send(fd, line, LINE_BYTES);
	if (point == HEARD)
		(void)client_hears(fd);
	if (point == HALF_CLOSED)
		(void)shutdown(fd, SHUT_WR);
	client_reset(fd);
}

static void reset(void)
{
	uint64_t before = server_bytes(), count = 0, after,
		 end_ns = end_of_time();
	pthread_t thread = others_begin(1, end_ns);

	for (; !is_over(end_ns); count++)
		reset_at((enum reset_point)(count % RESET_POINTS));
	others_end(thread, "reset", 0);
	end_ns = now_ns() + PATIENCE_MS * 1000000ull;
	while (server_fds() > server.fds && !is_over(end_ns))
		poll(NULL, 0, 10);
	after = server_bytes();
	emit_named("reset", "fds", server_fds() - server.fds, "count");
	emit_named("reset", "bytes",
		   (double)(after > before ? after - before : 0), "bytes");
	emit_named("reset", "rate", (double)count / atof(opt.secs), "resets/s");
}

int main(int argc, char **argv)
{
	const struct bench_option options[] = {
		{ "--secs", &opt.secs, false },
		{ NULL, NULL, false },
	};
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "slow", slow },
		      { "flood", flood },
		      { "emfile", emfile },
		      { "reset", reset } };
	const char *what = bench_parse(argc, argv, options);
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (strcmp(what, cases[i].name) == 0) {
			server_start();
			server_await();
			cases[i].run();
			kill(server.pid, SIGKILL);
			return 0;
		}
	bench_die(what, -EINVAL);
}
