/* SPDX-License-Identifier: MIT */
/*
 * Arenas, where two tasks make random calls on the same thing: a pipe, a pair
 * of sockets, a listener, a FIFO, or none but the time.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_ARENA_H
#define WEFT_TESTS_SUPPORT_IO_ARENA_H

#include <inttypes.h>

#include "tests/support/io_place.h"

#if defined(WEFT__ASAN) || defined(WEFT__TSAN) || defined(WEFT_VALGRIND)
enum { RACES = 8000 };
#else
enum { RACES = 30000 };
#endif

enum { ARENAS = 8, PARTS = 2, PERMITS = 11, ROOM = 4, BYTES_MAX = 256,
       WRITE_MAX = 8192, FILE_BYTES = 1 << 20 };

/* The descriptors of an arena have numbers that no other code gets: a call that
 * begins after the close must find nothing there. */
enum { FIRST_FD = 160, FDS_EACH = 8 };

enum kind { PIPE, PAIR, ACCEPT, CONNECT, FIFO, TIME, KINDS };

enum act { NOTHING, CANCEL, CANCEL_ALL, FAIL, CLOSE, SHUT, ACTS };

struct arena;

/* A task that makes a call. */
struct part {
	struct arena *arena;
	bool second;
	uint64_t random;
	weft_nsec within_ns; /* 0: it has time */
	ssize_t result;
	bool called;
	struct weft_task task;
};

struct arena {
	unsigned index;
	uint64_t random, races;
	enum kind kind;
	enum act act;
	unsigned rounds_left; /* of what is open */
	int fds[2];
	bool open, ended;
	uint64_t sent, got;	 /* bytes of the stream */
	unsigned offered, taken; /* connections */
	weft__atomic(unsigned) connected;
	char name[64];
	struct part parts[PARTS];
};

static struct {
	struct weft_sem permits;
	struct weft_chan chan;
	uint64_t room[ROOM];
	int file;
	weft__atomic(uint64_t) said, heard, said_sum, heard_sum;
	weft__atomic(uint64_t) done, cancelled, timed_out, ended;
} shared;

static uint64_t seed;

#define ARENA_EXPECT(arena, holds)                                         \
	do {                                                               \
		if (!(holds))                                              \
			ck_abort_msg("line %d: %s: seed %" PRIu64          \
				     ", arena %u, race %" PRIu64           \
				     ", kind %d, act %d, %zd and %zd",     \
				     __LINE__, #holds, seed,               \
				     (arena)->index, (arena)->races,       \
				     (int)(arena)->kind, (int)(arena)->act, \
				     (arena)->parts[0].result,             \
				     (arena)->parts[1].result);            \
	} while (0)

/* ---- Chance -------------------------------------------------------------- */

static inline uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static inline unsigned chance(uint64_t *random, unsigned below)
{
	*random = mix(*random);
	return (unsigned)((*random >> 32) % below);
}

static inline void pause_a_little(uint64_t *random)
{
	weft_nsec by;

	switch (chance(random, 5)) {
	case 0:
		return;
	case 1:
		by = weft_now() + chance(random, 8000);
		while (weft_now() < by)
			weft__spin_hint();
		return;
	case 2:
		WEFT_SHIELD
			EXPECT(weft_sleep(1 + chance(random, 60000)) == 0);
		return;
	default:
		WEFT_SHIELD
			for (unsigned n = chance(random, 4); n > 0; n--)
				EXPECT(weft_yield() == 0);
	}
}

/* ---- Reading ------------------------------------------------------------- */

struct guarded {
	unsigned char before[FENCE_BYTES];
	unsigned char bytes[BYTES_MAX];
	unsigned char behind[FENCE_BYTES];
};

static inline struct msghdr *two_pieces(void *bytes, size_t count,
					struct iovec iov[2],
					struct msghdr *msg)
{
	size_t first = count / 3;

	iov[0] = (struct iovec){ bytes, first };
	iov[1] = (struct iovec){ (char *)bytes + first, count - first };
	*msg = (struct msghdr){ .msg_iov = iov, .msg_iovlen = 2 };
	return msg;
}

static inline ssize_t read_socket(int fd, void *bytes, size_t count,
				  unsigned call)
{
	struct iovec iov[2];
	struct msghdr msg;

	switch (call) {
	case 0:
		return weft_recv(fd, bytes, count, 0);
	case 1:
		return weft_recv(fd, bytes, count, MSG_WAITALL);
	default:
		return weft_recvmsg(fd, two_pieces(bytes, count, iov, &msg),
				    0);
	}
}

static inline ssize_t select_ready(int fd)
{
	struct weft_case cases[] = { WEFT_READY(fd, POLLIN) };
	int r = weft_select(cases, 1);

	return r < 0 ? r : cases[0].result;
}

/* *ret_done: what came, whatever is returned. */
static inline ssize_t read_somehow(struct part *part, int fd, void *bytes,
				   size_t count, size_t *ret_done)
{
	unsigned call = chance(&part->random, 8);
	struct iovec iov[2];
	struct msghdr msg;
	ssize_t r;

	*ret_done = 0;
	if (call == 0)
		return weft_poll(fd, POLLIN);
	if (call == 1)
		return select_ready(fd);
	if (call == 2)
		return weft_read_all(fd, bytes, count, ret_done);
	if (call == 3) {
		two_pieces(bytes, count, iov, &msg);
		r = weft_readv(fd, iov, 2);
	} else if (call == 4 || part->arena->kind == PIPE) {
		r = weft_read(fd, bytes, count);
	} else {
		r = read_socket(fd, bytes, count, call - 5);
	}
	*ret_done = r > 0 ? (size_t)r : 0;
	return r;
}

static inline void guarded_check(const struct guarded *guarded, uint64_t at,
				 size_t done)
{
	EXPECT(all_are(guarded->before, FENCE_BYTES, CANARY));
	EXPECT(all_are(guarded->behind, FENCE_BYTES, CANARY));
	stream_check(guarded->bytes, done, at);
	EXPECT(all_are(guarded->bytes + done, BYTES_MAX - done, UNTOUCHED));
}

static inline ssize_t read_part(struct part *part)
{
	struct arena *arena = part->arena;
	size_t count = 1 + chance(&part->random, BYTES_MAX), done;
	struct guarded guarded;
	ssize_t r;

	memset(&guarded, CANARY, sizeof(guarded));
	memset(guarded.bytes, UNTOUCHED, BYTES_MAX);
	r = read_somehow(part, arena->fds[0], guarded.bytes, count, &done);
	guarded_check(&guarded, arena->got, done);
	/* Nobody writes there any more. */
	if (r < 0)
		pause_a_little(&part->random);
	guarded_check(&guarded, arena->got, done);
	arena->got += done;
	return r;
}

/* ---- Writing ------------------------------------------------------------- */

static inline ssize_t write_socket(struct part *part, int fd, void *bytes,
				   size_t count, size_t *ret_done)
{
	struct arena *arena = part->arena;
	unsigned call = chance(&part->random, 4);
	struct iovec iov[2];
	struct msghdr msg;
	ssize_t r;

	if (call == 0)
		return weft_send_all(fd, bytes, count, 0, ret_done);
	if (call == 1 && arena->sent + count < FILE_BYTES)
		return weft_sendfile(fd, shared.file, (off_t)arena->sent,
				     count, ret_done);
	if (call == 2)
		r = weft_sendmsg(fd, two_pieces(bytes, count, iov, &msg), 0);
	else
		r = weft_send(fd, bytes, count, 0);
	*ret_done = r > 0 ? (size_t)r : 0;
	return r;
}

static inline ssize_t write_somehow(struct part *part, int fd, void *bytes,
				    size_t count, size_t *ret_done)
{
	unsigned call = chance(&part->random, 6);
	struct iovec iov[2];
	struct msghdr msg;
	ssize_t r;

	*ret_done = 0;
	if (call >= 3 && part->arena->kind == PAIR)
		return write_socket(part, fd, bytes, count, ret_done);
	if (call == 0)
		return weft_write_all(fd, bytes, count, ret_done);
	two_pieces(bytes, count, iov, &msg);
	r = call == 1 ? weft_writev(fd, iov, 2) : weft_write(fd, bytes, count);
	*ret_done = r > 0 ? (size_t)r : 0;
	return r;
}

static inline ssize_t write_part(struct part *part)
{
	struct arena *arena = part->arena;
	unsigned max = chance(&part->random, 8) ? BYTES_MAX : WRITE_MAX;
	size_t count = 1 + chance(&part->random, max), done;
	unsigned char bytes[WRITE_MAX];
	ssize_t r;

	stream_fill(bytes, count, arena->sent);
	r = write_somehow(part, arena->fds[1], bytes, count, &done);
	stream_check(bytes, count, arena->sent);
	/* The call has ended: these bytes must not come. */
	memset(bytes, UNTOUCHED, count);
	arena->sent += done;
	return r;
}

/* ---- The other calls ----------------------------------------------------- */

static inline ssize_t came(int fd)
{
	if (fd < 0)
		return fd;
	return weft_close(fd);
}

static inline ssize_t accept_part(struct part *part)
{
	struct weft_addr peer;
	bool asks = chance(&part->random, 2);
	int r = weft_accept(part->arena->fds[0], asks ? &peer : NULL);

	return r < 0 ? r : came(r) + 1;
}

static inline ssize_t connect_part(struct part *part)
{
	struct arena *arena = part->arena;
	int fd = weft_unix_connect(arena->name, NULL);

	/* relaxed: a count. */
	if (fd >= 0)
		weft__add(&arena->connected, 1u, relaxed);
	return came(fd);
}

static inline ssize_t fifo_part(struct part *part)
{
	return came(weft_open(part->arena->name,
			      part->second ? O_WRONLY : O_RDONLY, 0));
}

static inline ssize_t time_part(struct part *part)
{
	weft_nsec length_ns = chance(&part->random, 60000);
	struct weft_timer timer = { { 0 } };
	struct weft_case at[] = { WEFT_AT(weft_now() + length_ns) };
	ssize_t r;

	switch (chance(&part->random, 3)) {
	case 0:
		return weft_sleep(length_ns);
	case 1:
		r = weft_select(at, 1);
		break;
	default:
		EXPECT(weft_timer_set(&timer, at[0].number) == 0);
		r = weft_timer_wait(&timer);
		if (r < 0)
			(void)weft_timer_clear(&timer);
	}
	EXPECT(r < 0 || weft_now() >= at[0].number);
	return r;
}

static inline ssize_t part_call(struct part *part)
{
	switch (part->arena->kind) {
	case PIPE:
	case PAIR:
		return part->second ? write_part(part) : read_part(part);
	case ACCEPT:
		return accept_part(part);
	case CONNECT:
		return connect_part(part);
	case FIFO:
		return fifo_part(part);
	default:
		return time_part(part);
	}
}

/* ---- Open descriptors ---------------------------------------------------- */

static inline int take_number(struct arena *arena, int fd)
{
	int first = FIRST_FD + (int)arena->index * FDS_EACH;
	int moved = fcntl(fd, F_DUPFD_CLOEXEC, first);

	ARENA_EXPECT(arena, moved >= first && moved < first + FDS_EACH);
	EXPECT(weft_close(fd) == 0);
	return moved;
}

static inline void arena_listen(struct arena *arena, int backlog)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	int fd;

	opts.backlog = backlog;
	snprintf(arena->name, sizeof(arena->name),
		 "unix:@weft-race-%d-%u-%" PRIu64, (int)getpid(), arena->index,
		 arena->races);
	fd = weft_unix_listen(arena->name, &opts);
	ARENA_EXPECT(arena, fd >= 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	arena->fds[0] = take_number(arena, fd);
}

static inline void arena_pair(struct arena *arena)
{
	int little = 4096, fds[2];

	if (arena->kind == PIPE)
		EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	else
		socket_pair(fds);
	if (arena->kind == PIPE)
		fcntl(fds[1], F_SETPIPE_SZ, little);
	else
		setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &little,
			   sizeof(little));
	for (int i = 0; i < 2; i++)
		arena->fds[i] = take_number(arena, fds[i]);
}

static inline void arena_open(struct arena *arena)
{
	arena->kind = (enum kind)chance(&arena->random, KINDS);
	arena->rounds_left = 1 + chance(&arena->random, 24);
	arena->sent = arena->got = 0;
	arena->offered = arena->taken = 0;
	/* relaxed: no other thread is there. */
	weft__store(&arena->connected, 0u, relaxed);
	arena->open = true;
	arena->ended = false;
	arena->fds[0] = arena->fds[1] = -1;
	if (arena->kind == PIPE || arena->kind == PAIR)
		arena_pair(arena);
	else if (arena->kind == ACCEPT)
		arena_listen(arena, 64);
	else if (arena->kind == CONNECT)
		arena_listen(arena, 1);
	if (arena->kind != FIFO)
		return;
	snprintf(arena->name, sizeof(arena->name), "/tmp/weft-race-%d-%u",
		 (int)getpid(), arena->index);
	EXPECT(mkfifo(arena->name, 0600) == 0);
}

/* From the other side than the parts are on. */
static inline bool take_connection(struct arena *arena)
{
	int fd = accept4(arena->fds[0], NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return false;
	EXPECT(weft_close(fd) == 0);
	arena->taken++;
	return true;
}

static inline void offer_connection(struct arena *arena)
{
	struct weft_addr addr;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	EXPECT(fd >= 0 && weft_addr_parse(arena->name, &addr) == 0);
	if (connect(fd, weft_addr_sockaddr(&addr),
		    weft_addr_sockaddr_bytes(&addr)) == 0)
		arena->offered++;
	EXPECT(weft_close(fd) == 0);
}

/* All that went in has come out, unless the end to come out at was closed. */
static inline void arena_account(struct arena *arena)
{
	struct place stream = { .got = arena->got };

	switch (arena->kind) {
	case PIPE:
	case PAIR:
		ARENA_EXPECT(arena, arena->got <= arena->sent);
		if (arena->fds[0] < 0)
			break;
		drain(&stream, arena->fds[0]);
		ARENA_EXPECT(arena, stream.got == arena->sent);
		break;
	case ACCEPT:
		ARENA_EXPECT(arena, arena->taken <= arena->offered);
		while (!arena->ended && arena->taken < arena->offered) {
			int fd = -1;

			WEFT_WITHIN(WEFT_SEC(20))
				fd = weft_accept(arena->fds[0], NULL);
			ARENA_EXPECT(arena, fd >= 0 && weft_close(fd) == 0);
			arena->taken++;
		}
		break;
	case CONNECT:
		while (arena->fds[0] >= 0 && take_connection(arena))
			;
		/* relaxed: they have ended. */
		ARENA_EXPECT(arena, arena->ended ||
				    arena->taken == weft__load(
						    &arena->connected,
						    relaxed));
		break;
	default:
		break;
	}
}

static inline void arena_close(struct arena *arena)
{
	arena_account(arena);
	for (int i = 0; i < 2; i++)
		if (arena->fds[i] >= 0)
			ARENA_EXPECT(arena, weft_close(arena->fds[i]) == 0);
	if (arena->kind == FIFO)
		EXPECT(unlink(arena->name) == 0);
	arena->open = false;
}

#endif
