/* SPDX-License-Identifier: MIT */
#include "io/os/look.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "io/os/syscall.h"
#include "runtime/base/atomic.h"

#define LEAF __attribute__((noinline))

/* Uses statx(), not fstat(): see weft__syscall_kind(). */
LEAF int weft__look_fd(int fd, unsigned mask, struct statx *ret_status)
{
	int r;

	do
		r = syscall(SYS_statx, fd, "",
			    AT_EMPTY_PATH | AT_STATX_DONT_SYNC, mask,
			    ret_status) < 0 ?
			    -errno :
			    0;
	while (r == -EINTR);
	return r;
}

/* O_PATH gives a descriptor of the name alone. */
LEAF int weft__look_path(int dir_fd, const char *path,
			 const struct open_how *how, unsigned mask,
			 struct statx *ret_status)
{
	struct open_how look = {
		.flags = O_PATH | O_CLOEXEC | (how->flags & O_NOFOLLOW),
		.resolve = how->resolve | RESOLVE_CACHED,
	};
	int r, fd = weft__syscall_openat2(dir_fd, path, &look);

	if (fd < 0)
		return fd;
	r = weft__look_fd(fd, mask, ret_status);
	weft__syscall_close(fd);
	return r;
}

/* ---- Storage ------------------------------------------------------------ */

/*
 * The mounts that were met last: the number of the mount, and its storage in
 * the lowest bits; 0 is blank.  A word holds all that is known of a mount, so
 * it orders nothing else.
 */
enum { KNOWN = 8, STORAGE_BITS = 2 };

static weft__atomic(uint64_t) known[KNOWN];

static enum weft__storage storage_ask(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return WEFT__STORAGE_DISK;
	switch ((uint64_t)fs.f_type) {
	case TMPFS_MAGIC:
		return WEFT__STORAGE_MEMORY;
	case OVERLAYFS_SUPER_MAGIC:
		return WEFT__STORAGE_LAYERED;
	default:
		return WEFT__STORAGE_DISK;
	}
}

LEAF enum weft__storage weft__look_storage(int fd, const struct statx *status)
{
	uint64_t mount = weft__statx_mount(status), word;
	bool has_number = status->stx_mask & WEFT__LOOK_MOUNT;
	enum weft__storage storage;

	/* relaxed: see known. */
	word = weft__load(&known[mount % KNOWN], relaxed);
	if (has_number && word >> STORAGE_BITS == mount)
		return word & ((1 << STORAGE_BITS) - 1);
	if (fd < 0)
		return WEFT__STORAGE_DISK;
	storage = storage_ask(fd);
	if (has_number)
		/* relaxed: see known. */
		weft__store(&known[mount % KNOWN],
			    mount << STORAGE_BITS | storage, relaxed);
	return storage;
}

/* ---- The page cache ------------------------------------------------------ */

/* Far enough behind the end of a file that no page of it, not even a huge one,
 * reaches there. */
#define BEYOND_BYTES ((size_t)4 << 20)

enum { RESIDENT_PAGES = 128 };

/* How many of the first bytes of a mapping are in the cache.  Of files of
 * others the kernel says that all are, also those that cannot be, such as the
 * last page of the mapping. */
static size_t mapping_resident(char *mapping, size_t mapping_bytes,
			       size_t bytes, size_t page)
{
	unsigned char in_cache[RESIDENT_PAGES];
	size_t pages = (bytes + page - 1) / page, n = 0;

	if (mincore(mapping + mapping_bytes - page, page, in_cache) < 0 ||
	    (in_cache[0] & 1) || mincore(mapping, bytes, in_cache) < 0)
		return 0;
	while (n < pages && (in_cache[n] & 1))
		n++;
	return n * page < bytes ? n * page : bytes;
}

/* A mapping without access: mlockall(2) does not read it in. */
LEAF size_t weft__look_resident(int fd, off_t offset, size_t bytes,
				off_t file_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t into = (size_t)offset & (page - 1), mapping_bytes, resident;
	size_t bytes_max = RESIDENT_PAGES * page - into;
	char *mapping;

	if (offset < 0 || offset >= file_bytes)
		return 0;
	if (bytes > (size_t)(file_bytes - offset))
		bytes = (size_t)(file_bytes - offset);
	if (bytes > bytes_max)
		bytes = bytes_max;
	mapping_bytes = (size_t)(file_bytes - offset) + into + BEYOND_BYTES;
	mapping_bytes = (mapping_bytes + page - 1) & ~(page - 1);
	mapping = mmap(NULL, mapping_bytes, PROT_NONE, MAP_PRIVATE, fd,
		       offset - (off_t)into);
	if (mapping == MAP_FAILED)
		return 0;
	resident = mapping_resident(mapping, mapping_bytes, into + bytes, page);
	munmap(mapping, mapping_bytes);
	return resident > into ? resident - into : 0;
}
