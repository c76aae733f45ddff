/* SPDX-License-Identifier: MIT */
/*
 * Which pages of a file are in the page cache, and taking them out of it.
 */
#ifndef WEFT_TESTS_SUPPORT_PAGE_CACHE_H
#define WEFT_TESTS_SUPPORT_PAGE_CACHE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/io_kit.h"

enum { PAGE = 4096, PAGES_MAX = 256 };

/* Pages of a stretch of the file that are in the page cache. */
size_t resident(int fd, off_t offset, size_t bytes);

bool is_resident(int fd, off_t offset, size_t bytes);

/* Pages in the cache and on their way there; or -1: Linux before 6.5, and
 * Valgrind. */
int64_t pages_counted(int fd);

/* Of a file that was synced.  Then reading one page brings in no others.  Of a
 * file on tmpfs nothing is evicted. */
void evict(int fd);

bool is_on_tmpfs(int fd);
bool is_on_overlay(int fd);

#define NEEDS_EVICTION "a disk below /var/tmp"
#define NEEDS_DISK "a disk below /var/tmp, and no overlay"

#endif
