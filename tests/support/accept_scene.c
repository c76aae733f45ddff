/* SPDX-License-Identifier: MIT */
#include "tests/support/accept_scene.h"

#include "tests/support/errno_now.h"

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
