/* SPDX-License-Identifier: MIT */
/*
 * Resident - a table of ranges that were found in the page cache.
 *
 * A range has one place in the table, a word: what is left of a hash of the
 * file and the range, and when it was found.  A word holds all that is known of
 * a range, so it orders nothing else.  Two ranges of one hash are taken for
 * one, which is one of the wrong answers of the header.
 *
 * A file that changed is another one here if its size is.  Most changes leave
 * the pages in the cache; those by O_DIRECT and fallocate(2) do not.
 *
 * Rejected
 *   cachestat(2): it knows nothing of an overlay's files.
 *   To keep the mapping: it would hold the file open, and its locks.
 */
#include "io/resident.h"

#include <time.h>

#include "runtime/base/atomic.h"

/* How long a range is believed to stay.  The kernel first evicts what was not
 * read for long, and the read that follows the look marks the pages. */
enum { STAYS_MS = 10 };

/* For a longer range the look takes little beside the read, and a wrong answer
 * more than one wait. */
enum { BELIEVED_BYTES_MAX = 128 << 10 };

enum { PLACES = 1024, TIME_BITS = 24 };

#define TIME_MASK ((1u << TIME_BITS) - 1)

static weft__atomic(uint64_t) found[PLACES];

/* The end of splitmix64: Steele, Lea, Flood, Fast splittable pseudorandom
 * number generators, OOPSLA 2014. */
static uint64_t mixed(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static uint64_t hash_of(const struct statx *status, off_t offset, size_t bytes)
{
	uint64_t device = (uint64_t)status->stx_dev_major << 32 |
			  status->stx_dev_minor;
	uint64_t hash = mixed(weft__statx_mount(status) ^ device << 20);

	hash = mixed(hash ^ status->stx_ino);
	hash = mixed(hash ^ status->stx_size);
	hash = mixed(hash ^ (uint64_t)offset);
	return mixed(hash ^ bytes);
}

/* By the clock of the kernel's ticks, which is read without a system call on
 * every machine. */
static uint32_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec * 1000u +
	       (uint32_t)(now.tv_nsec / 1000000);
}

/* 24 bits of time: a word of 4.6 hours ago may be believed for 10 ms more. */
static bool is_fresh(uint64_t word, uint64_t hash, uint32_t at_ms)
{
	return word >> TIME_BITS == hash >> TIME_BITS &&
	       ((at_ms - (uint32_t)word) & TIME_MASK) < STAYS_MS;
}

size_t weft__resident(int fd, const struct statx *status, off_t offset,
		      size_t bytes)
{
	off_t file_bytes = (off_t)status->stx_size;
	weft__atomic(uint64_t) *place;
	size_t resident;
	uint64_t hash;
	uint32_t at_ms;

	if (offset < 0 || offset >= file_bytes)
		return 0;
	if (bytes > (size_t)(file_bytes - offset))
		bytes = (size_t)(file_bytes - offset);
	hash = hash_of(status, offset, bytes);
	place = &found[hash % PLACES];
	at_ms = now_ms();
	/* relaxed: see above. */
	if (is_fresh(weft__load(place, relaxed), hash, at_ms))
		return bytes;
	resident = weft__look_resident(fd, offset, bytes, file_bytes);
	if (resident == bytes && bytes <= BELIEVED_BYTES_MAX)
		/* relaxed: see above. */
		weft__store(place, (hash & ~(uint64_t)TIME_MASK) |
					   (at_ms & TIME_MASK), relaxed);
	return resident;
}
