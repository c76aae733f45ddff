/* SPDX-License-Identifier: MIT */
#include "tests/support/stream_kit.h"

#include "tests/support/few.h"

unsigned char kit_byte(uint64_t n)
{
	return (unsigned char)((uint32_t)n * UINT32_C(2654435761) >> 24);
}

void kit_fill(unsigned char *bytes, size_t count, uint64_t at)
{
	for (size_t i = 0; i < count; i++)
		bytes[i] = kit_byte(at + i);
}

void kit_check(const unsigned char *bytes, size_t count, uint64_t at)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] != kit_byte(at + i))
			ck_abort_msg("byte %lu is not the one sent",
				     (unsigned long)(at + i));
}

unsigned kit_chance(uint64_t *random, unsigned below)
{
	*random = *random * UINT64_C(6364136223846793005) + 1;
	return (unsigned)((*random >> 33) % below);
}

unsigned kit_rounds(unsigned rounds)
{
#if defined(WEFT__ASAN) || defined(WEFT__TSAN) || defined(WEFT_VALGRIND)
	rounds = rounds / 8 + 1;
#else
	rounds = (rounds + test_few() - 1) / test_few();
#endif
	return getenv("WEFT_TEST_LONG") ? rounds * 20 : rounds;
}

void tcp_pair(int fds[2])
{
	char address[WEFT_ADDR_TEXT_BYTES];
	int listener = tcp_listener(address);

	fds[0] = weft_tcp_connect(address, NULL);
	EXPECT(fds[0] >= 0);
	fds[1] = weft_accept(listener, NULL);
	EXPECT(fds[1] >= 0);
	EXPECT(weft_close(listener) == 0);
}

void kit_pair(int fds[2], bool tcp)
{
	if (tcp)
		tcp_pair(fds);
	else
		socket_pair(fds);
}

void kit_make_small(const int fds[2])
{
	int bytes = 16 << 10;

	for (int i = 0; i < 2; i++) {
		EXPECT(setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &bytes,
				  sizeof(bytes)) == 0);
		EXPECT(setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes,
				  sizeof(bytes)) == 0);
	}
}

void kit_go(struct weft_scope *scope, weft_fn fn, void *arg)
{
	EXPECT(weft_go(scope, fn, &arg, sizeof(arg)) == 0);
}

void kit_go_pinned(struct weft_scope *scope, weft_fn fn, void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.flags = WEFT_PINNED;
	EXPECT(weft_go_opts(scope, fn, &arg, sizeof(arg), &opts) == 0);
}

int kit_unreceived(int fd)
{
	int bytes = 0;

	EXPECT(ioctl(fd, FIONREAD, &bytes) == 0);
	return bytes;
}

uint64_t requests_made(void)
{
	struct weft_stats stats;

	EXPECT(weft_stats_get(weft_runtime_self(), &stats) == 0);
	return stats.total.ops;
}

int peek_within(struct weft_stream *stream, weft_nsec max_ns)
{
	const void *data;
	ssize_t n = 0;

	WEFT_WITHIN (max_ns)
		n = weft_stream_peek(stream, &data);
	return (int)n;
}

void kit_warm_up(struct weft_stream *stream, int peer)
{
	char byte = 0;

	EXPECT(weft_write_all(peer, "w", 1, NULL) == 0);
	EXPECT(weft_stream_read(stream, &byte, 1) == 1 && byte == 'w');
	EXPECT(peek_within(stream, WEFT_US(10)) == -ETIMEDOUT);
}

static bool kit_is_armed(struct weft_stream *stream)
{
	return weft__load(&weft__stream(stream)->word, acquire) &
	       WEFT__STREAM_ARMED;
}

void kit_receive_several(struct weft_stream *stream, const int fds[2],
			 uint64_t at)
{
	unsigned char bytes[KIT_SEVERAL];

	kit_fill(bytes, KIT_SEVERAL, at);
	ck_assert_int_eq(weft_write_all(fds[1], bytes, KIT_SEVERAL, NULL), 0);
	ck_assert_int_gt(peek_within(stream, WEFT_SEC(20)), 0);
	wait_until(kit_unreceived(fds[0]) == 0 || !kit_is_armed(stream));
	/* And the bytes that were received are reported. */
	ck_assert_int_eq(weft_sleep(WEFT_MS(1)), 0);
}

int64_t kit_send(void *arg)
{
	struct kit_sender *sender = *(struct kit_sender **)arg;
	unsigned char *chunk = malloc(sender->chunk_max);
	uint64_t at = 0;

	EXPECT(chunk != NULL);
	while (at < sender->bytes) {
		size_t count =
			1 + kit_chance(&sender->random, sender->chunk_max);

		if (count > sender->bytes - at)
			count = (size_t)(sender->bytes - at);
		kit_fill(chunk, count, at);
		EXPECT(weft_write_all(sender->fd, chunk, count, NULL) == 0);
		at += count;
		if (kit_chance(&sender->random, 8) == 0)
			EXPECT(weft_yield() == 0);
	}
	free(chunk);
	return 0;
}

ssize_t kit_take(struct weft_stream *stream, uint64_t at, uint64_t *random)
{
	unsigned char buf[9000];
	const void *data;
	ssize_t n;

	if (kit_chance(random, 2)) {
		n = weft_stream_read(stream, buf,
				     1 + kit_chance(random, sizeof(buf)));
		if (n > 0)
			kit_check(buf, (size_t)n, at);
		return n;
	}
	n = weft_stream_peek(stream, &data);
	if (n <= 0)
		return n;
	if (kit_chance(random, 4))
		n = 1 + (ssize_t)kit_chance(random, (unsigned)n);
	kit_check(data, (size_t)n, at);
	weft_stream_skip(stream, (size_t)n);
	return n;
}

void kit_take_all(struct weft_stream *stream, uint64_t at, uint64_t until,
		  uint64_t random)
{
	while (at < until) {
		ssize_t n = kit_take(stream, at, &random);

		EXPECT(n > 0);
		at += (uint64_t)n;
	}
}

void kit_pour_through(const int fds[2], unsigned chunk_max, uint64_t bytes)
{
	struct weft_stream stream = WEFT_STREAM_INIT(fds[0]);
	struct kit_sender sender = { fds[1], bytes, chunk_max, bytes };

	WEFT_SUPERVISE (scope) {
		kit_go(scope, kit_send, &sender);
		kit_take_all(&stream, 0, bytes, chunk_max);
	}
	EXPECT(weft_stream_close(&stream) == 0);
	EXPECT(weft_close(fds[1]) == 0);
}

void kit_pour(unsigned chunk_max, uint64_t bytes)
{
	int fds[2];

	socket_pair(fds);
	kit_pour_through(fds, chunk_max, bytes);
}

void kit_exchange(struct weft_stream *stream, int peer, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		unsigned char byte = kit_byte(i), back;

		if (i % 3 == 0)
			EXPECT(peek_within(stream, WEFT_US(20)) == -ETIMEDOUT);
		EXPECT(weft_write_all(peer, &byte, 1, NULL) == 0);
		EXPECT(weft_stream_read(stream, &back, 1) == 1);
		EXPECT(back == byte);
	}
}

struct weft__pool *kit_pool(unsigned worker, enum weft__pool_kind kind)
{
	return &weft__shard(weft_runtime_self()->workers[worker])->pools[kind];
}

uint32_t kit_taken(enum weft__pool_kind kind)
{
	uint32_t count = 0;

	/* relaxed: a look. */
	for (unsigned i = 0; i < weft_runtime_self()->workers_count; i++)
		count += weft__load(&kit_pool(i, kind)->taken, relaxed);
	return count;
}

/* Those that are neither in the ring nor returned, while no stream is used. */
static uint32_t pool_missing(struct weft__pool *pool)
{
	/* relaxed: no other thread takes any. */
	uint32_t there = pool->given - weft__load(&pool->taken, relaxed);
	/* pairs: [pool.returned] */
	uint32_t piece = weft__load(&pool->returned, acquire);

	for (; piece; piece = pool->pieces[piece - 1].next)
		there++;
	return pool->made - there;
}

/* All streams were closed: so all buffers are back. */
static void expect_no_buffer_missing(void)
{
	for (unsigned i = 0; i < weft_runtime_self()->workers_count; i++)
		for (int kind = 0; kind < WEFT__POOLS; kind++)
			ck_assert_uint_eq(
				pool_missing(kit_pool(
					i, (enum weft__pool_kind)kind)),
				0);
}

void kit_set_reports_ends(bool reports)
{
	struct weft_runtime *runtime = weft_runtime_self();

	for (unsigned i = 0; i < runtime->workers_count; i++)
		weft__shard(runtime->workers[i])->ring.reports_ends = reports;
}

int64_t kit_main(void *arg)
{
	weft_fn fn = *(weft_fn *)arg;
	int64_t r;

	if (weft_runtime_self()->workers_count == 2)
		kit_set_reports_ends(false);
	r = fn(NULL);
	expect_no_buffer_missing();
	return r;
}

void kit_run(weft_fn fn, unsigned workers)
{
	io_run(kit_main, &fn, workers);
}
