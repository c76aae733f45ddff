/* SPDX-License-Identifier: MIT */
/*
 * Guards - MADV_GUARD_INSTALL of Linux 6.13, which is newer than <sys/mman.h>.
 */
#ifndef WEFT_TESTS_SUPPORT_GUARDS_H
#define WEFT_TESTS_SUPPORT_GUARDS_H

enum { GUARD_INSTALL = 102 };

#endif
