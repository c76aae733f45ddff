/* SPDX-License-Identifier: MIT */
/*
 * Descriptors: the table and its chunks; the model is in fd_table.h.
 *
 * Orderings
 *   [fd.chunk]  make CAS release -> find acquire: that the chunk is zero.
 */
#include "io/request/fd_table.h"

#include <errno.h>
#include <sys/mman.h>

#include "io/os/syscall.h"
#include "runtime/base/memory.h"

#define TABLE_BYTES (WEFT__FD_CHUNKS * sizeof(struct weft__fd *))
#define CHUNK_BYTES (WEFT__FD_CHUNK * sizeof(struct weft__fd))

int weft__fd_table_init(struct weft__fd_table *fds,
			const struct weft_allocator *memory)
{
	void *table = mmap(NULL, TABLE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (table == MAP_FAILED)
		return -ENOMEM;
	fds->chunks = table;
	fds->memory = memory;
	return 0;
}

void weft__fd_table_fini(struct weft__fd_table *fds)
{
	/* relaxed: no other thread is left. */
	for (uint32_t i = weft__load(&fds->chunks_end, relaxed); i-- > 0;)
		weft__memory_free(fds->memory,
				  weft__load(&fds->chunks[i], relaxed),
				  CHUNK_BYTES);
	munmap(fds->chunks, TABLE_BYTES);
}

static void fds_grow(struct weft__fd_table *fds, uint32_t end)
{
	/* relaxed: only fini reads it, after all others have ended. */
	uint32_t old = weft__load(&fds->chunks_end, relaxed);

	while (old < end && !weft__cas(&fds->chunks_end, &old, end, relaxed))
		;
}

int weft__fd_make(struct weft__fd_table *fds, int fd,
		  struct weft__fd **ret_entry)
{
	uint32_t index = (uint32_t)fd >> WEFT__FD_CHUNK_BITS;
	struct weft__fd *chunk, *expected = NULL;

	/* A number that is no descriptor must not cost memory. */
	if (fd < 0 || !weft__syscall_is_open(fd))
		return -EBADF;
	chunk = weft__memory_zeroed(fds->memory, CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	/* pairs: [fd.chunk] */
	if (weft__cas(&fds->chunks[index], &expected, chunk, release))
		fds_grow(fds, index + 1);
	else
		weft__memory_free(fds->memory, chunk, CHUNK_BYTES);
	*ret_entry = weft__fd_find(fds, fd);
	return 0;
}

int weft__fd_kind_now(struct weft__fd *entry, int fd)
{
	int kind = weft__syscall_kind(fd);
	/* relaxed: a hint. */
	int known = weft__load(&entry->kind, relaxed) & ~WEFT__FD_PASSING;

	/* Of a local file more may be known, also that it has no quick way. */
	if (kind == weft__fd_kind_base(known) ||
	    (kind == WEFT__FD_LOCAL && weft__fd_is_buffered(known)))
		return known;
	if (kind >= 0)
		weft__fd_set_kind(entry, kind);
	return kind;
}
