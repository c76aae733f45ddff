/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the tests of streams share: bytes that show where they belong,
 * both ends of a connection, and whether all buffers are where they should be.
 */
#ifndef WEFT_TESTS_SUPPORT_STREAM_KIT_H
#define WEFT_TESTS_SUPPORT_STREAM_KIT_H

#include <sys/ioctl.h>

#include "io/stream/stream.h"
#include "tests/support/expect.h"
#include "tests/support/io_kit.h"

/* ---- Bytes --------------------------------------------------------------- */

/* The n-th byte that is sent: one that was lost, or sent before, shows. */
unsigned char kit_byte(uint64_t n);

void kit_fill(unsigned char *bytes, size_t count, uint64_t at);

void kit_check(const unsigned char *bytes, size_t count, uint64_t at);

unsigned kit_chance(uint64_t *random, unsigned below);

/* Fewer where a tool makes all of it slow, more in the long tests. */
unsigned kit_rounds(unsigned rounds);

/* ---- Connections --------------------------------------------------------- */

void tcp_pair(int fds[2]);

/* Of either kind. */
void kit_pair(int fds[2], bool tcp);

/* The kernel is to keep little of what is sent. */
void kit_make_small(const int fds[2]);

void kit_go(struct weft_scope *scope, weft_fn fn, void *arg);

void kit_go_pinned(struct weft_scope *scope, weft_fn fn, void *arg);

/* The bytes that the kernel has for the descriptor, not yet received. */
int kit_unreceived(int fd);

/* So far, in the runtime. */
uint64_t requests_made(void);

int peek_within(struct weft_stream *stream, weft_nsec max_ns);

/* It has been used, and has a request in the kernel. */
void kit_warm_up(struct weft_stream *stream, int peer);

enum { KIT_SEVERAL = 3 * WEFT__POOL_SMALL_BYTES + 100 };

/* All of it has come, and lies in several buffers; or as much of it as came
 * before the request ended, because a reader on another worker has not given
 * its buffers back to the ring. */
void kit_receive_several(struct weft_stream *stream, const int fds[2],
			 uint64_t at);

/* Sends so many bytes in chunks of all lengths, pausing now and then. */
struct kit_sender {
	int fd;
	uint64_t bytes;
	unsigned chunk_max;
	uint64_t random;
};

int64_t kit_send(void *arg);

/* Takes some of what is there, in one way or the other.  As
 * weft_stream_read(). */
ssize_t kit_take(struct weft_stream *stream, uint64_t at, uint64_t *random);

/* Takes what is sent until that many bytes have come. */
void kit_take_all(struct weft_stream *stream, uint64_t at, uint64_t until,
		  uint64_t random);

/* So many bytes through a connection, which is closed then. */
void kit_pour_through(const int fds[2], unsigned chunk_max, uint64_t bytes);

void kit_pour(unsigned chunk_max, uint64_t bytes);

/* Each is waited for, or not. */
void kit_exchange(struct weft_stream *stream, int peer, unsigned count);

/* ---- Buffers ------------------------------------------------------------- */

struct weft__pool *kit_pool(unsigned worker, enum weft__pool_kind kind);

/* How many of all workers the kernel has taken so far. */
uint32_t kit_taken(enum weft__pool_kind kind);

void kit_set_reports_ends(bool reports);

int64_t kit_main(void *arg);

void kit_run(weft_fn fn, unsigned workers);

/* A test whose body runs in a task, on one worker, on two, and on three; in the
 * end all buffers are where they should be.  Two are as on a kernel that does
 * not tell of the end of what is no TCP connection. */
#define STREAM_TEST(name)                               \
	static int64_t name##_task(void *arg);          \
	START_TEST(name)                                \
	{                                               \
		kit_run(name##_task, 1 + (unsigned)_i); \
	}                                               \
	END_TEST                                        \
	static int64_t name##_task(void *arg __attribute__((unused)))

#define stream_add_test(tcase, name) tcase_add_loop_test(tcase, name, 0, 3)

#endif
