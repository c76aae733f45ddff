/* SPDX-License-Identifier: MIT */
/* Out of line, as those of syscall.c. */
#include "io/os/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/os/sigpipe.h"

#define LEAF __attribute__((noinline))

static inline long result(long r)
{
	return r < 0 ? -errno : r;
}

static long splice_once(int from, int to, size_t bytes)
{
	long r;

	do
		r = result(syscall(SYS_splice, from, NULL, to, NULL, bytes,
				   SPLICE_F_MOVE | SPLICE_F_NONBLOCK));
	while (r == -EINTR);
	return r;
}

LEAF int weft__splice_pipe(int ret_fds[2])
{
	return (int)result(pipe2(ret_fds, O_CLOEXEC | O_NONBLOCK));
}

/* As with sendfile(2), what is at the other end may break after some bytes. */
LEAF ssize_t weft__splice(int from, int to, size_t bytes)
{
	bool blocked = weft__sigpipe_block();
	ssize_t r = splice_once(from, to, bytes);

	weft__sigpipe_restore(blocked,
			      r == -EPIPE || (r > 0 && (size_t)r < bytes));
	return r;
}

LEAF ssize_t weft__splice_in(int from, int own, size_t bytes)
{
	return splice_once(from, own, bytes);
}

LEAF ssize_t weft__splice_tee(int from, int own, size_t bytes)
{
	long r;

	do
		r = result(syscall(SYS_tee, from, own, bytes,
				   SPLICE_F_NONBLOCK));
	while (r == -EINTR);
	return r;
}

LEAF int weft__splice_read(int own, void *buf, size_t bytes)
{
	char *to = buf;

	/* If they came from a pipe in O_DIRECT mode, a read gets one packet. */
	for (ssize_t n; bytes > 0; to += n, bytes -= (size_t)n) {
		n = read(own, to, bytes);
		if (n <= 0)
			return -EIO;
	}
	return 0;
}

LEAF ssize_t weft__splice_range(int from, int64_t *offset, int to,
				int64_t *to_offset, size_t bytes)
{
	long r;

	do
		r = result(syscall(SYS_copy_file_range, from, offset, to,
				   to_offset, bytes, 0));
	while (r == -EINTR);
	return r;
}

LEAF int weft__splice_seek(int fd, off_t offset)
{
	return lseek(fd, offset, SEEK_SET) < 0 ? -errno : 0;
}
