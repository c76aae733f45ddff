/* SPDX-License-Identifier: MIT */
/*
 * How many names does a worker look up in a second?
 *
 *	bench_names names [--secs S] [--count N]
 *	bench_names serve --address ADDR
 *
 * Method.  1024 tasks look names up that no one has asked for before, one after
 * the other, at a server in a process of its own on the loopback.  names: one
 * family, so a look-up is a query and its answer; names_both: both families,
 * two queries, and two addresses to put in order.  _rate is look-ups a second,
 * _cpu the processor time of weft's process for each.  --count ends each of
 * them after that number, for a count of instructions or system calls.  serve
 * is that server alone, for other programs that look names up.
 *
 * What would fool it: the server needs a processor of its own.  It only copies
 * the question, so it is faster than any real one; an answer of a real server
 * is longer.
 */
#include "bench/bench.h"

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TASKS = 1024, BATCH = 64, MESSAGE_BYTES = 512, BUFFER = 4 << 20 };

static struct {
	const char *secs, *count, *address;
} opt = { .secs = "2", .count = "0", .address = "127.0.0.1:0" };

static const struct load {
	const char *bench;
	int family;
} loads[] = {
	{ "names", AF_INET },
	{ "names_both", AF_UNSPEC },
};

/* ---- Server -------------------------------------------------------------- */

static unsigned char messages[BATCH][MESSAGE_BYTES];
static struct sockaddr_in peers[BATCH];
static struct iovec iovs[BATCH];
static struct mmsghdr headers[BATCH];

/* Makes the answer of the query with one address; returns its bytes. */
static size_t answer(unsigned char *data, size_t bytes)
{
	static const unsigned char head[] = {
		0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60
	};
	static const unsigned char four[] = { 0, 4, 127, 0, 0, 9 };
	static const unsigned char six[] = { 0, 16, [17] = 1 };
	size_t at = 12;
	bool is_six;

	while (at < bytes && data[at])
		at += 1u + data[at];
	at += 5;
	if (at > bytes || at + sizeof(head) + sizeof(six) > MESSAGE_BYTES)
		return 0;
	is_six = data[at - 3] == 28;
	data[2] = 0x81;
	data[3] = 0x80;
	memset(data + 6, 0, 6);
	data[7] = 1;
	memcpy(data + at, head, sizeof(head));
	data[at + 3] = is_six ? 28 : 1;
	at += sizeof(head);
	memcpy(data + at, is_six ? six : four,
	       is_six ? sizeof(six) : sizeof(four));
	return at + (is_six ? sizeof(six) : sizeof(four));
}

static _Noreturn void serve(int fd)
{
	for (;;) {
		int n, kept = 0;

		for (int i = 0; i < BATCH; i++) {
			iovs[i] = (struct iovec){ messages[i], MESSAGE_BYTES };
			headers[i].msg_hdr = (struct msghdr){
				.msg_name = &peers[i],
				.msg_namelen = sizeof(peers[i]),
				.msg_iov = &iovs[i],
				.msg_iovlen = 1,
			};
		}
		n = recvmmsg(fd, headers, BATCH, MSG_WAITFORONE, NULL);
		for (int i = 0; i < n; i++) {
			iovs[i].iov_len =
				answer(messages[i], headers[i].msg_len);
			if (iovs[i].iov_len > 0)
				headers[kept++] = headers[i];
		}
		for (int sent = 0; sent < kept;) {
			int r = sendmmsg(fd, headers + sent,
					 (unsigned)(kept - sent), 0);

			sent += r > 0 ? r : 1;
		}
	}
}

static int server_socket(void)
{
	struct weft_addr addr;
	int buffer = BUFFER, fd;

	bench_must("--address", weft_addr_parse(opt.address, &addr));
	fd = socket(addr.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&addr.storage, addr.bytes) < 0)
		bench_die("server", -errno);
	return fd;
}

/* Returns its port. */
static int server_start(void)
{
	struct sockaddr_in addr;
	socklen_t bytes = sizeof(addr);
	int fd = server_socket();
	pid_t parent = getpid(), pid;

	if (getsockname(fd, (struct sockaddr *)&addr, &bytes) < 0)
		bench_die("server", -errno);
	pid = fork();
	if (pid < 0)
		bench_die("fork", -errno);
	if (pid == 0) {
		cpu_set_t last;

		/* The caller may be pinned to another processor. */
		CPU_ZERO(&last);
		CPU_SET((size_t)sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
		(void)sched_setaffinity(0, sizeof(last), &last);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			serve(fd);
		_exit(0);
	}
	close(fd);
	return ntohs(addr.sin_port);
}

/* ---- Load ---------------------------------------------------------------- */

static struct {
	const struct load *load;
	weft_nsec end_ns;
	uint64_t count_max, done, failed;
} run;

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool more(void)
{
	if (run.count_max > 0)
		return run.done < run.count_max;
	return weft_now() < run.end_ns;
}

/* All tasks are of one worker. */
static int64_t look_up_many(void *arg)
{
	struct weft_resolve_opts opts = WEFT_RESOLVE_OPTS_INIT;
	struct weft_addr addrs[4];
	char name[64];

	(void)arg;
	opts.family = run.load->family;
	while (more()) {
		snprintf(name, sizeof(name), "n%llu.%s.bench.test:1",
			 (unsigned long long)run.done++, run.load->bench);
		if (weft_resolve(name, &opts, addrs, 4) < 1)
			run.failed++;
	}
	return 0;
}

static int64_t measure(void *arg)
{
	struct weft_resolver_opts opts = WEFT_RESOLVER_OPTS_INIT;
	char bench[64], server[32];
	uint64_t begin_ns, begin_cpu_ns;
	weft_nsec length_ns = (weft_nsec)(atof(opt.secs) * 1e9);

	snprintf(server, sizeof(server), "127.0.0.1:%d", *(int *)arg);
	opts.servers = server;
	opts.answers_max = 1;
	for (size_t k = 0; k < sizeof(loads) / sizeof(loads[0]); k++) {
		bench_must("weft_resolver_set", weft_resolver_set(&opts));
		run.load = &loads[k];
		run.count_max = strtoull(opt.count, NULL, 10);
		run.done = run.failed = 0;
		begin_ns = now_ns();
		begin_cpu_ns = cpu_ns();
		run.end_ns = weft_now() + length_ns;
		WEFT_SCOPE (all, NULL)
			for (int i = 0; i < TASKS; i++)
				bench_go(all, look_up_many, NULL, 0);
		begin_cpu_ns = cpu_ns() - begin_cpu_ns;
		begin_ns = now_ns() - begin_ns;
		if (run.failed * 100 > run.done)
			bench_die(run.load->bench, -EIO);
		snprintf(bench, sizeof(bench), "%s_rate", run.load->bench);
		emit(bench, (double)run.done * 1e9 / (double)begin_ns,
		     "look-ups/s");
		snprintf(bench, sizeof(bench), "%s_cpu", run.load->bench);
		emit(bench, (double)begin_cpu_ns / 1e3 / (double)run.done,
		     "us/look-up");
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct bench_option options[] = {
		{ "--secs", &opt.secs, false },
		{ "--count", &opt.count, false },
		{ "--address", &opt.address, false },
		{ NULL, NULL, false },
	};
	const char *what = bench_parse(argc, argv, options);
	int port;

	if (strcmp(what, "serve") == 0)
		serve(server_socket());
	if (strcmp(what, "names") != 0 || out_workers != 1)
		bench_die(what, -EINVAL);
	port = server_start();
	bench_run(measure, &port);
	return 0;
}
