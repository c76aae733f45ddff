/* SPDX-License-Identifier: MIT */
/*
 * Suite net/systemd: sockets that a service manager passes, messages to it, its
 * watchdog; and groups of listeners.
 *
 * Each case runs in a process of its own, so its environment and its lowest
 * descriptors are its own, too.
 */
#include <sys/mman.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

static void set(const char *name, const char *value)
{
	ck_assert_int_eq(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void set_pid(const char *name, int pid)
{
	char text[20];

	snprintf(text, sizeof(text), "%d", pid);
	set(name, text);
}

/* ---- Sockets ------------------------------------------------------------- */

/* Descriptors from 3 on, which stay open across exec.  Check has others there,
 * hence the child, whose exit status tells its line. */
static void pass_sockets(int count)
{
	int file = fcntl(memfd_create("passed", 0), F_DUPFD, 10);

	for (int fd = 3; fd < 3 + count; fd++)
		if (dup2(file, fd) != fd)
			_exit(1);
}

static void in_child(int (*fn)(struct weft_systemd_socket *sockets))
{
	struct weft_systemd_socket sockets[3] = { { .fd = 77 } };
	pid_t child = fork();
	int status;

	if (child == 0) {
		set_pid("LISTEN_PID", getpid());
		_exit(fn(sockets));
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}

static int find_three(struct weft_systemd_socket *sockets)
{
	pass_sockets(3);
	if (weft_systemd_sockets(sockets, 3) != 3)
		return 1;
	for (int fd = 3; fd < 6; fd++)
		if (sockets[fd - 3].fd != fd ||
		    fcntl(fd, F_GETFD) != FD_CLOEXEC)
			return 2;
	if (strcmp(sockets[0].name, "web") != 0 ||
	    strcmp(sockets[1].name, "connection") != 0 ||
	    strcmp(sockets[2].name, "unknown") != 0)
		return 3;
	/* Once more, and without names. */
	unsetenv("LISTEN_FDNAMES");
	return weft_systemd_sockets(sockets, 3) != 3 ||
	       strcmp(sockets[0].name, "unknown") != 0;
}

START_TEST(sockets_that_are_passed_are_found)
{
	set("LISTEN_FDS", "3");
	set("LISTEN_FDNAMES", "web:connection");
	in_child(find_three);
}
END_TEST

static int find_too_few(struct weft_systemd_socket *sockets)
{
	pass_sockets(1);
	close(4);
	if (weft_systemd_sockets(sockets, 2) != -EBADF)
		return 1;
	if (weft_systemd_sockets(sockets, 1) != -EMSGSIZE)
		return 2;
	return sockets[0].fd == 77 && fcntl(3, F_GETFD) == 0 ? 0 : 3;
}

START_TEST(sockets_of_another_process_are_none)
{
	struct weft_systemd_socket sockets[1];

	set("LISTEN_PID", NULL);
	set("LISTEN_FDS", "1");
	ck_assert_int_eq(weft_systemd_sockets(sockets, 1), 0);
	set_pid("LISTEN_PID", getpid() + 1);
	ck_assert_int_eq(weft_systemd_sockets(sockets, 1), 0);
	set_pid("LISTEN_PID", getpid());
	set("LISTEN_FDS", NULL);
	ck_assert_int_eq(weft_systemd_sockets(sockets, 1), 0);
	set("LISTEN_FDS", "0");
	ck_assert_int_eq(weft_systemd_sockets(NULL, 0), 0);
}
END_TEST

static const char *const no_numbers[] = { "", "x", "-1", "1x", " 1",
					  "99999999999999999999" };

START_TEST(wrong_variables_store_nothing)
{
	struct weft_systemd_socket sockets[2] = { { .fd = 77 } };

	set_pid("LISTEN_PID", getpid());
	for (size_t i = 0; i < sizeof(no_numbers) / sizeof(char *); i++) {
		set("LISTEN_FDS", no_numbers[i]);
		ck_assert_int_eq(weft_systemd_sockets(sockets, 2), -EINVAL);
	}
	set("LISTEN_FDS", "2");
	in_child(find_too_few);
	set("LISTEN_PID", "me");
	ck_assert_int_eq(weft_systemd_sockets(sockets, 2), -EINVAL);
	ck_assert_int_eq(sockets[0].fd, 77);
}
END_TEST

/* ---- Messages ------------------------------------------------------------ */

/* A manager that listens at an address, which $NOTIFY_SOCKET names. */
static int manager_new(bool abstract)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t bytes;

	ck_assert_int_ge(fd, 0);
	snprintf(un.sun_path, sizeof(un.sun_path), "%sweft-notify-%d",
		 abstract ? "@" : "/tmp/", (int)getpid());
	set("NOTIFY_SOCKET", un.sun_path);
	bytes = strlen(un.sun_path);
	if (abstract)
		un.sun_path[0] = '\0';
	else
		unlink(un.sun_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&un,
			      (socklen_t)(offsetof(struct sockaddr_un,
						   sun_path) +
					  bytes)),
			 0);
	return fd;
}

START_TEST(messages_reach_the_manager)
{
	char got[100];

	for (int abstract = 0; abstract < 2; abstract++) {
		int fd = manager_new(abstract), before = fds_open();

		ck_assert_int_eq(weft_systemd_notify("READY=1\nSTATUS=up"), 1);
		ck_assert_int_eq(fds_open(), before);
		ck_assert_int_eq(recv(fd, got, sizeof(got), 0), 17);
		ck_assert_mem_eq(got, "READY=1\nSTATUS=up", 17);
		close(fd);
		/* The manager is gone. */
		ck_assert_int_eq(weft_systemd_notify("STOPPING=1"),
				 -ECONNREFUSED);
		if (!abstract)
			unlink(getenv("NOTIFY_SOCKET"));
	}
	set("NOTIFY_SOCKET", "/nowhere/at/all");
	ck_assert_int_eq(weft_systemd_notify("READY=1"), -ENOENT);
}
END_TEST

START_TEST(without_a_manager_nothing_is_sent)
{
	set("NOTIFY_SOCKET", NULL);
	ck_assert_int_eq(weft_systemd_notify("READY=1"), 0);
	set("NOTIFY_SOCKET", "");
	ck_assert_int_eq(weft_systemd_notify("READY=1"), 0);
}
END_TEST

START_TEST(wrong_messages_and_addresses_are_einval)
{
	char far[200];

	ck_assert_int_eq(weft_systemd_notify(NULL), -EINVAL);
	ck_assert_int_eq(weft_systemd_notify(""), -EINVAL);
	set("NOTIFY_SOCKET", "vsock:2:1234");
	ck_assert_int_eq(weft_systemd_notify("READY=1"), -EINVAL);
	set("NOTIFY_SOCKET", "@");
	ck_assert_int_eq(weft_systemd_notify("READY=1"), -EINVAL);
	memset(far, '/', sizeof(far));
	far[sizeof(far) - 1] = '\0';
	set("NOTIFY_SOCKET", far);
	ck_assert_int_eq(weft_systemd_notify("READY=1"), -EINVAL);
}
END_TEST

START_TEST(slow_manager_is_eagain)
{
	int fd = manager_new(true), r;

	do
		r = weft_systemd_notify("WATCHDOG=1");
	while (r == 1);
	ck_assert_int_eq(r, -EAGAIN);
	close(fd);
}
END_TEST

START_TEST(watchdog_tells_its_interval)
{
	weft_nsec ns = 77;

	set("WATCHDOG_USEC", NULL);
	ck_assert_int_eq(weft_systemd_watchdog(&ns), 0);
	set("WATCHDOG_USEC", "30000000");
	set_pid("WATCHDOG_PID", getpid() + 1);
	ck_assert_int_eq(weft_systemd_watchdog(&ns), 0);
	ck_assert_int_eq(weft_systemd_watchdog(NULL), -EINVAL);
	set("WATCHDOG_PID", "x");
	ck_assert_int_eq(weft_systemd_watchdog(&ns), -EINVAL);
	for (size_t i = 0; i < sizeof(no_numbers) / sizeof(char *); i++) {
		set("WATCHDOG_USEC", no_numbers[i]);
		ck_assert_int_eq(weft_systemd_watchdog(&ns), -EINVAL);
	}
	set("WATCHDOG_USEC", "0");
	ck_assert_int_eq(weft_systemd_watchdog(&ns), -EINVAL);
	ck_assert_uint_eq(ns, 77);
	set("WATCHDOG_USEC", "30000000");
	set_pid("WATCHDOG_PID", getpid());
	ck_assert_int_eq(weft_systemd_watchdog(&ns), 1);
	ck_assert_uint_eq(ns, WEFT_SEC(30));
	set("WATCHDOG_PID", NULL);
	ck_assert_int_eq(weft_systemd_watchdog(&ns), 1);
}
END_TEST

/* ---- Groups of listeners ------------------------------------------------- */

enum { LISTENERS = 4, CLIENTS = 64 };

struct group {
	int fds[LISTENERS];
	weft__atomic(int) taken[LISTENERS];
};

struct taker {
	struct group *group;
	int number;
};

static int64_t take_connections(void *arg)
{
	struct taker *taker = arg;
	struct group *group = taker->group;
	int fd;

	while ((fd = weft_accept(group->fds[taker->number], NULL)) >= 0) {
		weft__add(&group->taken[taker->number], 1, relaxed);
		EXPECT(weft_close(fd) == 0);
	}
	return 0;
}

static int taken_sum(struct group *group)
{
	int sum = 0;

	for (int i = 0; i < LISTENERS; i++)
		sum += weft__load(&group->taken[i], relaxed);
	return sum;
}

/* Each connection has a port of its own, by which the kernel chooses. */
IO_TEST(group_shares_the_connections)
{
	struct group group = { .taken = { 0 } };
	char text[WEFT_ADDR_TEXT_BYTES], other[WEFT_ADDR_TEXT_BYTES];
	int busy = 0;

	EXPECT(weft_tcp_listen_group("127.0.0.1:0", NULL, group.fds,
				     LISTENERS) == 0);
	weft_local_addr_text(group.fds[0], text);
	for (int i = 1; i < LISTENERS; i++)
		EXPECT(strcmp(text, weft_local_addr_text(group.fds[i],
							 other)) == 0);
	WEFT_SUPERVISE (scope) {
		for (int i = 0; i < LISTENERS; i++) {
			struct taker taker = { &group, i };

			EXPECT(WEFT_GO(scope, take_connections, taker) == 0);
		}
		for (int i = 0; i < CLIENTS; i++) {
			int fd = weft_tcp_connect(text, NULL);

			EXPECT(fd >= 0 && weft_close(fd) == 0);
		}
		wait_until(taken_sum(&group) == CLIENTS);
		weft_scope_cancel(scope);
	}
	for (int i = 0; i < LISTENERS; i++) {
		busy += weft__load(&group.taken[i], relaxed) > 0;
		EXPECT(weft_close(group.fds[i]) == 0);
	}
	/* All in one queue: once in 4^63. */
	EXPECT(busy > 1);
	return 0;
}

START_TEST(group_that_fails_leaves_nothing_open)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_socket_opts bad = { .size = 0 };
	int alone = tcp_listener(text), fds[LISTENERS], before = fds_open();
	struct rlimit limit;

	ck_assert_int_eq(weft_tcp_listen_group(text, NULL, fds, LISTENERS),
			 -EADDRINUSE);
	ck_assert_int_eq(weft_tcp_listen_group("x", NULL, fds, 1), -EINVAL);
	ck_assert_int_eq(weft_tcp_listen_group("127.0.0.1:0", &bad, fds, 1),
			 -EINVAL);
	ck_assert_int_eq(weft_tcp_listen_group("127.0.0.1:0", NULL, fds, 0),
			 -EINVAL);
	ck_assert_int_eq(weft_tcp_listen_group("/run/a", NULL, fds, 1),
			 -EAFNOSUPPORT);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = (rlim_t)dup(alone) + 2;
	ck_assert_int_eq(close((int)limit.rlim_cur - 2), 0);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(weft_tcp_listen_group("127.0.0.1:0", NULL, fds,
					       LISTENERS),
			 -EMFILE);
	ck_assert_int_eq(fds_open(), before);
	close(alone);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/systemd");
	TCase *manager = tcase_create("manager");
	TCase *groups = tcase_create("groups");

	tcase_add_test(manager, sockets_that_are_passed_are_found);
	tcase_add_test(manager, sockets_of_another_process_are_none);
	tcase_add_test(manager, wrong_variables_store_nothing);
	tcase_add_test(manager, messages_reach_the_manager);
	tcase_add_test(manager, without_a_manager_nothing_is_sent);
	tcase_add_test(manager, wrong_messages_and_addresses_are_einval);
	tcase_add_test(manager, slow_manager_is_eagain);
	tcase_add_test(manager, watchdog_tells_its_interval);
	io_add_test(groups, group_shares_the_connections);
	tcase_add_test(groups, group_that_fails_leaves_nothing_open);
	suite_add_tcase(suite, manager);
	suite_add_tcase(suite, groups);
	return io_tests_run(suite);
}
