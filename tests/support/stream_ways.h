/* SPDX-License-Identifier: MIT */
/*
 * The ways that the bytes a stream has put can go out.
 *
 * go_all_ways() runs a function once for each way: over either kind of socket,
 * non-blocking or not, by a call or through the ring.  The other functions are
 * its tools: the task puts, and the peer receives, slowly or at a time of its
 * own.
 */
#ifndef WEFT_TESTS_SUPPORT_STREAM_WAYS_H
#define WEFT_TESTS_SUPPORT_STREAM_WAYS_H

#include "tests/support/stream_kit.h"

/* A stream, and the peer at its other end.  Its task is alone on its worker,
 * and then sends by a call; or beside one that is always ready, and then sends
 * through the ring. */
struct way {
	struct weft_stream stream;
	int fd, peer;
	bool tcp, busy, nonblocking;
	uint64_t bytes; /* that the peer is to receive */
};

int64_t be_ready(void *arg);

void go_one_way(struct way *way, void (*fn)(struct way *way));

/* The function closes both ends. */
void go_all_ways(void (*fn)(struct way *way));

void way_end(struct way *way);

void put_bytes(struct way *way, size_t bytes, uint64_t at);

/* The peer has those, and no more. */
void expect_there(const struct way *way, size_t bytes, uint64_t at);

void expect_nothing_there(const struct way *way);

void expect_no_buffers(struct way *way);

int64_t receive(void *arg);

/* Reads now and then, and less than is sent. */
int64_t sip(void *arg);

void way_make_small(const struct way *way);

/* The kernel takes no more.  Returns how much it has. */
uint64_t way_stuff(const struct way *way);

/* The peer asks before it takes what it was sent. */
void ask_first(struct way *way);

/* However many sends it takes: the peer asks when it has all. */
void answer_bit_by_bit(struct way *way);

#endif
