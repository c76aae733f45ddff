/* SPDX-License-Identifier: MIT */
/*
 * Reading directories: getdents64(2) in the pool, a buffer at a time.
 *
 * A job asks until the buffer is full or the directory is at its end.  So a
 * small one, which takes the kernel two calls, takes one job.  An error behind
 * names that were read is kept until those were taken.
 */
#include <weft/dir.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

#include <weft/io.h>

#include "io/pooled.h"
#include "io/request/call.h"
#include "runtime/base/memory.h"

enum { BUFFER_BYTES = 32 << 10 };

/* As the kernel writes it. */
struct record {
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	unsigned char type;
	char name[];
};

/* A name has 255 bytes at most, with few exceptions.  Where the rest of the
 * buffer has no room for one the kernel returns -EINVAL; then the next job has
 * all of the buffer. */
enum { RECORD_BYTES_MAX = 1100 };

struct dir {
	int fd;
	unsigned at, end;  /* of what is left in the buffer */
	int last; /* 1: more may come; 0 or an error: what comes behind it */
	char *buffer;
	const struct weft_allocator *memory; /* of the buffer */
};

_Static_assert(sizeof(struct dir) <= sizeof(struct weft_dir),
	       "private_words has room");

static struct dir *inside(struct weft_dir *dir)
{
	return (void *)dir;
}

/* ---- Opening and closing ------------------------------------------------- */

int weft_dir_init(struct weft_dir *ret_dir, int fd)
{
	struct weft__worker *worker = weft__worker_self();
	struct dir *dir = inside(ret_dir);

	if (!weft__running(worker))
		return -EPERM;
	*ret_dir = (struct weft_dir){ .fd = -1 };
	dir->memory = worker->runtime->memory;
	dir->buffer = weft__memory_new(dir->memory, BUFFER_BYTES);
	if (!dir->buffer)
		return -ENOMEM;
	dir->fd = fd;
	dir->last = 1;
	return 0;
}

int weft_dir_open(struct weft_dir *ret_dir, int dir_fd, const char *path)
{
	int r, fd;

	*ret_dir = (struct weft_dir){ .fd = -1 };
	fd = weft_openat(dir_fd, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	r = weft_dir_init(ret_dir, fd);
	if (r < 0)
		(void)weft_close(fd);
	return r;
}

int weft_dir_close(struct weft_dir *closed)
{
	struct dir *dir = inside(closed);

	if (!weft__running(weft__worker_self()))
		return -EPERM;
	if (dir->fd < 0)
		return 0;
	(void)weft_close(dir->fd);
	weft__memory_free(dir->memory, dir->buffer, BUFFER_BYTES);
	*closed = (struct weft_dir){ .fd = -1 };
	return 0;
}

/* ---- Reading ------------------------------------------------------------- */

static int64_t batch_run(void *arg)
{
	struct dir *dir = arg;
	long r = 1;

	dir->at = dir->end = 0;
	while (r > 0 && dir->end + RECORD_BYTES_MAX <= BUFFER_BYTES) {
		long words[] = { dir->fd, weft__word(dir->buffer + dir->end),
				 BUFFER_BYTES - (long)dir->end, 0, 0, 0 };

		r = weft__syscall_any(SYS_getdents64, words);
		if (r > 0)
			dir->end += (unsigned)r;
	}
	if (r == -EINVAL && dir->end > 0)
		r = 1;
	dir->last = r > 0 ? 1 : (int)r;
	return 0;
}

static bool is_dots(const char *name)
{
	return name[0] == '.' &&
	       (!name[1] || (name[1] == '.' && !name[2]));
}

/* The next record in the buffer; NULL: there is none. */
static const struct record *record_next(struct dir *dir)
{
	while (dir->at < dir->end) {
		const struct record *record =
			(const void *)(dir->buffer + dir->at);

		dir->at += record->bytes;
		if (!is_dots(record->name))
			return record;
	}
	return NULL;
}

int weft_dir_next(struct weft_dir *read, struct weft_dir_entry *ret_entry)
{
	struct dir *dir = inside(read);
	const struct record *record;
	int r;

	if (!ret_entry)
		return weft__call_refused(-EFAULT);
	if (dir->fd < 0)
		return weft__call_refused(-EBADF);
	while (!(record = record_next(dir))) {
		if (dir->last <= 0)
			return dir->last;
		r = (int)weft__pooled_on(dir->fd, batch_run, dir);
		if (r < 0)
			return r;
	}
	*ret_entry = (struct weft_dir_entry){
		.name = record->name,
		.name_bytes = strlen(record->name),
		.inode = record->inode,
		.type = record->type,
	};
	return 1;
}
