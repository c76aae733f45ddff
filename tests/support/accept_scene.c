/* SPDX-License-Identifier: MIT */
#include "tests/support/accept_scene.h"

#include "tests/support/errno_now.h"
#include "tests/support/few.h"

int connect_to(const char *text)
{
	struct weft_addr addr;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_addr_parse(text, &addr), 0);
	ck_assert_int_eq(connect(fd, weft_addr_sockaddr(&addr),
				 weft_addr_sockaddr_bytes(&addr)),
			 0);
	return fd;
}

uint32_t starving(void)
{
	/* relaxed: a look. */
	return weft__load(&weft__reactor(weft_runtime_self())->starving.count,
			  relaxed);
}

unsigned backlog_of(int listener)
{
	struct tcp_info info;
	socklen_t bytes = sizeof(info);

	ck_assert_int_eq(
		getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
	return info.tcpi_unacked;
}

void take_all_fds(int *fds, int *count)
{
	int fd;

	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		fds[(*count)++] = fd;
	ck_assert_int_eq(errno_now(), EMFILE);
}

void limit_fds(rlim_t limit)
{
	struct rlimit rlimit;

	getrlimit(RLIMIT_NOFILE, &rlimit);
	rlimit.rlim_cur = limit;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &rlimit), 0);
}

int client_of(int *clients, int count, const struct weft_addr *peer)
{
	for (int i = 0; i < count; i++) {
		int client = clients[i];
		struct weft_addr local;

		if (client < 0)
			continue;
		ck_assert_int_eq(weft_local_addr(client, &local), 0);
		ck_assert_msg(weft_addr_equal(peer, &local),
			      "another than the oldest");
		clients[i] = -1;
		return client;
	}
	ck_abort_msg("a connection of no client");
	return -1;
}

/* The share of a processor that is next to nothing: what is tried 20 times a
 * second, and the monitor's look every millisecond meanwhile.  A tool makes
 * that dearer; a loop would take all of it. */
static uint64_t next_to_nothing(void)
{
#if defined(WEFT__ASAN) || defined(WEFT__TSAN)
	return 8;
#else
	/* An emulator, too, where the stage has only a few seeds. */
	return test_few() > 2 ? 4 : 10;
#endif
}

void expect_next_to_nothing_spent(void)
{
	enum { WINDOWS = 8, WINDOW_MS = 200 };
	uint64_t cpu = 0, max_ns = 0;

	/* A window lasts longer where the processors are busy. */
	for (int i = 0; i < WINDOWS && cpu >= max_ns; i++) {
		uint64_t began_ns = weft_now();

		cpu = cpu_ns();
		ck_assert_int_eq(weft_sleep(WEFT_MS(WINDOW_MS)), 0);
		cpu = cpu_ns() - cpu;
		max_ns = (weft_now() - began_ns) / next_to_nothing();
	}
	ck_assert_msg(cpu < max_ns, "%lu us, at most %lu us", cpu / 1000,
		      max_ns / 1000);
}
