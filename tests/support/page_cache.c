/* SPDX-License-Identifier: MIT */
#include "tests/support/page_cache.h"

#include <linux/magic.h>
#include <sys/vfs.h>

static bool is_on(int fd, unsigned long magic)
{
	struct statfs fs;

	ck_assert_int_eq(fstatfs(fd, &fs), 0);
	return (unsigned long)fs.f_type == magic;
}

bool is_on_tmpfs(int fd)
{
	return is_on(fd, TMPFS_MAGIC);
}

bool is_on_overlay(int fd)
{
	return is_on(fd, OVERLAYFS_SUPER_MAGIC);
}

static size_t file_bytes(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_le(st.st_size, PAGES_MAX * PAGE);
	return (size_t)st.st_size;
}

size_t resident(int fd, off_t offset, size_t bytes)
{
	unsigned char pages[PAGES_MAX];
	size_t first = (size_t)offset / PAGE;
	size_t last = ((size_t)offset + bytes - 1) / PAGE;
	size_t all = file_bytes(fd);
	void *file = mmap(NULL, all, PROT_READ, MAP_SHARED, fd, 0);
	size_t count = 0;

	ck_assert_ptr_ne(file, MAP_FAILED);
	ck_assert_int_eq(mincore(file, all, pages), 0);
	munmap(file, all);
	for (size_t i = first; i <= last; i++)
		count += pages[i] & 1;
	return count;
}

bool is_resident(int fd, off_t offset, size_t bytes)
{
	size_t last = ((size_t)offset + bytes - 1) / PAGE;

	return resident(fd, offset, bytes) == last - (size_t)offset / PAGE + 1;
}

int64_t pages_counted(int fd)
{
	uint64_t range[2] = { 0, file_bytes(fd) }, counts[5];

	if (syscall(451 /* cachestat */, fd, range, counts, 0) < 0)
		return -1;
	return (int64_t)counts[0];
}

static bool is_evicted(int fd)
{
	/* Of an overlay's file the layer below has the pages, which are not
	 * counted. */
	return pages_counted(fd) <= 0 && resident(fd, 0, file_bytes(fd)) == 0;
}

void evict(int fd)
{
	uint64_t end = weft_now() + WEFT_SEC(20);

	if (is_on_tmpfs(fd))
		return;
	do { /* a page that is in somebody's hands stays */
		ck_assert_uint_lt(weft_now(), end);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	} while (!is_evicted(fd));
	ck_assert_int_eq(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM), 0);
}
