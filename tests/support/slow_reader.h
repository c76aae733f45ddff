/* SPDX-License-Identifier: MIT */
/*
 * Slow reader - a task that reads a stream to its end in small steps, and
 * checks the bytes.
 */
#ifndef WEFT_TESTS_SUPPORT_SLOW_READER_H
#define WEFT_TESTS_SUPPORT_SLOW_READER_H

#include "tests/support/expect.h"
#include "tests/support/stream_kit.h"

struct slow_reader {
	struct weft_stream *stream;
	weft__atomic(uint64_t) at; /* the task that reads writes it */
};

static inline uint64_t read_by(const struct slow_reader *reader)
{
	/* relaxed: a count. */
	return weft__load(&reader->at, relaxed);
}

static inline int64_t read_slowly(void *arg)
{
	struct slow_reader *reader = *(struct slow_reader **)arg;
	const void *data;
	ssize_t n;

	while ((n = weft_stream_peek(reader->stream, &data)) > 0) {
		kit_check(data, (size_t)n, read_by(reader));
		weft_stream_skip(reader->stream, (size_t)n);
		/* relaxed: a count. */
		weft__add(&reader->at, (uint64_t)n, relaxed);
		EXPECT(weft_sleep(WEFT_US(200)) == 0);
	}
	EXPECT(n == 0);
	return 0;
}

#endif
