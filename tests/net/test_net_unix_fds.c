/* SPDX-License-Identifier: MIT */
/*
 * Suite net/unix fds: descriptors that are passed over Unix sockets, and the
 * credentials of peers.
 */
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

static void pair_of(int type, int fds[2])
{
	EXPECT(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) == 0);
}

/* Both names are those of one file. */
static bool is_same_file(int a, int b)
{
	struct stat one, two;

	return fstat(a, &one) == 0 && fstat(b, &two) == 0 &&
	       one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

static void close_all(const int *fds, int count)
{
	for (int i = 0; i < count; i++)
		EXPECT(weft_close(fds[i]) == 0);
}

/* ---- Passing ------------------------------------------------------------- */

static int64_t pass_some(void *arg)
{
	static const int counts[] = { 0, 1, 2, 7 };
	int type = *(int *)arg, pair[2], files[2], sent[7], got[7], count;
	char buf[16] = "with them";

	pair_of(type, pair);
	EXPECT(pipe2(files, O_CLOEXEC) == 0);
	for (int i = 0; i < 7; i++)
		sent[i] = files[i % 2];
	for (int i = 0; i < 4; i++) {
		count = -1;
		EXPECT(weft_unix_send_fds(pair[0], buf, 10, sent, counts[i]) ==
		       10);
		memset(buf, 0, sizeof(buf));
		EXPECT(weft_unix_recv_fds(pair[1], buf, sizeof(buf), got, 7,
					  &count) == 10);
		EXPECT(count == counts[i] && strcmp(buf, "with them") == 0);
		for (int k = 0; k < count; k++) {
			EXPECT(is_same_file(got[k], files[k % 2]));
			EXPECT(fcntl(got[k], F_GETFD) == FD_CLOEXEC);
		}
		close_all(got, count);
	}
	close_both(files);
	close_both(pair);
	return 0;
}

START_TEST(descriptors_come_with_their_bytes)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };

	io_run(pass_some, &(int){ types[_i / 2] }, _i % 2 ? 2 : 1);
}
END_TEST

static int64_t send_later(void *arg)
{
	int *fds = *(int **)arg;

	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	EXPECT(weft_unix_send_fds(fds[0], "x", 1, &fds[0], 1) == 1);
	return 0;
}

IO_TEST(receiver_waits_for_descriptors)
{
	int pair[2], *both = pair, got, count;
	char byte;

	socket_pair(pair);
	WEFT_SCOPE (scope, NULL) {
		EXPECT(WEFT_GO(scope, send_later, both) == 0);
		EXPECT(weft_unix_recv_fds(pair[1], &byte, 1, &got, 1, &count) ==
		       1);
	}
	EXPECT(count == 1 && is_same_file(got, pair[0]));
	EXPECT(weft_close(got) == 0 && weft_close(pair[0]) == 0);
	count = 7;
	EXPECT(weft_unix_recv_fds(pair[1], &byte, 1, &got, 1, &count) == 0);
	EXPECT(count == 0);
	EXPECT(weft_close(pair[1]) == 0);
	return 0;
}

IO_TEST(as_many_are_passed_as_the_kernel_takes)
{
	static int sent[WEFT_UNIX_FDS_MAX + 1], got[WEFT_UNIX_FDS_MAX];
	int pair[2], count = 0;
	char byte = 'x';
	struct rlimit limit;

	socket_pair(pair);
	for (int i = 0; i <= WEFT_UNIX_FDS_MAX; i++)
		sent[i] = pair[0];
	EXPECT(weft_unix_send_fds(pair[0], &byte, 1, sent,
				  WEFT_UNIX_FDS_MAX + 1) == -EINVAL);
	EXPECT(weft_unix_send_fds(pair[0], &byte, 1, sent, WEFT_UNIX_FDS_MAX) ==
	       1);
	EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	if (limit.rlim_cur >= WEFT_UNIX_FDS_MAX + 100) {
		EXPECT(weft_unix_recv_fds(pair[1], &byte, 1, got,
					  WEFT_UNIX_FDS_MAX, &count) == 1);
		EXPECT(count == WEFT_UNIX_FDS_MAX);
		close_all(got, count);
	}
	close_both(pair);
	return 0;
}

/* ---- Refusals ------------------------------------------------------------ */

/* A peer may send more than a program expects. */
IO_TEST(surplus_descriptors_are_closed)
{
	int pair[2], got[2] = { -7, -7 }, count = 9, before;
	char byte = 'x';

	socket_pair(pair);
	before = fds_open();
	for (int room = 0; room < 3; room++) {
		int sent[3] = { pair[0], pair[1], pair[0] };

		EXPECT(weft_unix_send_fds(pair[0], &byte, 1, sent, 3) == 1);
		EXPECT(weft_unix_recv_fds(pair[1], &byte, 1, room ? got : NULL,
					  room, &count) == -EMSGSIZE);
		EXPECT(count == 9 && got[0] == -7 && got[1] == -7);
	}
	EXPECT(fds_open() <= before);
	close_both(pair);
	return 0;
}

/* Older headers do not name it: Linux 6.5. */
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif

static bool kernel_passes_pidfds(void)
{
	int pair[2], on = 1, r;

	pair_of(SOCK_STREAM, pair);
	r = setsockopt(pair[0], SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on));
	close(pair[0]);
	close(pair[1]);
	return r == 0;
}

/* The owner of the socket may have asked for the sender's. */
IO_TEST(descriptor_of_a_process_is_closed)
{
	int pair[2], got[2], count = 9, on = 1, before;
	char byte = 'x';

	socket_pair(pair);
	EXPECT(setsockopt(pair[1], SOL_SOCKET, SO_PASSPIDFD, &on, sizeof(on)) ==
	       0);
	before = fds_open();
	for (int fds = 0; fds < 3; fds++) {
		EXPECT(weft_unix_send_fds(pair[0], &byte, 1, pair, fds) == 1);
		EXPECT(weft_unix_recv_fds(pair[1], &byte, 1, got, 2, &count) ==
		       1);
		EXPECT(count == fds);
		for (int i = 0; i < fds; i++)
			EXPECT(is_same_file(got[i], pair[i]));
		close_all(got, count);
	}
	EXPECT(weft_unix_send_fds(pair[0], &byte, 1, pair, 2) == 1);
	EXPECT(weft_unix_recv_fds(pair[1], &byte, 1, got, 1, &count) ==
	       -EMSGSIZE);
	EXPECT(fds_open() <= before);
	close_both(pair);
	return 0;
}

#ifndef WEFT_VALGRIND /* Valgrind keeps limits to itself */
/* The kernel cuts the list off then, and says so. */
IO_TEST(full_table_leaves_none_open)
{
	int pair[2], sent[3], got[3], count = 9, before, next;
	struct rlimit old;
	char byte = 'x';

	socket_pair(pair);
	for (int i = 0; i < 3; i++)
		sent[i] = pair[0];
	before = fds_open();
	EXPECT(weft_unix_send_fds(pair[0], &byte, 1, sent, 3) == 1);
	next = fcntl(pair[0], F_DUPFD_CLOEXEC, 0);
	EXPECT(next >= 0 && close(next) == 0);
	old = limit_set(RLIMIT_NOFILE, (rlim_t)next + 1);
	EXPECT(weft_unix_recv_fds(pair[1], &byte, 1, got, 3, &count) ==
	       -EMFILE);
	limit_reset(RLIMIT_NOFILE, old);
	EXPECT(count == 9);
	EXPECT(fds_open() <= before);
	close_both(pair);
	return 0;
}
#endif

IO_TEST(wrong_calls_are_refused)
{
	int pair[2], got[1], count, file;
	char byte = 'x';

	socket_pair(pair);
	EXPECT(weft_unix_send_fds(pair[0], &byte, 1, pair, -1) == -EINVAL);
	EXPECT(weft_unix_send_fds(pair[0], &byte, 1, NULL, 1) == -EINVAL);
	EXPECT(weft_unix_send_fds(pair[0], &byte, 0, pair, 1) == -EINVAL);
	EXPECT(weft_unix_send_fds(pair[0], &byte, 1, (int[]){ -1 }, 1) ==
	       -EBADF);
	EXPECT(weft_unix_send_fds(-1, &byte, 1, pair, 1) == -EBADF);
	EXPECT(weft_unix_recv_fds(pair[0], &byte, 1, got, -1, &count) ==
	       -EINVAL);
	EXPECT(weft_unix_recv_fds(pair[0], &byte, 1, NULL, 1, &count) ==
	       -EINVAL);
	EXPECT(weft_unix_recv_fds(pair[0], &byte, 1, got, 1, NULL) == -EINVAL);
	EXPECT(weft_unix_recv_fds(-1, &byte, 1, got, 1, &count) == -EBADF);
	file = memfd_create("file", MFD_CLOEXEC);
	EXPECT(weft_unix_send_fds(file, &byte, 1, pair, 1) == -ENOTSOCK);
	EXPECT(weft_unix_recv_fds(file, &byte, 1, got, 1, &count) == -ENOTSOCK);
	EXPECT(weft_close(file) == 0);
	close_both(pair);
	return 0;
}

START_TEST(calls_need_a_task)
{
	int got, count;
	char byte = 'x';

	ck_assert_int_eq(weft_unix_send_fds(0, &byte, 1, NULL, 0), -EPERM);
	ck_assert_int_eq(weft_unix_send_fds(0, &byte, 1, NULL, 1), -EPERM);
	ck_assert_int_eq(weft_unix_recv_fds(0, &byte, 1, &got, 1, &count),
			 -EPERM);
}
END_TEST

/* ---- Peers --------------------------------------------------------------- */

START_TEST(peer_is_known)
{
	struct weft_cred cred, none;
	int pair[2], other;

	pair_of(SOCK_STREAM, pair);
	ck_assert_int_eq(weft_peer_cred(pair[0], &cred), 0);
	ck_assert_int_eq(cred.pid, getpid());
	ck_assert_uint_eq(cred.uid, geteuid());
	ck_assert_uint_eq(cred.gid, getegid());
	ck_assert_int_eq(weft_peer_cred(pair[0], NULL), -EINVAL);
	memset(&none, 0x5a, sizeof(none));
	cred = none;
	other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(weft_peer_cred(other, &cred), -ENOTCONN);
	close(other);
	other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(weft_peer_cred(other, &cred), -EAFNOSUPPORT);
	close(other);
	other = memfd_create("file", MFD_CLOEXEC);
	ck_assert_int_eq(weft_peer_cred(other, &cred), -ENOTSOCK);
	close(other);
	ck_assert_int_eq(weft_peer_cred(-1, &cred), -EBADF);
	ck_assert_mem_eq(&cred, &none, sizeof(none));
	close(pair[0]);
	close(pair[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/unix fds");
	TCase *tc = tcase_create("descriptors");

	tcase_add_loop_test(tc, descriptors_come_with_their_bytes, 0, 6);
	io_add_test(tc, receiver_waits_for_descriptors);
	io_add_test(tc, as_many_are_passed_as_the_kernel_takes);
	io_add_test(tc, surplus_descriptors_are_closed);
	if (test_needs(kernel_passes_pidfds(),
		       "descriptor_of_a_process_is_closed",
		       "SO_PASSPIDFD (Linux 6.5)"))
		io_add_test(tc, descriptor_of_a_process_is_closed);
#ifndef WEFT_VALGRIND
	io_add_test(tc, full_table_leaves_none_open);
#endif
	io_add_test(tc, wrong_calls_are_refused);
	tcase_add_test(tc, calls_need_a_task);
	tcase_add_test(tc, peer_is_known);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
