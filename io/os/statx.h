/* SPDX-License-Identifier: MIT */
/*
 * struct statx: the kernel's, where the C library has none (musl before 1.2.4).
 * Both must not be included.  A part that a C library does not name (musl since
 * 1.2.4) has a name here.
 */
#ifndef WEFT_IO_OS_STATX_H
#define WEFT_IO_OS_STATX_H

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#ifndef STATX_TYPE
#include <linux/stat.h>
#endif

#ifndef STATX_ATTR_NODUMP
#define STATX_ATTR_NODUMP 0x40
#endif
#ifndef STATX_ATTR_MOUNT_ROOT
#define STATX_ATTR_MOUNT_ROOT 0x2000
#endif

_Static_assert(sizeof(struct statx) == 256, "struct statx is the kernel's");

/* Where the number of the mount is: stx_mnt_id. */
enum { WEFT__STATX_MOUNT_AT = 0x90 };

static inline uint64_t weft__statx_mount(const struct statx *status)
{
	uint64_t mount;

	memcpy(&mount, (const char *)status + WEFT__STATX_MOUNT_AT,
	       sizeof(mount));
	return mount;
}

#endif
