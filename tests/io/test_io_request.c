/* SPDX-License-Identifier: MIT */
/*
 * Requests: each is encoded as liburing would have it, and those that need no
 * wait do the same as a system call.
 */
#include "io/ring/uring/uring.h"

#include <linux/openat2.h>
#include <poll.h>
#include <sys/socket.h>

#include "io/os/statx.h"
#include "tests/support/io_kit.h"

enum { FD = 7, GROUP = 1, USER_DATA = 99 };

/* Addresses that nothing is read from. */
static char buffer[16];
static struct iovec iov[2];
static struct msghdr msg;
static struct sockaddr_storage address;
static socklen_t room;
static struct open_how how;
static struct statx status;

struct pair {
	struct weft__request request;
	struct io_uring_sqe sqe; /* by liburing */
};

/* ---- Encoding ----------------------------------------------------------- */

static unsigned pairs_of_files(struct pair *pair)
{
	struct pair *first = pair;

	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_READ, .fd = FD, .memory = buffer,
		.bytes = 16, .offset = 4096,
	};
	io_uring_prep_read(&pair++->sqe, FD, buffer, 16, 4096);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_WRITE, .fd = FD, .memory = buffer,
		.bytes = 16, .offset = -1, .how = 0x100,
	};
	io_uring_prep_write(&pair->sqe, FD, buffer, 16, (uint64_t)-1);
	pair++->sqe.rw_flags = 0x100;
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_READV, .fd = FD, .memory = iov,
		.count = 2, .offset = 1,
	};
	io_uring_prep_readv(&pair++->sqe, FD, iov, 2, 1);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_WRITEV, .fd = FD, .memory = iov,
		.count = 2, .offset = 1,
	};
	io_uring_prep_writev(&pair++->sqe, FD, iov, 2, 1);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_CLOSE, .fd = FD,
		.flags = WEFT__REQUEST_BLOCKS,
	};
	io_uring_prep_close(&pair->sqe, FD);
	pair++->sqe.flags |= IOSQE_ASYNC;
	return (unsigned)(pair - first);
}

static unsigned pairs_of_paths(struct pair *pair)
{
	struct pair *first = pair;

	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_OPENAT, .fd = FD, .memory = buffer,
		.how = O_RDWR | O_CREAT, .mode = 0640,
	};
	io_uring_prep_openat(&pair++->sqe, FD, buffer, O_RDWR | O_CREAT, 0640);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_OPENAT2, .fd = FD, .memory = buffer,
		.open_how = &how, .bytes = sizeof(how),
	};
	io_uring_prep_openat2(&pair++->sqe, FD, buffer, &how);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_STATX, .fd = FD, .memory = buffer,
		.how = AT_EMPTY_PATH, .mask = STATX_SIZE, .status = &status,
	};
	io_uring_prep_statx(&pair++->sqe, FD, buffer, AT_EMPTY_PATH,
			    STATX_SIZE, &status);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_UNLINKAT, .fd = FD, .memory = buffer,
		.how = AT_REMOVEDIR,
	};
	io_uring_prep_unlinkat(&pair++->sqe, FD, buffer, AT_REMOVEDIR);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_MKDIRAT, .fd = FD, .memory = buffer,
		.mode = 0750,
	};
	io_uring_prep_mkdirat(&pair++->sqe, FD, buffer, 0750);
	return (unsigned)(pair - first);
}

static unsigned pairs_of_names(struct pair *pair)
{
	struct pair *first = pair;

	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_RENAMEAT, .fd = FD, .memory = buffer,
		.to_fd = AT_FDCWD, .to = buffer + 1, .how = 1,
	};
	io_uring_prep_renameat(&pair++->sqe, FD, buffer, AT_FDCWD, buffer + 1,
			       1);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_LINKAT, .fd = FD, .memory = buffer,
		.to_fd = AT_FDCWD, .to = buffer + 1, .how = AT_SYMLINK_FOLLOW,
	};
	io_uring_prep_linkat(&pair++->sqe, FD, buffer, AT_FDCWD, buffer + 1,
			     AT_SYMLINK_FOLLOW);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_SYMLINKAT, .fd = FD, .memory = buffer,
		.to = buffer + 1,
	};
	io_uring_prep_symlinkat(&pair++->sqe, buffer, FD, buffer + 1);
	return (unsigned)(pair - first);
}

static unsigned pairs_of_transfers(struct pair *pair)
{
	struct pair *first = pair;

	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_RECV, .fd = FD, .memory = buffer,
		.bytes = 16, .how = MSG_PEEK,
		.flags = WEFT__REQUEST_POLL_FIRST,
	};
	io_uring_prep_recv(&pair->sqe, FD, buffer, 16, MSG_PEEK);
	pair++->sqe.ioprio |= IORING_RECVSEND_POLL_FIRST;
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_RECV, .fd = FD, .group = GROUP,
		.flags = WEFT__REQUEST_BUFFERS | WEFT__REQUEST_MULTISHOT |
			 WEFT__REQUEST_FIXED_FILE,
	};
	io_uring_prep_recv_multishot(&pair->sqe, FD, NULL, 0, 0);
	pair->sqe.flags |= IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
	pair++->sqe.buf_group = GROUP;
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_SEND, .fd = FD, .memory = buffer,
		.bytes = 16, .how = MSG_NOSIGNAL,
	};
	io_uring_prep_send(&pair++->sqe, FD, buffer, 16, MSG_NOSIGNAL);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_RECVMSG, .fd = FD, .memory = &msg,
		.count = 1, .how = MSG_ERRQUEUE,
	};
	io_uring_prep_recvmsg(&pair++->sqe, FD, &msg, MSG_ERRQUEUE);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_SENDMSG, .fd = FD, .memory = &msg,
		.count = 1, .how = MSG_NOSIGNAL,
	};
	io_uring_prep_sendmsg(&pair++->sqe, FD, &msg, MSG_NOSIGNAL);
	return (unsigned)(pair - first);
}

static unsigned pairs_of_waits(struct pair *pair)
{
	struct pair *first = pair;

	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_ACCEPT, .fd = FD, .how = SOCK_CLOEXEC,
	};
	io_uring_prep_accept(&pair++->sqe, FD, NULL, NULL, SOCK_CLOEXEC);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_ACCEPT, .fd = FD, .how = SOCK_CLOEXEC,
		.memory = &address, .address_room = &room,
		.flags = WEFT__REQUEST_POLL_FIRST,
	};
	io_uring_prep_accept(&pair->sqe, FD, (void *)&address, &room,
			     SOCK_CLOEXEC);
	pair++->sqe.ioprio |= IORING_ACCEPT_POLL_FIRST;
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_ACCEPT, .fd = FD, .how = SOCK_CLOEXEC,
		.flags = WEFT__REQUEST_MULTISHOT,
	};
	io_uring_prep_multishot_accept(&pair++->sqe, FD, NULL, NULL,
				       SOCK_CLOEXEC);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_CONNECT, .fd = FD, .memory = &address,
		.address_bytes = 28,
	};
	io_uring_prep_connect(&pair++->sqe, FD, (void *)&address, 28);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_POLL, .fd = FD, .how = POLLIN | POLLPRI,
	};
	io_uring_prep_poll_add(&pair++->sqe, FD, POLLIN | POLLPRI);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_POLL, .fd = FD, .how = POLLIN,
		.flags = WEFT__REQUEST_MULTISHOT,
	};
	io_uring_prep_poll_multishot(&pair++->sqe, FD, POLLIN);
	pair->request = (struct weft__request){
		.opcode = WEFT__OPCODE_MESSAGE, .fd = FD, .message = 12345,
		.flags = WEFT__REQUEST_SILENT,
	};
	io_uring_prep_msg_ring(&pair->sqe, FD, 0, 12345, 0);
	pair++->sqe.flags |= IOSQE_CQE_SKIP_SUCCESS;
	return (unsigned)(pair - first);
}

START_TEST(each_request_is_encoded_as_liburing_would)
{
	struct pair pairs[WEFT__OPCODES + 8];
	bool seen[WEFT__OPCODES] = { [WEFT__OPCODE_NONE] = true };
	unsigned count = 0;

	memset(pairs, 0, sizeof(pairs));
	count += pairs_of_files(pairs + count);
	count += pairs_of_paths(pairs + count);
	count += pairs_of_names(pairs + count);
	count += pairs_of_transfers(pairs + count);
	count += pairs_of_waits(pairs + count);
	for (unsigned i = 0; i < count; i++) {
		struct io_uring_sqe sqe;

		memset(&sqe, 0xff, sizeof(sqe));
		pairs[i].sqe.user_data = USER_DATA;
		weft__uring_encode(&pairs[i].request, USER_DATA, &sqe);
		ck_assert_msg(memcmp(&sqe, &pairs[i].sqe, sizeof(sqe)) == 0,
			      "opcode %d", pairs[i].request.opcode);
		seen[pairs[i].request.opcode] = true;
	}
	for (unsigned i = 0; i < WEFT__OPCODES; i++)
		ck_assert_msg(seen[i], "opcode %u is not tried", i);
}
END_TEST

/* ---- System calls ------------------------------------------------------- */

static ssize_t call(enum weft__opcode opcode, int fd, void *memory,
		    uint32_t bytes, off_t offset)
{
	return weft__request_call(&(struct weft__request){
		.opcode = (uint8_t)opcode, .fd = fd, .memory = memory,
		.bytes = bytes, .offset = offset,
	});
}

START_TEST(calls_on_sockets_do_not_wait)
{
	struct iovec part = { buffer, 3 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	ck_assert_int_eq(call(WEFT__OPCODE_RECV, fds[0], buffer, 4, 0),
			 -EAGAIN);
	ck_assert_int_eq(call(WEFT__OPCODE_RECVMSG, fds[0], &message, 1, 0),
			 -EAGAIN);
	ck_assert_int_eq(call(WEFT__OPCODE_SEND, fds[1], "abcdef", 6, 0), 6);
	ck_assert_int_eq(call(WEFT__OPCODE_RECV, fds[0], buffer, 2, 0), 2);
	ck_assert_int_eq(call(WEFT__OPCODE_RECVMSG, fds[0], &message, 1, 0),
			 3);
	ck_assert_mem_eq(buffer, "cde", 3);
	ck_assert_int_eq(call(WEFT__OPCODE_SENDMSG, fds[1], &message, 1, 0),
			 3);
	ck_assert_int_eq(call(WEFT__OPCODE_RECV, fds[0], buffer, 9, 0), 4);
	ck_assert_mem_eq(buffer, "fcde", 4);
	close(fds[0]);
	/* Without SIGPIPE. */
	ck_assert_int_eq(call(WEFT__OPCODE_SEND, fds[1], buffer, 1, 0),
			 -EPIPE);
	close(fds[1]);
}
END_TEST

/* The file system may be unable to tell whether a call would wait. */
static void transferred(ssize_t r, ssize_t bytes)
{
	ck_assert_msg(r == bytes || r == -EAGAIN || r == -EOPNOTSUPP,
		      "%zd instead of %zd", r, bytes);
}

START_TEST(calls_on_files_are_made_at_the_offset)
{
	struct iovec parts[2] = { { buffer, 1 }, { buffer + 1, 2 } };
	FILE *file = tmpfile();
	int fd;

	ck_assert_ptr_nonnull(file);
	fd = fileno(file);
	ck_assert_int_eq(write(fd, "0123456789", 10), 10);
	transferred(call(WEFT__OPCODE_READ, fd, buffer, 4, 8), 2);
	transferred(call(WEFT__OPCODE_READV, fd, parts, 2, 4), 3);
	transferred(call(WEFT__OPCODE_WRITE, fd, "ab", 2, 2), 2);
	transferred(call(WEFT__OPCODE_WRITEV, fd, parts, 2, 7), 3);
	/* At the position, which is the end. */
	transferred(call(WEFT__OPCODE_READ, fd, buffer, 4, -1), 0);
	fclose(file);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io request");
	TCase *encoding = tcase_create("encoding");
	TCase *calls = tcase_create("calls");

	tcase_add_test(encoding, each_request_is_encoded_as_liburing_would);
	suite_add_tcase(suite, encoding);
	tcase_add_test(calls, calls_on_sockets_do_not_wait);
	tcase_add_test(calls, calls_on_files_are_made_at_the_offset);
	suite_add_tcase(suite, calls);
	return io_tests_run(suite);
}
