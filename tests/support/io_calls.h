/* SPDX-License-Identifier: MIT */
/*
 * The calls of <weft/io.h>, <weft/net.h>, <weft/time.h> and their kin that
 * suspend, each with the place where it waits and what lets it go on there.
 *
 * A call counts what it moved, whatever it returns; 0 or more is success.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_CALLS_H
#define WEFT_TESTS_SUPPORT_IO_CALLS_H

#include <linux/openat2.h>

#include "tests/support/io_locks.h"
#include "tests/support/process_calls.h"
#include "tests/support/copy_calls.h"
#include "tests/support/fs_calls.h"
#include "tests/support/io_transfers.h"
#include "tests/support/pipeline_calls.h"
#ifndef WEFT_WITHOUT_NAMES
#include "tests/support/names_kit.h"
#endif
#include "tests/support/task_calls.h"

enum {
	ON_FD = 1,	 /* another task may close what it is made on */
	LOOPS = 1 << 1,	 /* tells how far it came, by ret_done */
	READY = 1 << 2,	 /* has nothing to wait for */
	EXEMPT = 1 << 3, /* done in full, cancelled or not */
	BEGUN = 1 << 4,	 /* once it waits, it is waited for in full */
	CLOCK = 1 << 5,	 /* time lets it go on */
	SLOW = 1 << 6,	 /* the kernel tries again after a second only */
	CUT = 1 << 7,	 /* cut short it succeeds with what it has */
	ONCE = 1 << 8,	 /* what it is made on is used up then */
};

struct call {
	const char *name; /* begins with that of the function */
	void (*open)(struct place *place);
	ssize_t (*make)(struct place *place);
	void (*let_go)(struct place *place);
	void (*settle)(struct place *place); /* nothing is lost, or doubled */
	unsigned is;
	int when_shut; /* what it returns then, if it is on a connection */
};

/* ---- Connections, files, readiness --------------------------------------- */

/* A descriptor that came: not for us to keep. */
static inline ssize_t came(struct place *place, int fd)
{
	if (fd < 0)
		return fd;
	EXPECT(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	place->taken++;
	return weft_close(fd);
}

static inline ssize_t make_accept(struct place *place)
{
	return came(place, weft_accept(place->fd, NULL));
}
static inline ssize_t make_accept_peer(struct place *place)
{
	struct weft_addr peer;

	return came(place, weft_accept(place->fd, &peer));
}

/* On the socket that it tried on before, unless that was connected. */
static inline ssize_t make_connect(struct place *place)
{
	int r;

	if (place->fd < 0)
		place->fd = socket_for(place);
	r = weft_connect(place->fd, &place->addr);
	if (r == 0) {
		EXPECT(weft_close(place->fd) == 0);
		place->fd = -1;
		place->taken++;
	}
	return r;
}
static inline ssize_t make_tcp_connect(struct place *place)
{
	return came(place, weft_tcp_connect(place->address, NULL));
}
static inline ssize_t make_unix_connect(struct place *place)
{
	return came(place, weft_unix_connect(place->address, NULL));
}
static inline ssize_t make_socket_connect(struct place *place)
{
	struct weft_addr addr;

	EXPECT(weft_addr_parse(place->address, &addr) == 0);
	return came(place, weft_socket_connect(&addr, NULL));
}
static inline ssize_t make_dial(struct place *place)
{
	return came(place, weft_dial(place->address, NULL));
}

#ifndef WEFT_WITHOUT_NAMES
/* A server that answers from when it is let go on; no answer is kept. */
static inline int64_t serve_names(void *arg)
{
	struct place *place = *(struct place **)arg;
	uint8_t data[MESSAGE_BYTES];
	struct weft_addr peer;
	char name[256];
	int type, r;

	if (weft_event_wait(&place->event) < 0)
		return 0;
	while (weft_recvfrom(place->peer, data, MESSAGE_BYTES, 0, &peer) > 0) {
		r = question_read(data, name, &type);
		r = answer_make(name, type, false, data, r);
		(void)!weft_sendto(place->peer, data, (size_t)r, 0, &peer);
	}
	return 0;
}
static inline void names_open(struct place *place)
{
	struct weft_resolver_opts opts = WEFT_RESOLVER_OPTS_INIT;
	struct weft_addr addr;

	place->peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	EXPECT(weft_addr_parse("127.0.0.1:0", &addr) == 0);
	EXPECT(bind(place->peer, weft_addr_sockaddr(&addr),
		    weft_addr_sockaddr_bytes(&addr)) == 0);
	opts.servers = weft_local_addr_text(place->peer, place->address);
	opts.timeout_ns = WEFT_SEC(100);
	EXPECT(weft_resolver_set(&opts) == 0);
	place_scope_begin(place);
	EXPECT(WEFT_GO(place->scope, serve_names, place) == 0);
}
static inline ssize_t make_resolve(struct place *place
				   __attribute__((unused)))
{
	struct weft_addr addr;

	return weft_resolve("zero.test:1", NULL, &addr, 1);
}
#endif

static inline ssize_t make_poll(struct place *place)
{
	int r = weft_poll(place->fd, POLLIN);

	EXPECT(r < 0 || (r & (POLLIN | POLLHUP)));
	return r;
}
static inline ssize_t make_poll_out(struct place *place)
{
	int r = weft_poll(place->fd, POLLOUT);

	EXPECT(r < 0 || (r & (POLLOUT | POLLHUP)));
	return r;
}
static inline ssize_t make_open(struct place *place)
{
	return came(place, weft_open(place->address, O_RDONLY, 0));
}
static inline ssize_t make_openat(struct place *place)
{
	return came(place, weft_openat(AT_FDCWD, place->address, O_WRONLY, 0));
}
static inline ssize_t make_openat2(struct place *place)
{
	struct open_how how = { .flags = O_RDONLY };

	return came(place, weft_openat2(AT_FDCWD, place->address, &how,
					sizeof(how)));
}
static inline ssize_t make_stat(struct place *place)
{
	struct stat st;

	(void)place;
	return weft_stat("/", &st);
}
static inline ssize_t make_fstat(struct place *place)
{
	struct stat st;

	return weft_fstat(place->fd, &st);
}
static inline ssize_t make_fsync(struct place *place)
{
	return weft_fsync(place->fd);
}
static inline ssize_t make_fdatasync(struct place *place)
{
	return weft_fdatasync(place->fd);
}
static inline ssize_t make_close(struct place *place)
{
	int fd = fcntl(place->fd, F_DUPFD_CLOEXEC, 0), r;

	EXPECT(fd >= 0);
	r = weft_close(fd);
	EXPECT(fcntl(fd, F_GETFD) < 0);
	return r;
}
static inline ssize_t make_shutdown(struct place *place)
{
	return weft_shutdown(place->fd, SHUT_WR);
}

/* ---- Selecting ----------------------------------------------------------- */

static inline ssize_t make_select_ready(struct place *place)
{
	return select_one((struct weft_case)WEFT_READY(place->fd, POLLIN));
}
static inline ssize_t make_select_at(struct place *place)
{
	bool let_go = weft__load(&place->let_go, acquire);

	return select_one((struct weft_case)WEFT_AT(
		let_go ? weft_now() : place->until_ns));
}

/* ---- Time ---------------------------------------------------------------- */

static inline weft_nsec due_ns(struct place *place)
{
	/* pairs with clock_let_go(). */
	return weft__load(&place->let_go, acquire) ? weft_now() + 1 :
						     place->until_ns;
}
static inline ssize_t make_sleep(struct place *place)
{
	weft_nsec now_ns = weft_now(), until_ns = due_ns(place);

	return weft_sleep(until_ns > now_ns ? until_ns - now_ns : 1);
}
static inline ssize_t make_sleep_until(struct place *place)
{
	return weft_sleep_until(due_ns(place));
}
static inline ssize_t make_sleep_until_wall(struct place *place)
{
	weft_nsec now_ns = weft_now(), until_ns = due_ns(place);

	return weft_sleep_until_wall(weft_wall_now() +
				     (int64_t)(until_ns - now_ns));
}
static inline ssize_t make_interval_wait(struct place *place)
{
	weft_nsec next_ns = due_ns(place);
	ssize_t r;

	EXPECT(weft_interval_init(&place->interval, WEFT_SEC(1),
				  WEFT_MISSED_BURST) == 0);
	place->interval.next_ns = next_ns;
	r = weft_interval_wait(&place->interval);
	EXPECT(place->interval.next_ns == next_ns + (r < 0 ? 0 : WEFT_SEC(1)));
	return r;
}

/* A wait that is given up leaves the timer set. */
static inline ssize_t make_timer_wait(struct place *place)
{
	weft_nsec at_ns = due_ns(place);
	int r;

	EXPECT(weft_timer_set(&place->timer, at_ns) == 0);
	r = weft_timer_wait(&place->timer);
	if (r == 0)
		EXPECT(weft_now() >= at_ns && !weft_timer_clear(&place->timer));
	else
		EXPECT(weft_timer_clear(&place->timer) || weft_now() >= at_ns);
	return r;
}

static inline ssize_t make_yield(struct place *place)
{
	(void)place;
	return weft_yield();
}

/* ---- The table ----------------------------------------------------------- */

#define PIPE_IN empty_pipe_open
#define PIPE_OUT full_pipe_open
#define PAIR_IN pair_open
#define PAIR_OUT full_pair_open
#define FEED write_some, reader_settle
#define EMPTY read_it_all, writer_settle

static const struct call calls[] = {
	{ "read", PIPE_IN, make_read, FEED, ON_FD, 1 },
	{ "read of a socket", PAIR_IN, make_read, FEED, ON_FD, 0 },
	{ "read of an eventfd", eventfd_make, make_read_eventfd,
	  eventfd_let_go, eventfd_settle, ON_FD, 1 },
	{ "readv", PIPE_IN, make_readv, FEED, ON_FD, 1 },
	{ "readv of a socket", PAIR_IN, make_readv, FEED, ON_FD, 0 },
	{ "read_all", PIPE_IN, make_read_all, FEED, ON_FD | LOOPS, 1 },
	{ "read_all of a socket", PAIR_IN, make_read_all, FEED, ON_FD | LOOPS,
	  -ENODATA },
	{ "recv", PAIR_IN, make_recv, FEED, ON_FD, 0 },
	{ "recv with MSG_WAITALL", PAIR_IN, make_recv_waitall, FEED,
	  ON_FD | LOOPS | CUT, 0 },
	{ "recvmsg", PAIR_IN, make_recvmsg, FEED, ON_FD, 0 },
	{ "recvfrom", PAIR_IN, make_recvfrom, FEED, ON_FD, 0 },
	{ "signal_wait", signals_open, make_signal_wait, signals_let_go,
	  signals_settle, ON_FD, 1 },

	{ "write", PIPE_OUT, make_write, EMPTY, ON_FD, 1 },
	{ "write to a socket", PAIR_OUT, make_write, EMPTY, ON_FD, -EPIPE },
	{ "writev", PIPE_OUT, make_writev, EMPTY, ON_FD, 1 },
	{ "writev to a socket", PAIR_OUT, make_writev, EMPTY, ON_FD, -EPIPE },
	{ "write_all", PIPE_OUT, make_write_all, EMPTY, ON_FD | LOOPS, 1 },
	{ "write_all to a socket", PAIR_OUT, make_write_all, EMPTY,
	  ON_FD | LOOPS, -EPIPE },
	{ "send", PAIR_OUT, make_send, EMPTY, ON_FD, -EPIPE },
	{ "send_all", PAIR_OUT, make_send_all, EMPTY, ON_FD | LOOPS, -EPIPE },
	{ "sendmsg", PAIR_OUT, make_sendmsg, EMPTY, ON_FD, -EPIPE },
	{ "sendto", PAIR_OUT, make_sendto, EMPTY, ON_FD, -EPIPE },
	{ "copy of a pipe", PIPE_IN, make_copy, FEED, ON_FD | LOOPS, 1 },
	{ "copy of a socket", PAIR_IN, make_copy, FEED, ON_FD | LOOPS, 0 },
	{ "copy of a pipe by splice", PIPE_IN, make_copy_spliced, FEED,
	  ON_FD | LOOPS, 1 },
	{ "copy of a socket by splice", nonblock_pair_open, make_copy_spliced,
	  FEED, ON_FD | LOOPS, 0 },
	{ "copy to a pipe", copying_open, make_copy_file, EMPTY,
	  ON_FD | LOOPS, 1 },
	{ "copy to a socket", sending_open, make_copy_file, EMPTY,
	  ON_FD | LOOPS, -EPIPE },
	{ "sendfile by a copy", sending_open, make_sendfile, EMPTY,
	  ON_FD | LOOPS, -EPIPE },
	{ "sendfile without one", sending_at_once_open, make_sendfile, EMPTY,
	  ON_FD | LOOPS, -EPIPE },

	{ "accept", listener_open, make_accept, listener_let_go,
	  listener_settle, ON_FD, -EINVAL },
	{ "accept of a peer", listener_open, make_accept_peer, listener_let_go,
	  listener_settle, ON_FD, -EINVAL },
	{ "connect", unix_socket_open, make_connect, crowd_let_go,
	  unix_crowd_settle, ON_FD | ONCE, 1 },
	{ "connect by TCP", tcp_socket_open, make_connect, crowd_let_go, NULL,
	  ON_FD | ONCE | SLOW, 1 },
	{ "tcp_connect", tcp_crowd_open, make_tcp_connect, crowd_let_go, NULL,
	  SLOW, 1 },
	{ "unix_connect", unix_crowd_open, make_unix_connect, crowd_let_go,
	  unix_crowd_settle, 0, 1 },
	{ "socket_connect", tcp_crowd_open, make_socket_connect, crowd_let_go,
	  NULL, SLOW, 1 },
	{ "dial", tcp_crowd_open, make_dial, crowd_let_go, NULL, SLOW, 1 },
#ifndef WEFT_WITHOUT_NAMES
	{ "resolve", names_open, make_resolve, event_let_go, NULL, 0, 1 },
#endif
	{ "poll", PAIR_IN, make_poll, FEED, ON_FD, 0 },
	{ "poll to write", PIPE_OUT, make_poll_out, EMPTY, ON_FD, 1 },
	{ "open of a FIFO", fifo_make, make_open, fifo_let_go, fifo_settle, 0,
	  1 },
	{ "openat of a FIFO", fifo_make, make_openat, fifo_let_go, fifo_settle,
	  0, 1 },
	{ "openat2 of a FIFO", fifo_make, make_openat2, fifo_let_go,
	  fifo_settle, 0, 1 },
	{ "select of a descriptor", PAIR_IN, make_select_ready, FEED, ON_FD,
	  0 },

	{ "unix_recv_fds", PAIR_IN, make_unix_recv_fds, FEED, ON_FD, 0 },
	{ "unix_send_fds", PAIR_OUT, make_unix_send_fds, EMPTY, ON_FD,
	  -EPIPE },
	{ "udp_recv", udp_in_open, make_udp_recv, FEED, ON_FD, 1 },
	{ "udp_send", udp_out_open, make_udp_send, udp_out_let_go,
	  writer_settle, ON_FD, 1 },
	{ "udp_recv_error", udp_errors_open, make_udp_recv_error,
	  udp_errors_let_go, udp_errors_settle, ON_FD, 1 },

	/* A file is not waited for, so that it could be interrupted; and what
	 * can be waited for has no offsets (pread of a pipe is -ESPIPE). */
	{ "pread", file_open, make_pread, NULL, NULL, ON_FD | READY, 1 },
	{ "pread_all", file_open, make_pread_all, NULL, NULL, ON_FD | READY,
	  1 },
	{ "pwrite", file_open, make_pwrite, NULL, NULL, ON_FD | READY, 1 },
	{ "pwrite_all", file_open, make_pwrite_all, NULL, NULL, ON_FD | READY,
	  1 },
	{ "fstat", file_open, make_fstat, NULL, NULL, ON_FD | READY, 1 },
	{ "fsync", file_open, make_fsync, NULL, NULL, ON_FD | READY, 1 },
	{ "fdatasync", file_open, make_fdatasync, NULL, NULL, ON_FD | READY,
	  1 },
	{ "statx", NULL, make_statx, NULL, NULL, READY, 1 },
	{ "rename", renamed_open, make_rename, NULL, renamed_settle, READY,
	  1 },
	{ "flock", locked_open, make_flock, locked_let_go, locked_settle,
	  ON_FD, 1 },
	{ "fcntl_lock", locked_open, make_fcntl_lock, locked_let_go,
	  locked_settle, ON_FD, 1 },
	{ "mkdir_all, in a queue", thread_taken_open, make_mkdir_all,
	  event_let_go, NULL, 0, 1 },
	{ "dir_next, in a queue", thread_taken_open, make_dir_next,
	  event_let_go, NULL, 0, 1 },
	{ "fchmod, in a queue", file_and_thread_open, make_fchmod,
	  event_let_go, NULL, 0, 1 },
	{ "stat", NULL, make_stat, NULL, NULL, READY, 1 },
	{ "close", pair_open, make_close, NULL, NULL, READY | EXEMPT, 1 },
	{ "shutdown", pair_open, make_shutdown, NULL, NULL, READY | EXEMPT,
	  1 },
	{ "yield", NULL, make_yield, NULL, NULL, READY, 1 },

	{ "spawn", gate_open, make_spawn, NULL, NULL, READY, 1 },
	{ "process_close", gate_open, make_process_close, NULL, NULL,
	  READY | EXEMPT, 1 },
	{ "process_wait", gate_open, make_process_wait, gate_let_go, NULL, 0,
	  1 },
	{ "run_command", gate_open, make_run_command, gate_let_go, NULL, 0,
	  1 },
	{ "run_commands", gate_open, make_run_commands, gate_let_go, NULL, 0,
	  1 },

	{ "sleep", clock_open, make_sleep, clock_let_go, NULL, CLOCK, 1 },
	{ "sleep_until", clock_open, make_sleep_until, clock_let_go, NULL,
	  CLOCK, 1 },
	{ "sleep_until_wall", clock_open, make_sleep_until_wall, clock_let_go,
	  NULL, CLOCK, 1 },
	{ "interval_wait", clock_open, make_interval_wait, clock_let_go, NULL,
	  CLOCK, 1 },
	{ "timer_wait", clock_open, make_timer_wait, clock_let_go, NULL, CLOCK,
	  1 },
	{ "select of a time", clock_open, make_select_at, clock_let_go, NULL,
	  CLOCK, 1 },

	{ "join", NULL, make_join, event_let_go, NULL, 0, 1 },
	{ "select of a task", NULL, make_select_joined, event_let_go, NULL, 0,
	  1 },
	{ "scope_end", NULL, make_scope_end, event_let_go, NULL,
	  EXEMPT | BEGUN, 1 },
	{ "go where there is a limit", full_scope_open, make_go, event_let_go,
	  NULL, 0, 1 },
	{ "scope_wait_room", full_scope_open, make_wait_room, event_let_go,
	  NULL, 0, 1 },
	{ "blocking, in a queue", thread_taken_open, make_blocking,
	  event_let_go, NULL, 0, 1 },
	{ "blocking_lane, in a queue", thread_taken_open, make_blocking_lane,
	  event_let_go, NULL, 0, 1 },
	{ "pipeline_run", PIPE_IN, make_pipeline_run, FEED, ON_FD | LOOPS,
	  1 },
	{ "pipeline_file", file_open, make_pipeline_file, event_let_go, NULL,
	  0, 1 },
	{ "copy_file, in a queue", thread_taken_open, make_copy_of_file,
	  event_let_go, NULL, 0, 1 },
	{ "copy_tree, in a queue", thread_taken_open, make_copy_of_tree,
	  event_let_go, NULL, 0, 1 },
	{ "walk, in a queue", thread_taken_open, make_walk, event_let_go,
	  NULL, 0, 1 },
	{ "walk, at a visit", NULL, make_walk_that_waits, event_let_go, NULL,
	  0, 1 },
	{ "remove_tree, in a queue", thread_taken_open, make_remove_tree,
	  event_let_go, NULL, 0, 1 },
	{ "remove_tree, at a report", NULL, make_removal_that_waits,
	  event_let_go, NULL, 0, 1 },
	{ "fs_watch_next", watch_open, make_fs_watch_next, watch_let_go,
	  watch_settle, 0, 1 },
	{ "fs_watch_try_next, in a queue", watch_without_thread_open,
	  make_fs_watch_try_next, event_let_go, watch_settle, 0, 1 },
	{ "fs_watch_add, in a queue", thread_taken_open, make_fs_watch_add,
	  event_let_go, NULL, 0, 1 },
	{ "fs_watch_close", NULL, make_fs_watch_close, NULL, NULL,
	  READY | EXEMPT, 1 },
	{ "follow_read", follow_a_file_open, make_follow_read, write_some,
	  follow_settle, 0, 1 },
	{ "follow_open, in a queue", thread_taken_open, make_follow_open,
	  event_let_go, NULL, 0, 1 },
	{ "follow_close", NULL, make_follow_close, NULL, NULL, READY | EXEMPT,
	  1 },
	{ "blocking, begun", NULL, make_blocking_begun, event_let_go, NULL,
	  BEGUN, 1 },
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

/* Whether shutdown(2) by another task ends it. */
static inline bool is_shut(const struct call *call)
{
	return call->when_shut <= 0;
}

#endif
