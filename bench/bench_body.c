/* SPDX-License-Identifier: MIT */
/*
 * The bodies of the measured tasks; see bench_body.h.
 */
#include "bench/bench_body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <weft/weft.h>

int64_t body_empty(void *arg)
{
	(void)arg;
	return 0;
}

int64_t body_suspended(void *arg)
{
	(void)arg;
	return weft_yield();
}

int64_t body_yields(void *arg)
{
	int64_t r = 0;

	for (uint64_t n = *(uint64_t *)arg; n > 0 && r == 0; n--)
		r = weft_yield();
	return r;
}

static void note_late(struct body_sleeper *sleeper, weft_nsec due_ns)
{
	weft_nsec now_ns = weft_now();

	*sleeper->late_ns = now_ns > due_ns ? now_ns - due_ns : 0;
	if (now_ns < due_ns)
		/* relaxed: read after the tasks were joined. */
		weft__add(sleeper->early, (uint64_t)1, relaxed);
}

int64_t body_sleeper(void *arg)
{
	weft_nsec due_ns = weft_now() + WEFT_MS(10);
	int r = weft_sleep(WEFT_MS(10));

	note_late(arg, due_ns);
	return r;
}

int64_t body_future_sleeper(void *state)
{
	struct body_future_sleeper *s = state;
	int r;

	if (!s->due_ns)
		s->due_ns = weft_now() + WEFT_MS(10);
	r = weft_await_sleep_until(s->due_ns);
	if (r != WEFT_PENDING)
		note_late(&s->sleeper, s->due_ns);
	return r;
}

int64_t body_sleeps_long(void *arg)
{
	weft__atomic(uint64_t) *up = *(weft__atomic(uint64_t) **)arg;

	/* relaxed: a count that publishes nothing. */
	weft__add(up, (uint64_t)1, relaxed);
	return weft_sleep(WEFT_SEC(3600));
}

int64_t body_future_sleeps_long(void *state)
{
	struct body_future_long *s = state;

	if (!s->at++)
		/* relaxed: as above. */
		weft__add(s->up, (uint64_t)1, relaxed);
	return weft_await_sleep(WEFT_SEC(3600));
}

static inline uint64_t random_next(uint64_t seed)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

int64_t body_reader(void *arg)
{
	struct body_reader *reader = *(struct body_reader **)arg;
	uint64_t seed = reader->seed, done = 0;
	size_t bytes = reader->block_bytes;

	/* relaxed: a flag that publishes nothing. */
	while (!weft__load(reader->stop, relaxed)) {
		ssize_t n;

		seed = random_next(seed);
		n = weft_pread(reader->fd, reader->buffer, bytes,
			       (off_t)(seed % reader->blocks * bytes));
		if (n != (ssize_t)bytes)
			return n < 0 ? n : -EIO;
		done++;
	}
	reader->done = done;
	return 0;
}

int64_t body_copier(void *arg)
{
	struct body_copier *c = arg;
	size_t chunk = c->chunk_bytes;

	for (;;) {
		/* relaxed: hands out offsets; the data is in the files. */
		uint64_t at = weft__add(c->next, (uint64_t)chunk, relaxed);
		size_t bytes = c->size - at < chunk ? (size_t)(c->size - at) :
						      chunk;
		int r;

		if (at >= c->size)
			return 0;
		r = weft_pread_all(c->src, c->buffer, bytes, (off_t)at, NULL);
		if (r == 0)
			r = weft_pwrite_all(c->dst, c->buffer, bytes,
					    (off_t)at, NULL);
		if (r < 0)
			return r;
	}
}

void body_file_name(char *ret_name, const char *dir, uint64_t number)
{
	(void)snprintf(ret_name, BODY_NAME_BYTES, "%s/%u/%u", dir,
		       (unsigned)(number / BODY_FILES_A_DIR),
		       (unsigned)(number % BODY_FILES_A_DIR));
}

/* Adler's first sum, a byte at a time. */
static uint64_t sum_bytes(const unsigned char *bytes, ssize_t count)
{
	uint64_t sum = 0;

	for (ssize_t i = 0; i < count; i++)
		sum += bytes[i];
	return sum;
}

static int64_t sum_file(const char *name, bool plain, uint64_t *sum)
{
	unsigned char bytes[4096];
	int fd = plain ? open(name, O_RDONLY | O_CLOEXEC) :
			 weft_open(name, O_RDONLY, 0);
	ssize_t n;

	if (fd < 0)
		return plain ? -errno : fd;
	do {
		n = plain ? read(fd, bytes, sizeof(bytes)) :
			    weft_read(fd, bytes, sizeof(bytes));
		*sum += sum_bytes(bytes, n);
	} while (n > 0);
	return plain ? close(fd) + n : weft_close(fd) + n;
}

int64_t body_summer(void *arg)
{
	struct body_summer *summer = arg;
	char name[BODY_NAME_BYTES];
	uint64_t sum = 0, number;
	int64_t r = 0;

	/* relaxed: hands out numbers. */
	while ((number = weft__add(summer->next, (uint64_t)1, relaxed)) <
		       summer->files &&
	       r >= 0) {
		body_file_name(name, summer->dir, number);
		r = sum_file(name, summer->plain, &sum);
	}
	/* relaxed: read after the tasks were joined. */
	weft__add(summer->sum, sum, relaxed);
	return r;
}
