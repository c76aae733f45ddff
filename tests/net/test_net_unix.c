/* SPDX-License-Identifier: MIT */
/*
 * Unix stream sockets: paths, abstract names, descriptors in messages.
 *
 * Names have the number of the process in them.  A test listens at a name,
 * connects to it, and sends bytes or a descriptor across; others find a path
 * that is in use or a backlog that is full.
 */
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/support/child_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

static void name(char text[64], const char *form)
{
	snprintf(text, 64, form, (int)getpid());
}

static void talk(const char *text)
{
	int listener = weft_unix_listen(text, NULL), client, server;
	struct weft_addr addr, expected;
	char buf[5];

	ck_assert_int_ge(listener, 0);
	ck_assert_int_eq(fcntl(listener, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(weft_addr_parse(text, &expected), 0);
	ck_assert_int_eq(weft_local_addr(listener, &addr), 0);
	ck_assert(weft_addr_equal(&addr, &expected));
	client = weft_unix_connect(text, NULL);
	ck_assert_int_ge(client, 0);
	ck_assert_int_eq(weft_peer_addr(client, &addr), 0);
	ck_assert(weft_addr_equal(&addr, &expected));
	/* The client has no name. */
	server = weft_accept(listener, &addr);
	ck_assert_int_ge(server, 0);
	ck_assert_int_eq(weft_addr_family(&addr), AF_UNIX);
	ck_assert_int_eq(weft_write(client, "hello", 5), 5);
	ck_assert_int_eq(weft_read_all(server, buf, 5, NULL), 0);
	ck_assert_mem_eq(buf, "hello", 5);
	close_both((int[]){ client, server });
	ck_assert_int_eq(weft_close(listener), 0);
}

IO_TEST(path_and_abstract_name_connect)
{
	char text[64];

	name(text, "unix:/tmp/weft-unix-%d");
	talk(text);
	unlink(text + 5);
	name(text, "/tmp/weft-unix-%d");
	talk(text);
	unlink(text);
	name(text, "unix:@weft-unix-%d");
	talk(text);
	return 0;
}

/* The path may be another server's: it is not removed. */
START_TEST(existing_path_is_in_use)
{
	char text[64], path[110];
	struct stat st;
	int fd;

	name(text, "/tmp/weft-unix-%d");
	fd = weft_unix_listen(text, NULL);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(weft_unix_listen(text, NULL), -EADDRINUSE);
	ck_assert_int_eq(stat(text, &st), 0);
	unlink(text);
	ck_assert_int_eq(weft_unix_listen("/no/such/dir/x", NULL), -ENOENT);
	ck_assert_int_eq(weft_unix_listen("127.0.0.1:80", NULL),
			 -EAFNOSUPPORT);
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[109] = 0;
	ck_assert_int_eq(weft_unix_listen(path, NULL), -ENAMETOOLONG);
	ck_assert_int_eq(weft_unix_listen("unix:", NULL), -EINVAL);
	ck_assert_int_eq(weft_unix_listen(NULL, NULL), -EINVAL);
}
END_TEST

static int64_t use_closed(void *arg)
{
	NEED(weft_unix_listen(arg, NULL) == -EACCES);
	NEED(weft_unix_connect(arg, NULL) == -EACCES);
	return 0;
}

static int64_t use_closed_unprivileged(void *arg)
{
	NEED(become_unprivileged());
	return weft_run(use_closed, arg, NULL);
}

START_TEST(path_in_a_closed_directory_is_refused)
{
	char dir[] = "/tmp/weft-test-XXXXXX", path[64];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	ck_assert_int_eq(chmod(dir, 0), 0);
	child_run(use_closed_unprivileged, path);
	ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

IO_TEST(refusals_leave_nothing_open)
{
	int before = fds_open(), fd;
	char text[64];

	ck_assert_int_eq(weft_unix_connect("/no/such/socket", NULL), -ENOENT);
	ck_assert_int_eq(weft_unix_connect("[::1]:80", NULL), -EAFNOSUPPORT);
	name(text, "/tmp/weft-unix-%d");
	fd = open(text, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(weft_unix_connect(text, NULL), -ECONNREFUSED);
	unlink(text);
	fd = weft_unix_listen(text, NULL);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(weft_unix_connect(text, NULL), -ECONNREFUSED);
	unlink(text);
	ck_assert_int_le(fds_open(), before);
	return 0;
}

static int64_t accept_late(void *arg)
{
	int listener = *(int *)arg;

	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(weft_sleep(WEFT_MS(5)), 0);
		ck_assert_int_eq(weft_close(weft_accept(listener, NULL)), 0);
	}
	return 0;
}

/* The sockets are blocking and non-blocking ones. */
IO_TEST(full_backlog_is_waited_for)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	struct weft_addr addr;
	char text[64];
	int listener, clients[4];

	opts.backlog = 1;
	name(text, "unix:@weft-unix-%d");
	ck_assert_int_eq(weft_addr_parse(text, &addr), 0);
	listener = weft_unix_listen(text, &opts);
	ck_assert_int_ge(listener, 0);
	WEFT_SUPERVISE(scope) {
		ck_assert_int_eq(WEFT_GO(scope, accept_late, listener), 0);
		for (int i = 0; i < 4; i++) {
			int type = SOCK_STREAM | SOCK_CLOEXEC;

			clients[i] = socket(AF_UNIX,
					    i % 2 ? type | SOCK_NONBLOCK : type,
					    0);
			ck_assert_int_eq(weft_connect(clients[i], &addr), 0);
		}
	}
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(weft_close(clients[i]), 0);
	ck_assert_int_eq(weft_close(listener), 0);
	return 0;
}

/* There are four, and io_uring would return eight. */
IO_TEST(look_shows_no_byte_twice)
{
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[8];
	int fds[2];

	socket_pair(fds);
	ck_assert_int_eq(weft_write(fds[0], "abcd", 4), 4);
	ck_assert_int_eq(weft_recv(fds[1], buf, 8, MSG_PEEK | MSG_WAITALL), 4);
	iov = (struct iovec){ buf, 8 };
	ck_assert_int_eq(weft_recvmsg(fds[1], &msg, MSG_PEEK | MSG_WAITALL), 4);
	ck_assert_int_eq(weft_recv(fds[1], buf, 4, MSG_WAITALL), 4);
	close_both(fds);
	return 0;
}

/* Descriptors that arrive in a message are not inherited by other programs. */
IO_TEST(descriptors_in_messages_are_closed_on_exec)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *cmsg;
	int fds[2], sent, passed;

	socket_pair(fds);
	for (int i = 0; i < 2; i++) {
		sent = dup(fds[0]);
		ck_assert_int_ge(sent, 0);
		memset(&control, 0, sizeof(control));
		msg.msg_controllen = sizeof(control.bytes);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &sent, sizeof(int));
		ck_assert_int_eq(weft_sendmsg(fds[0], &msg, 0), 1);
		memset(&control, 0, sizeof(control));
		ck_assert_int_eq(weft_recvmsg(fds[1], &msg,
					      i ? MSG_DONTWAIT : 0),
				 1);
		cmsg = CMSG_FIRSTHDR(&msg);
		ck_assert_ptr_nonnull(cmsg);
		memcpy(&passed, CMSG_DATA(cmsg), sizeof(int));
		ck_assert_int_eq(fcntl(passed, F_GETFD), FD_CLOEXEC);
		close_both((int[]){ sent, passed });
	}
	close_both(fds);
	return 0;
}

/* C libraries differ in what is padding, and a sender sets only the fields. */
IO_TEST(padding_in_messages_may_have_any_value)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct cmsghdr *cmsg;
	struct msghdr msg;
	int fds[2], passed;

	socket_pair(fds);
	for (int i = 0; i < 4; i++) {
		memset(&msg, 0xff, sizeof(msg));
		memset(&control, 0xff, sizeof(control));
		msg.msg_name = NULL;
		msg.msg_namelen = 0;
		msg.msg_iov = &iov;
		msg.msg_iovlen = 1;
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		if (i >= 2) {
			ck_assert_int_eq(weft_recvmsg(fds[1], &msg, 0), 1);
			cmsg = CMSG_FIRSTHDR(&msg);
			ck_assert_ptr_nonnull(cmsg);
			memcpy(&passed, CMSG_DATA(cmsg), sizeof(int));
			ck_assert_int_eq(weft_close(passed), 0);
			continue;
		}
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fds[0], sizeof(int));
		ck_assert_int_eq(weft_sendmsg(fds[0], &msg,
					      i ? MSG_DONTWAIT : 0),
				 1);
	}
	close_both(fds);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("net/unix");
	TCase *use = tcase_create("use");

	io_add_test(use, path_and_abstract_name_connect);
	tcase_add_test(use, existing_path_is_in_use);
	if (test_needs(test_can(become_unprivileged),
		       "path_in_a_closed_directory_is_refused",
		       NEEDS_ANOTHER_USER))
		tcase_add_test(use, path_in_a_closed_directory_is_refused);
	io_add_test(use, refusals_leave_nothing_open);
	io_add_test(use, full_backlog_is_waited_for);
	io_add_test(use, look_shows_no_byte_twice);
	io_add_test(use, descriptors_in_messages_are_closed_on_exec);
	io_add_test(use, padding_in_messages_may_have_any_value);
	suite_add_tcase(suite, use);
	return io_tests_run(suite);
}
