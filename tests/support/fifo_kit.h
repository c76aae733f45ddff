/* SPDX-License-Identifier: MIT */
/*
 * FIFOs of a test, and the ways to open them.
 */
#ifndef WEFT_TESTS_SUPPORT_FIFO_KIT_H
#define WEFT_TESTS_SUPPORT_FIFO_KIT_H

#include <linux/openat2.h>
#include <signal.h>
#include <sys/stat.h>

#include "tests/support/io_kit.h"

struct fifo {
	char path[64];
	char link[64];
	weft__atomic(int) thread; /* of the other end, once it is to open */
	ssize_t moved;		  /* by the other end: bytes, or -errno */
};

static inline void fifo_make_nth(struct fifo *fifo, unsigned n)
{
	snprintf(fifo->path, sizeof(fifo->path), "/tmp/weft-fifo3-%d-%u",
		 (int)getpid(), n);
	snprintf(fifo->link, sizeof(fifo->link), "/tmp/weft-fifo3-%d-%u-link",
		 (int)getpid(), n);
	unlink(fifo->path);
	unlink(fifo->link);
	ck_assert_int_eq(mkfifo(fifo->path, 0600), 0);
	ck_assert_int_eq(symlink(fifo->path, fifo->link), 0);
	/* A write to a closed end is to be an error, not the end of all. */
	signal(SIGPIPE, SIG_IGN);
}

static inline void fifo_make(struct fifo *fifo)
{
	fifo_make_nth(fifo, 0);
}

static inline void fifo_drop(struct fifo *fifo)
{
	unlink(fifo->path);
	unlink(fifo->link);
}

/* ---- Ways to open -------------------------------------------------------- */

static inline int by_open(const struct fifo *fifo, int flags)
{
	return weft_open(fifo->path, flags, 0);
}

/* The caller may have little time: the directory is not a part of it. */
static inline int by_openat(const struct fifo *fifo, int flags)
{
	int dir_fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = weft_openat(dir_fd, strrchr(fifo->path, '/') + 1, flags, 0);

	ck_assert_int_eq(weft_close(dir_fd), 0);
	return fd;
}

static inline int by_openat2(const struct fifo *fifo, int flags)
{
	struct open_how how = {
		.flags = (unsigned)flags,
		.resolve = RESOLVE_NO_MAGICLINKS,
	};

	return weft_openat2(AT_FDCWD, fifo->path, &how, sizeof(how));
}

static inline int by_link(const struct fifo *fifo, int flags)
{
	return weft_open(fifo->link, flags, 0);
}

static inline int by_creating(const struct fifo *fifo, int flags)
{
	return weft_open(fifo->path, flags | O_CREAT, 0600);
}

static inline int by_truncating(const struct fifo *fifo, int flags)
{
	return weft_open(fifo->path, flags | O_TRUNC | O_NOFOLLOW, 0);
}

static int (*const ways[])(const struct fifo *fifo, int flags) = {
	by_open, by_openat, by_openat2, by_link, by_creating, by_truncating,
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

#endif
