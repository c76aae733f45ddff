/* SPDX-License-Identifier: MIT */
#include "fs/tree_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/own_fd.h"

/* Not inlined: see io/os/syscall.h on errno. */
#define LEAF __attribute__((noinline))

#define RESULT_OF(call)                      \
	({                                   \
		long r_;                     \
                                             \
		do {                         \
			r_ = (call);         \
			if (r_ < 0)          \
				r_ = -errno; \
		} while (r_ == -EINTR);      \
		r_;                          \
	})

LEAF ssize_t weft__dirents_read(int fd, void *buf, size_t bytes)
{
	return RESULT_OF(syscall(SYS_getdents64, fd, buf, bytes));
}

LEAF int weft__directory_openat(int dir_fd, const char *path, int flags)
{
	int fd = (int)RESULT_OF(openat(dir_fd, path,
				       O_RDONLY | O_DIRECTORY | O_CLOEXEC |
					       flags));

	return weft__fd_or_error_above_stdio(fd);
}

LEAF int weft__statx(int dir_fd, const char *path, int flags, unsigned mask,
		     struct statx *ret_status)
{
	return (int)RESULT_OF(syscall(SYS_statx, dir_fd, path,
				      flags | AT_NO_AUTOMOUNT, mask,
				      ret_status));
}

LEAF int weft__unlinkat(int dir_fd, const char *path, int flags)
{
	return (int)RESULT_OF(unlinkat(dir_fd, path, flags));
}
