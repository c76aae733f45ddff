/* SPDX-License-Identifier: MIT */
/*
 * preadv2(2) and pwritev2(2), and what does their work where the kernel has no
 * such call: emulators, such as qemu-user 7.2, lack it.  No file knows a flag
 * there.
 */
#ifndef WEFT_IO_OS_VECTORED_H
#define WEFT_IO_OS_VECTORED_H

#include <errno.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Not by the library's wrappers, cancellation points: that costs time. */
static inline long weft__vectored_old(bool writes, int fd,
				      const struct iovec *iov, int iov_count,
				      off_t offset)
{
	long low = (long)offset, high = (long)(offset >> 16 >> 16);

	if (offset == -1)
		return syscall(writes ? SYS_writev : SYS_readv, fd, iov,
			       iov_count);
	return syscall(writes ? SYS_pwritev : SYS_preadv, fd, iov, iov_count,
		       low, high);
}

/* An offset of -1 is the file's position.  As a system call: -1 with errno. */
static inline long weft__vectored(bool writes, int fd, const struct iovec *iov,
				  int iov_count, off_t offset, int flags)
{
	long r = syscall(writes ? SYS_pwritev2 : SYS_preadv2, fd, iov,
			 iov_count, (long)offset, (long)(offset >> 16 >> 16),
			 flags);

	if (__builtin_expect(r < 0 && errno == ENOSYS, 0)) {
		if (!flags)
			return weft__vectored_old(writes, fd, iov, iov_count,
						  offset);
		errno = EOPNOTSUPP;
	}
	return r;
}

#endif
