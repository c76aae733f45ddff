/* SPDX-License-Identifier: MIT */
/*
 * struct statx: the kernel's, where the C library has none (musl before 1.2.4).
 * Both must not be included.
 */
#ifndef WEFT_IO_OS_STATX_H
#define WEFT_IO_OS_STATX_H

#include <sys/stat.h>

#ifndef STATX_TYPE
#include <linux/stat.h>
#endif

#endif
