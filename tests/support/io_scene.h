/* SPDX-License-Identifier: MIT */
/*
 * Every call that can wait for ever, and something for each to wait for.
 *
 * scene_open() opens descriptors on which nothing happens: an empty pipe, a
 * full one, quiet and stuffed sockets, a listener without clients.  The table
 * calls[] has a function for each call, which waits on one of them.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_SCENE_H
#define WEFT_TESTS_SUPPORT_IO_SCENE_H

#include <poll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "tests/support/io_kit.h"

struct scene {
	int empty;     /* a pipe's end with nothing to read */
	int full;      /* a pipe's end with no room */
	int quiet;     /* a socket whose peer says nothing */
	int stuffed;   /* a socket whose peer does not read */
	int gorged;    /* as stuffed, but O_NONBLOCK */
	int file;
	int listener;  /* that no client connects to */
	int crowded;   /* a Unix socket whose listener's backlog is full */
	int others[9]; /* kept open, closed in the end */
	char fifo[64];
	struct weft_addr crowd;
};

static inline void fill(int fd)
{
	char junk[65536] = { 0 };
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	while (write(fd, junk, sizeof(junk)) > 0)
		;
	while (write(fd, junk, 1) > 0)
		;
	fcntl(fd, F_SETFL, flags);
}

static inline void crowd_open(struct scene *scene)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	char name[64];

	opts.backlog = 1;
	snprintf(name, sizeof(name), "unix:@weft-test-%d", (int)getpid());
	ck_assert_int_eq(weft_addr_parse(name, &scene->crowd), 0);
	scene->others[4] = weft_unix_listen(name, &opts);
	ck_assert_int_ge(scene->others[4], 0);
	/* A backlog of 1 takes two. */
	scene->others[5] = weft_unix_connect(name, NULL);
	scene->others[6] = weft_unix_connect(name, NULL);
	ck_assert_int_ge(scene->others[6], 0);
	scene->crowded = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(scene->crowded, 0);
}

static inline void scene_open_nonblocking(struct scene *scene)
{
	int fds[2];

	socket_pair(fds);
	scene->gorged = fds[0], scene->others[7] = fds[1];
	fill(scene->gorged);
	ck_assert_int_eq(fcntl(scene->gorged, F_SETFL, O_NONBLOCK), 0);
	scene->file = weft_open("/proc/self/exe", O_RDONLY, 0);
	ck_assert_int_ge(scene->file, 0);
	/* Linux 6.1 adds pages to the last message of a full socket. */
	while (sendfile(scene->gorged, scene->file, &(off_t){ 0 }, 65536) > 0)
		;
}

static inline void scene_open(struct scene *scene)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	int fds[2];

	*scene = (struct scene){ 0 };
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	scene->empty = fds[0], scene->others[0] = fds[1];
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	scene->full = fds[1], scene->others[1] = fds[0];
	fill(scene->full);
	socket_pair(fds);
	scene->quiet = fds[0], scene->others[2] = fds[1];
	socket_pair(fds);
	scene->stuffed = fds[0], scene->others[3] = fds[1];
	fill(scene->stuffed);
	scene_open_nonblocking(scene);
	scene->listener = tcp_listener(text);
	crowd_open(scene);
	snprintf(scene->fifo, sizeof(scene->fifo), "/tmp/weft-fifo-%d",
		 (int)getpid());
	ck_assert_int_eq(mkfifo(scene->fifo, 0600), 0);
}

static inline void scene_close(struct scene *scene)
{
	int fds[] = { scene->empty,    scene->full,	scene->quiet,
		      scene->stuffed,  scene->listener, scene->crowded,
		      scene->others[0], scene->others[1], scene->others[2],
		      scene->others[3], scene->others[4], scene->others[5],
		      scene->others[6], scene->gorged,	scene->others[7],
		      scene->file };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		ck_assert_int_eq(weft_close(fds[i]), 0);
	unlink(scene->fifo);
}

typedef ssize_t (*call_fn)(struct scene *scene);

static char buffer[1 << 16];

static inline struct iovec *pieces(void)
{
	static struct iovec iov[2] = { { buffer, 100 }, { buffer + 100, 100 } };

	return iov;
}

static inline struct msghdr *message(void)
{
	static struct msghdr msg;

	msg = (struct msghdr){ .msg_iov = pieces(), .msg_iovlen = 2 };
	return &msg;
}

static inline ssize_t call_read(struct scene *s)
{
	return weft_read(s->empty, buffer, 10);
}
static inline ssize_t call_read_socket(struct scene *s)
{
	return weft_read(s->quiet, buffer, 10);
}
static inline ssize_t call_readv(struct scene *s)
{
	return weft_readv(s->empty, pieces(), 2);
}
static inline ssize_t call_read_all(struct scene *s)
{
	return weft_read_all(s->empty, buffer, 10, NULL);
}
static inline ssize_t call_write(struct scene *s)
{
	return weft_write(s->full, buffer, 10);
}
static inline ssize_t call_writev(struct scene *s)
{
	return weft_writev(s->full, pieces(), 2);
}
static inline ssize_t call_write_all(struct scene *s)
{
	return weft_write_all(s->full, buffer, 10, NULL);
}
static inline ssize_t call_write_socket(struct scene *s)
{
	return weft_write(s->stuffed, buffer, 10);
}
static inline ssize_t call_writev_socket(struct scene *s)
{
	return weft_writev(s->stuffed, pieces(), 2);
}
static inline ssize_t call_recv(struct scene *s)
{
	return weft_recv(s->quiet, buffer, 10, 0);
}
static inline ssize_t call_recv_waitall(struct scene *s)
{
	return weft_recv(s->quiet, buffer, 10, MSG_WAITALL);
}
static inline ssize_t call_sendfile(struct scene *s)
{
	return weft_sendfile(s->stuffed, s->file, 0, 50000, NULL);
}
static inline ssize_t call_sendfile_polled(struct scene *s)
{
	return weft_sendfile(s->gorged, s->file, 0, 50000, NULL);
}
static inline ssize_t call_copy(struct scene *s)
{
	return weft_copy(s->full, s->empty, 10, NULL, NULL);
}
static inline ssize_t call_copy_socket(struct scene *s)
{
	return weft_copy(s->gorged, s->quiet, 10, NULL, NULL);
}
static inline ssize_t call_copy_file(struct scene *s)
{
	return weft_copy(s->full, s->file, 10, NULL, NULL);
}
static inline ssize_t call_send(struct scene *s)
{
	return weft_send(s->stuffed, buffer, 10, 0);
}
static inline ssize_t call_send_all(struct scene *s)
{
	return weft_send_all(s->stuffed, buffer, 10, 0, NULL);
}
static inline ssize_t call_recvmsg(struct scene *s)
{
	return weft_recvmsg(s->quiet, message(), 0);
}
static inline ssize_t call_sendmsg(struct scene *s)
{
	return weft_sendmsg(s->stuffed, message(), 0);
}
static inline ssize_t call_accept(struct scene *s)
{
	return weft_accept(s->listener, NULL);
}
static inline ssize_t call_connect(struct scene *s)
{
	return weft_connect(s->crowded, &s->crowd);
}
static inline ssize_t call_poll(struct scene *s)
{
	return weft_poll(s->empty, POLLIN);
}
static inline ssize_t call_open(struct scene *s)
{
	return weft_open(s->fifo, O_RDONLY, 0);
}
static inline ssize_t call_open_to_write(struct scene *s)
{
	return weft_open(s->fifo, O_WRONLY, 0);
}

static const struct {
	const char *name;
	call_fn fn;
} calls[] = {
	{ "read", call_read },
	{ "read a socket", call_read_socket },
	{ "readv", call_readv },
	{ "read_all", call_read_all },
	{ "write", call_write },
	{ "writev", call_writev },
	{ "write_all", call_write_all },
	{ "write a socket", call_write_socket },
	{ "writev a socket", call_writev_socket },
	{ "recv", call_recv },
	{ "recv WAITALL", call_recv_waitall },
	{ "send", call_send },
	{ "send_all", call_send_all },
	{ "recvmsg", call_recvmsg },
	{ "sendmsg", call_sendmsg },
	{ "sendfile", call_sendfile },
	{ "sendfile O_NONBLOCK", call_sendfile_polled },
	{ "copy", call_copy },
	{ "copy a socket", call_copy_socket },
	{ "copy a file", call_copy_file },
	{ "accept", call_accept },
	{ "connect", call_connect },
	{ "poll", call_poll },
	{ "open a FIFO", call_open },
	{ "open a FIFO to write", call_open_to_write },
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

#endif
