/* SPDX-License-Identifier: MIT */
/*
 * Calls that move bytes of a stream, made at a place: what they moved is
 * looked at and counted, whatever they return.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_TRANSFERS_H
#define WEFT_TESTS_SUPPORT_IO_TRANSFERS_H

#include "tests/support/io_place_udp.h"

/* ---- Reading ------------------------------------------------------------- */

static inline ssize_t received(struct place *place, ssize_t r, size_t bytes)
{
	fenced_check(place->into, bytes);
	stream_check(place->into->bytes, bytes, place->got);
	place->got += bytes;
	place->moved = bytes;
	return r;
}

static inline unsigned char *room(struct place *place)
{
	fenced_init(place->into);
	return place->into->bytes;
}

static inline ssize_t receive(struct place *place, ssize_t r)
{
	return received(place, r, r < 0 ? 0 : (size_t)r);
}

static inline struct msghdr *in_pieces(unsigned char *bytes,
				       struct iovec iov[2], struct msghdr *msg)
{
	iov[0] = (struct iovec){ bytes, 3 };
	iov[1] = (struct iovec){ bytes + 3, SHORT_BYTES - 3 };
	*msg = (struct msghdr){ .msg_iov = iov, .msg_iovlen = 2 };
	return msg;
}

static inline ssize_t make_read(struct place *place)
{
	return receive(place, weft_read(place->fd, room(place), SHORT_BYTES));
}
static inline ssize_t make_readv(struct place *place)
{
	struct iovec iov[2];
	struct msghdr msg;

	in_pieces(room(place), iov, &msg);
	return receive(place, weft_readv(place->fd, iov, 2));
}
static inline ssize_t make_read_all(struct place *place)
{
	size_t done = 99;
	int r = weft_read_all(place->fd, room(place), SHORT_BYTES, &done);

	EXPECT(r < 0 || done == SHORT_BYTES);
	return received(place, r, done);
}
static inline ssize_t make_recv(struct place *place)
{
	return receive(place,
		       weft_recv(place->fd, room(place), SHORT_BYTES, 0));
}
static inline ssize_t make_recv_waitall(struct place *place)
{
	return receive(place, weft_recv(place->fd, room(place), SHORT_BYTES,
					MSG_WAITALL));
}
static inline ssize_t make_recvmsg(struct place *place)
{
	struct iovec iov[2];
	struct msghdr msg;

	in_pieces(room(place), iov, &msg);
	return receive(place, weft_recvmsg(place->fd, &msg, 0));
}
static inline ssize_t make_recvfrom(struct place *place)
{
	struct weft_addr peer = { .bytes = 1 };
	ssize_t r = weft_recvfrom(place->fd, room(place), SHORT_BYTES, 0,
				  &peer);

	/* The peer of a pair has no name. */
	EXPECT(r < 0 ? peer.bytes == 1 : peer.bytes == 0);
	return receive(place, r);
}
static inline ssize_t make_unix_recv_fds(struct place *place)
{
	int count = -1;
	ssize_t r = weft_unix_recv_fds(place->fd, room(place), SHORT_BYTES,
				       NULL, 0, &count);

	EXPECT(count == (r < 0 ? -1 : 0));
	return receive(place, r);
}
static inline ssize_t make_udp_recv(struct place *place)
{
	struct weft_udp_msg msg = udp_msg(room(place), SHORT_BYTES, 0);
	ssize_t r = weft_udp_recv(&place->udp, &msg, 1, 0);

	EXPECT(r < 0 || (r == 1 && msg.whole_bytes == msg.bytes));
	return received(place, r, msg.bytes);
}
static inline ssize_t make_udp_recv_error(struct place *place)
{
	struct weft_udp_error error = { .error = 0 };
	ssize_t r = weft_udp_recv_error(&place->udp, &error, 0);

	EXPECT(error.error == (r < 0 ? 0 : -ECONNREFUSED));
	place->taken += r == 0;
	return r;
}
static inline ssize_t make_pread(struct place *place)
{
	return receive(place, weft_pread(place->fd, room(place), SHORT_BYTES,
					 (off_t)place->got));
}
static inline ssize_t make_pread_all(struct place *place)
{
	size_t done = 99;
	int r = weft_pread_all(place->fd, room(place), SHORT_BYTES,
			       (off_t)place->got, &done);

	return received(place, r, done);
}

/* Reads the bytes where they were copied to. */
static inline ssize_t copied(struct place *place, int from, ssize_t r,
			     uint64_t done)
{
	EXPECT(r < 0 || done <= SHORT_BYTES);
	EXPECT(read(from, room(place), done) == (ssize_t)done);
	return received(place, r, (size_t)done);
}
/* A number that the place has closed stays free. */
static inline ssize_t make_copy(struct place *place)
{
	int file = fd_far(memfd_create("copy", MFD_CLOEXEC)), r;
	uint64_t done = 99;

	r = weft_copy(file, place->fd, SHORT_BYTES, &done, NULL);
	EXPECT(lseek(file, 0, SEEK_SET) == 0);
	(void)copied(place, file, r, done);
	EXPECT(close(file) == 0);
	return r;
}
static inline ssize_t make_copy_spliced(struct place *place)
{
	uint64_t done = 99;
	int fds[2], r;

	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	fds[0] = fd_far(fds[0]);
	fds[1] = fd_far(fds[1]);
	r = weft_copy(fds[1], place->fd, SHORT_BYTES, &done, NULL);
	(void)copied(place, fds[0], r, done);
	EXPECT(close(fds[0]) == 0 && close(fds[1]) == 0);
	return r;
}
static inline ssize_t make_read_eventfd(struct place *place)
{
	uint64_t count = 0;
	ssize_t n = weft_read(place->fd, &count, sizeof(count));

	EXPECT(n < 0 ? count == 0 : n == sizeof(count) && count > 0);
	place->taken += (unsigned)count;
	return n;
}
static inline ssize_t make_signal_wait(struct place *place)
{
	int number = -1;
	int r = weft_signal_wait(place->fd, &number);

	EXPECT(number == (r < 0 ? -1 : counted_signal()));
	place->taken += r == 0;
	return r;
}

/* ---- Writing ------------------------------------------------------------- */

/* The bytes that are to be sent now; freed by transmitted(). */
static inline unsigned char *load(struct place *place)
{
	unsigned char *bytes = malloc(place->bytes);

	EXPECT(bytes != NULL);
	stream_fill(bytes, place->bytes, place->sent);
	return bytes;
}

static inline ssize_t transmitted(struct place *place, unsigned char *bytes,
				  ssize_t r, size_t done)
{
	free(bytes);
	place->sent += done;
	place->moved = done;
	return r;
}

static inline ssize_t transmit(struct place *place, unsigned char *bytes,
			       ssize_t r)
{
	return transmitted(place, bytes, r, r < 0 ? 0 : (size_t)r);
}

static inline ssize_t make_write(struct place *place)
{
	unsigned char *bytes = load(place);

	return transmit(place, bytes,
			weft_write(place->fd, bytes, place->bytes));
}
static inline ssize_t make_writev(struct place *place)
{
	unsigned char *bytes = load(place);
	struct iovec iov[2];
	struct msghdr msg;

	in_pieces(bytes, iov, &msg);
	return transmit(place, bytes, weft_writev(place->fd, iov, 2));
}
static inline ssize_t make_write_all(struct place *place)
{
	unsigned char *bytes = load(place);
	size_t done = 99;
	int r = weft_write_all(place->fd, bytes, place->bytes, &done);

	EXPECT(r < 0 || done == place->bytes);
	return transmitted(place, bytes, r, done);
}
static inline ssize_t make_send(struct place *place)
{
	unsigned char *bytes = load(place);

	return transmit(place, bytes,
			weft_send(place->fd, bytes, place->bytes, 0));
}
static inline ssize_t make_send_all(struct place *place)
{
	unsigned char *bytes = load(place);
	size_t done = 99;
	int r = weft_send_all(place->fd, bytes, place->bytes, 0, &done);

	EXPECT(r < 0 || done == place->bytes);
	return transmitted(place, bytes, r, done);
}
static inline ssize_t make_sendmsg(struct place *place)
{
	unsigned char *bytes = load(place);
	struct iovec iov[2];
	struct msghdr msg;

	in_pieces(bytes, iov, &msg);
	return transmit(place, bytes, weft_sendmsg(place->fd, &msg, 0));
}
static inline ssize_t make_sendto(struct place *place)
{
	unsigned char *bytes = load(place);

	return transmit(place, bytes, weft_sendto(place->fd, bytes,
						  place->bytes, 0, NULL));
}
static inline ssize_t make_unix_send_fds(struct place *place)
{
	unsigned char *bytes = load(place);

	return transmit(place, bytes,
			weft_unix_send_fds(place->fd, bytes, place->bytes,
					   &place->peer, 1));
}
static inline ssize_t make_udp_send(struct place *place)
{
	unsigned char *bytes = load(place);
	struct weft_udp_msg msg = udp_msg(bytes, 0, place->bytes);
	ssize_t r = weft_udp_send(&place->udp, &msg, 1, 0);

	EXPECT(msg.sent_bytes == 0);
	return transmitted(place, bytes, r, r < 0 ? 0 : place->bytes);
}
static inline ssize_t make_sendfile(struct place *place)
{
	size_t done = 99;
	ssize_t r = weft_sendfile(place->fd, place->file, (off_t)place->sent,
				  place->bytes, &done);

	EXPECT(r < 0 || (size_t)r == done);
	return transmitted(place, NULL, r, done);
}
static inline ssize_t make_copy_file(struct place *place)
{
	uint64_t done = 99;
	int r;

	EXPECT(lseek(place->file, (off_t)place->sent, SEEK_SET) >= 0);
	r = weft_copy(place->fd, place->file, place->bytes, &done, NULL);
	EXPECT(lseek(place->file, 0, SEEK_CUR) ==
	       (off_t)(place->sent + done));
	return transmitted(place, NULL, r, (size_t)done);
}
static inline ssize_t make_pwrite(struct place *place)
{
	unsigned char *bytes = load(place);

	return transmit(place, bytes,
			weft_pwrite(place->fd, bytes, place->bytes,
				    (off_t)place->sent));
}
static inline ssize_t make_pwrite_all(struct place *place)
{
	unsigned char *bytes = load(place);
	size_t done = 99;
	int r = weft_pwrite_all(place->fd, bytes, place->bytes,
				(off_t)place->sent, &done);

	return transmitted(place, bytes, r, done);
}

#endif
