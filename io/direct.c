/* SPDX-License-Identifier: MIT */
/*
 * Buffers for O_DIRECT.  They are mapped, so they begin at a page, which is
 * enough for every device; a file system that reads whole larger blocks only
 * says so by its offset_align.
 */
#include <weft/file.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/os/statx.h"
#include "io/pooled.h"

/* Linux 6.1, and newer headers. */
#ifndef STATX_DIOALIGN
#define STATX_DIOALIGN 0x00002000u
#endif

/* Where struct statx has the two, which older headers do not name. */
enum { MEMORY_ALIGN_AT = 0x98, OFFSET_ALIGN_AT = 0x9c };

#define BYTES_MAX ((size_t)1 << 40)

static int aligns_ask(int fd, size_t page, struct weft_direct *ret_direct)
{
	/* The kernel's is of 256 bytes. */
	uint64_t status[32] = { 0 };
	uint32_t mask, memory_align, offset_align;
	int r = (int)WEFT__CALL_ON(fd, SYS_statx, weft__word(""), AT_EMPTY_PATH,
				   STATX_DIOALIGN, weft__word(status));

	if (r < 0)
		return r;
	memcpy(&mask, status, sizeof(mask));
	memcpy(&memory_align, (char *)status + MEMORY_ALIGN_AT,
	       sizeof(memory_align));
	memcpy(&offset_align, (char *)status + OFFSET_ALIGN_AT,
	       sizeof(offset_align));
	if (!(mask & STATX_DIOALIGN) || !memory_align || !offset_align)
		memory_align = offset_align = (uint32_t)page;
	*ret_direct = (struct weft_direct){
		.memory_align = memory_align,
		.offset_align = offset_align,
	};
	return 0;
}

int weft_direct_alloc(struct weft_direct *ret_direct, int fd, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), unit;
	struct weft_direct direct;
	int r;

	if (!ret_direct)
		return -EFAULT;
	if (bytes == 0 || bytes > BYTES_MAX)
		return -EINVAL;
	r = aligns_ask(fd, page, &direct);
	if (r < 0)
		return r;
	/* Both are powers of two. */
	unit = direct.memory_align > direct.offset_align ? direct.memory_align :
							   direct.offset_align;
	direct.bytes = (bytes + unit - 1) & ~(unit - 1);
	if (direct.memory_align > page)
		return -ENOMEM;
	direct.memory = mmap(NULL, direct.bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (direct.memory == MAP_FAILED)
		return -ENOMEM;
	*ret_direct = direct;
	return 0;
}

void weft_direct_free(struct weft_direct *direct)
{
	if (!direct || !direct->memory)
		return;
	munmap(direct->memory, direct->bytes);
	*direct = (struct weft_direct){ .memory = NULL };
}
