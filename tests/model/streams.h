/* SPDX-License-Identifier: MIT */
/*
 * Streams - the parts that the models of streams share.
 *
 * Thread 0 is a task that has the stream, and goes on with another worker, of
 * the same ring, whenever it was suspended.  Worker 2 has a ring of its own;
 * worker 1 reaps, and keeps buffers that it has no use for.
 */
#ifndef WEFT_TESTS_MODEL_STREAMS_H
#define WEFT_TESTS_MODEL_STREAMS_H

#include "tests/model/sockets.h"

/*
 * Setting up.
 */

static void pool_setup(struct weft__shard *shard, unsigned kind, unsigned made)
{
	struct weft__pool *buffers = &shard->pools[kind];

	buffers->ring = entries[kind];
	buffers->memory = memory[kind];
	buffers->pieces = pieces[kind];
	buffers->each = BUFFER_BYTES;
	buffers->max = BUFFERS;
	buffers->group = (uint8_t)kind;
	while (buffers->made < made)
		weft__pool_give(buffers, buffers->made++);
}

/* A stream that was not used yet, and as many buffers for it as given. */
static void setup_stream(unsigned buffers)
{
	requests_setup();
	memset(&stream, 0, sizeof(stream));
	memset(pieces, 0, sizeof(pieces));
	memset(entries, 0, sizeof(entries));
	memset(taken, 0, sizeof(taken));
	memset(due, 0, sizeof(due));
	memset(in_kernel, 0, sizeof(in_kernel));
	memset(out_is_used, 0, sizeof(out_is_used));
	memset(&reapers, 0, sizeof(reapers));
	memset(&handed, 0, sizeof(handed));
	deaths = refusals = failures = 0;
	shorts = blocks = breaks = directs = 0;
	sent = got = read_so_far = put_so_far = 0;
	closed = 0;
	failed = deaf = false;
	end_after = 0;
	fault = 0;
	to_send = 1;
	piece_bytes = 1;
	end = 0;
	end_has_buffer = false;
	served = &shards[0];
	pool[READER_TOO].shard = &shards[0];
	pool[1].shard = &reapers;
	for (unsigned i = 0; i < 2; i++) {
		shards[i].ring.flags = &no_completions[0];
		shards[i].ring.reaped = &no_completions[1];
		shards[i].ring.posted = &no_completions[2];
	}
	for (unsigned i = 0; i < MODEL_THREADS; i++)
		pool[i].ops_left = WEFT__OPS_BUDGET;
	pool_setup(served, WEFT__POOL_SMALL, buffers);
	shards[0].ring.loses_resets = shards[1].ring.loses_resets = true;
	weft_stream_init(&stream, FD);
	model_name(&weft__stream(&stream)->word, "word");
	model_name(&weft__stream(&stream)->reader, "reader");
	model_name(&stream, "stream");
	model_name(&shards[0].lock, "lock");
	model_name(&shards[0].pools[0].returned, "returned");
	model_name(in_kernel, "cancelled");
	model_name(outs, "an out");
	model_name(due, "due");
}

/* The kernel has the request, a single one for all bytes that come. */
static void arm(struct weft__worker *home)
{
	struct weft__stream *s = weft__stream(&stream);

	s->owns = s->began = true;
	fds[FD].owned = true;
	s->home = home;
	s->pool = pool_of(WEFT__POOL_SMALL);
	s->said = WEFT__STREAM_SAID_NOTHING;
	s->word = WEFT__STREAM_ARMED;
	in_kernel[ring_of(served)][RECEIVES].asked = (struct asked){
		stream_request(s, true), weft__stream_user_data(s)
	};
	in_kernel[ring_of(served)][RECEIVES].live = true;
	due[ring_of(served)].count = 1;
}

/* In how many places of the pool is the buffer? */
static unsigned places(unsigned kind, uint32_t piece)
{
	const struct weft__pool *buffers = pool_of(kind);
	unsigned count = 0;

	for (uint16_t i = taken[kind]; i != (uint16_t)buffers->given; i++)
		count += buffers->ring[i & (BUFFERS - 1)].id == piece;
	for (uint32_t i = buffers->returned; i; i = buffers->pieces[i - 1].next)
		count += i - 1 == piece;
	return count;
}

static void check_pools(void)
{
	for (unsigned kind = 0; kind < WEFT__POOLS; kind++)
		for (uint32_t i = 0; i < pool_of(kind)->made; i++)
			model_assert(places(kind, i) == 1,
				     "P1: a buffer is in one place");
}

static void setup_fresh(void *arg)
{
	(void)arg;
	setup_stream(2);
	to_send = 2;
}

static void setup_armed(void *arg)
{
	(void)arg;
	setup_stream(3);
	arm(&pool[0]);
}

static void setup_silent(void *arg)
{
	setup_armed(arg);
	end = NOTHING_MORE;
}

/* There is a second task. */
static void setup_second(void)
{
	records[OWNER].state = WEFT__GENERATION;
	pool[OWNER].current = &records[OWNER];
	weft__scope_link(&records[OWNER]);
}

/* Task 2 sends, through the same ring. */
static void setup_both(void *arg)
{
	setup_armed(arg);
	setup_second();
	pool[OWNER].shard = pool[OWNER_TOO].shard = &shards[0];
}

static void check(void *arg)
{
	(void)arg;
	requests_check(NULL);
	check_pools();
	model_assert(closed == 1 && !fds[FD].owned, "the stream was closed");
	model_assert(!served->recent && served->recent_count == 0,
		     "STR6: a stream that was closed is in no list");
}

static void check_all_read(void *arg)
{
	check(arg);
	model_assert(read_so_far == to_send, "all that was sent is read");
}

/*
 * The steps of the threads.
 */

/* Reads and skips the next piece, if one came. */
static ssize_t read_piece(void)
{
	const void *data;
	ssize_t n = weft_stream_peek(&stream, &data);

	if (n <= 0)
		return n;
	model_assert(n == piece_bytes, "a piece is seen whole");
	model_assert(*(const uint8_t *)data == ++read_so_far,
		     "what was sent is read in order, and once");
	weft_stream_skip(&stream, (size_t)n);
	return n;
}

static ssize_t read_all(void)
{
	ssize_t n;

	while ((n = read_piece()) > 0)
		;
	return n;
}

THREAD(nothing, )
THREAD(wake_0, wake(0);)

#endif
