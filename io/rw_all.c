/* SPDX-License-Identifier: MIT */
/*
 * Calls that loop until all bytes are moved.
 *
 * Each call has a step that moves a part.  all_run() repeats it, and ends with
 * -ECANCELED if the descriptor was closed between two steps.
 */
#include <weft/io.h>

#include <errno.h>

#include "io/request/call.h"

/* The arguments of a step, which moves some of the bytes. */
struct all {
	int fd;
	int flags;
	char *buf;
	off_t offset;
};

typedef ssize_t (*all_step)(const struct all *all, size_t done, size_t bytes);

static ssize_t step_read(const struct all *all, size_t done, size_t bytes)
{
	return weft_read(all->fd, all->buf + done, bytes);
}

static ssize_t step_write(const struct all *all, size_t done, size_t bytes)
{
	return weft_write(all->fd, all->buf + done, bytes);
}

static ssize_t step_pread(const struct all *all, size_t done, size_t bytes)
{
	return weft_pread(all->fd, all->buf + done, bytes,
			  all->offset + (off_t)done);
}

static ssize_t step_pwrite(const struct all *all, size_t done, size_t bytes)
{
	return weft_pwrite(all->fd, all->buf + done, bytes,
			   all->offset + (off_t)done);
}

static ssize_t step_send(const struct all *all, size_t done, size_t bytes)
{
	return weft_send(all->fd, all->buf + done, bytes, all->flags);
}

/* none: the result if a step moves nothing. */
static int all_run(const struct all *all, size_t bytes, all_step step, int none,
		   size_t *ret_done)
{
	uint8_t closes = weft__call_closes(all->fd);
	size_t done = 0;
	ssize_t n = 1;

	while (n > 0 && done < bytes) {
		/* The rest is not for another file that has the number by
		 * then. */
		bool ours = weft__call_closes(all->fd) == closes;

		n = ours ? step(all, done, bytes - done) : -ECANCELED;
		if (n > 0)
			done += (size_t)n;
	}
	n = weft__call_overtaken(n, weft__call_closes(all->fd) != closes);
	if (ret_done)
		*ret_done = done;
	if (n < 0)
		return (int)n;
	return n == 0 ? none : 0;
}

int weft_read_all(int fd, void *buf, size_t bytes, size_t *ret_done)
{
	struct all all = { .fd = fd, .buf = buf };

	return all_run(&all, bytes, step_read, -ENODATA, ret_done);
}

int weft_write_all(int fd, const void *buf, size_t bytes, size_t *ret_done)
{
	struct all all = { .fd = fd, .buf = (char *)(uintptr_t)buf };

	return all_run(&all, bytes, step_write, -EIO, ret_done);
}

int weft_pread_all(int fd, void *buf, size_t bytes, off_t offset,
		   size_t *ret_done)
{
	struct all all = { .fd = fd, .buf = buf, .offset = offset };

	return all_run(&all, bytes, step_pread, -ENODATA, ret_done);
}

int weft_pwrite_all(int fd, const void *buf, size_t bytes, off_t offset,
		    size_t *ret_done)
{
	struct all all = {
		.fd = fd, .buf = (char *)(uintptr_t)buf, .offset = offset
	};

	return all_run(&all, bytes, step_pwrite, -EIO, ret_done);
}

int weft_send_all(int fd, const void *buf, size_t bytes, int flags,
		  size_t *ret_done)
{
	struct all all = {
		.fd = fd, .flags = flags, .buf = (char *)(uintptr_t)buf
	};

	return all_run(&all, bytes, step_send, -EIO, ret_done);
}
