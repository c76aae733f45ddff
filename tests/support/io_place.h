/* SPDX-License-Identifier: MIT */
/*
 * Places to wait at: what a call waits for, what lets it go on, and a count of
 * all that goes in and comes out.
 *
 * The bytes of a stream are known by where in it they stand, so one that is
 * lost, doubled or overtaken is seen in the next.  One side of a place is the
 * caller's, the other that of the peer that lets it go on; each has counts of
 * its own.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_PLACE_H
#define WEFT_TESTS_SUPPORT_IO_PLACE_H

#include <inttypes.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/support/expect.h"
#include "tests/support/io_kit.h"
#include "tests/support/udp_kit.h"

enum { SHORT_BYTES = 10, LONG_BYTES = 1 << 20, FENCE_BYTES = 16 };
enum { CANARY = 0xa5, UNTOUCHED = 0xee, CLIENTS_MAX = 24 };

/* Memory to receive into, between two fences. */
struct fenced {
	unsigned char before[FENCE_BYTES];
	unsigned char bytes[SHORT_BYTES];
	unsigned char behind[FENCE_BYTES];
};

struct place {
	int fd;		   /* what the call is made on; -1: nothing */
	int peer;	   /* its other end; or a listener */
	int file;	   /* what is sent from */
	size_t bytes;	   /* to be moved by a call */
	weft_nsec soon_ns; /* when time alone lets it go on; 0: not now */
	weft_nsec until_ns;

	/* Of the stream, from its first byte on. */
	uint64_t sent, got;
	/* Things that are no bytes: connections, signals, counts. */
	unsigned offered, taken;

	/* Into the second one goes what is received to see whether the place
	 * is whole. */
	struct fenced in[2];
	struct fenced *into;
	size_t moved; /* by the last call that tells so */

	int clients[CLIENTS_MAX];
	unsigned clients_count;
	char address[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addr;
	struct weft_event event;
	weft__atomic(bool) let_go;
	weft__atomic(unsigned) entered; /* who is on a thread, or a scope's
					   end */
	struct weft_timer timer;
	struct weft_interval interval;
	struct weft_lane lane;
	struct weft_udp udp; /* over fd */
	struct weft_fs_watch *watch;
	struct weft_follow *follow;
	/* NULL: none.  Of its own memory, since gcc aligns no stack of ASan's
	 * to a line. */
	struct weft_scope *scope;
};

/* ---- Bytes --------------------------------------------------------------- */

void stream_fill(void *buf, size_t bytes, uint64_t at);

void stream_check(const void *buf, size_t bytes, uint64_t at);

bool all_are(const unsigned char *from, size_t bytes, int value);

void fenced_init(struct fenced *fenced);

/* So many bytes were written to it, and not one more. */
void fenced_check(const struct fenced *fenced, size_t bytes);

/* ---- Streams, from the other side ---------------------------------------- */

void peer_write(struct place *place, size_t bytes);

void drain_some(struct place *place, int fd, size_t bytes);

int bytes_at(int fd);

/* All that is there, from either end. */
void drain(struct place *place, int fd);

/* Until there is no room for one byte more. */
void stuff(struct place *place);

void empty_pipe_open(struct place *place);

void full_pipe_open(struct place *place);

void pair_open(struct place *place);

void full_pair_open(struct place *place);

void write_some(struct place *place);

void read_it_all(struct place *place);

/* All that came was received, or is still in the caller's end. */
void reader_settle(struct place *place);

/* All that was sent has come, and nothing else. */
void writer_settle(struct place *place);

/* ---- Files --------------------------------------------------------------- */

/* Of the same bytes as the stream. */
int stream_file(void);

void file_open(struct place *place);

void sending_open(struct place *place);

static inline void copying_open(struct place *place)
{
	full_pipe_open(place);
	place->file = stream_file();
}

/* One that is spliced from. */
static inline void nonblock_pair_open(struct place *place)
{
	pair_open(place);
	EXPECT(fcntl(place->fd, F_SETFL, O_RDWR | O_NONBLOCK) == 0);
}

/* One where sendfile(2) is used, for enough bytes. */
void sending_at_once_open(struct place *place);

/* Before Linux 6.5 sendfile(2) adds to what is in a Unix socket, also in a full
 * one. */
bool sending_at_once_can_wait(void);
#define NEEDS_FULL_SOCKETS \
	"Unix sockets that sendfile(2) finds full (Linux 6.5)"

void fifo_make(struct place *place);

/* An open for both ways waits for no peer, and is both other ends. */
void fifo_let_go(struct place *place);

void fifo_settle(struct place *place);

/* ---- Counters ------------------------------------------------------------ */

void eventfd_make(struct place *place);

void eventfd_let_go(struct place *place);

void eventfd_settle(struct place *place);

/* One that is counted by the kernel, too.  It is blocked by then. */
int counted_signal(void);

void signals_open(struct place *place);

void signals_let_go(struct place *place);

void signals_settle(struct place *place);

/* ---- Connections --------------------------------------------------------- */

int socket_for(struct place *place);

void listener_open(struct place *place);

void listener_let_go(struct place *place);

/* Whoever came is accepted, now or before. */
void listener_settle(struct place *place);

/* A listener whose backlog of 1 has taken two. */
void crowd_open(struct place *place, int listener);

void unix_crowd_open(struct place *place);

void tcp_crowd_open(struct place *place);

void unix_socket_open(struct place *place);

void tcp_socket_open(struct place *place);

bool crowd_shrink(struct place *place);

void crowd_let_go(struct place *place);

/* The two that were there, and who said that it came. */
void unix_crowd_settle(struct place *place);

/* ---- Time, and tasks ----------------------------------------------------- */

void clock_open(struct place *place);

/* Nobody but the clock does. */
void clock_let_go(struct place *place);

void event_let_go(struct place *place);

int64_t wait_for_event(void *arg);

/* A scope with room for one, which is there. */
/* Opens a scope, which place_close() ends. */
void place_scope_begin(struct place *place);
void full_scope_open(struct place *place);

/* ---- Life ---------------------------------------------------------------- */

void place_init(struct place *place);

void place_close(struct place *place);

#endif
