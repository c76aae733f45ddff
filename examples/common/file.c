/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

#include "file.h"

enum { SMALL_BYTES = 128 << 10, ROOM_BYTES = 256 << 10 };

typedef ssize_t (*read_fn)(int fd, void *data, size_t bytes, off_t offset);

static ssize_t read_here(int fd, void *data, size_t bytes, off_t offset)
{
	ssize_t n = pread(fd, data, bytes, offset);

	if (n < 0 && errno == ESPIPE)
		n = read(fd, data, bytes);
	return n < 0 ? -errno : n;
}

/* Makes room, at first and when it is full of one line. */
static int room_grow(struct room *room)
{
	size_t bytes = room->bytes ? 2 * room->bytes : ROOM_BYTES;
	char *data = realloc(room->data, bytes);

	if (!data)
		return -ENOMEM;
	*room = (struct room){ data, bytes };
	return 0;
}

/* Reads to the end, which is at `size` unless that is 0.  A small file has all
 * its text printed later. */
static int file_read(struct files *files, struct file *file, int fd, off_t size,
		     struct room *room, read_fn fn)
{
	size_t kept = 0;
	off_t at = 0;
	bool last = false;

	while (!last && !file->enough) {
		size_t done;
		ssize_t n;

		if (file->large)
			file->unprinted = file_print_early(files, file);
		if (file->unprinted < 0)
			return 0;
		n = kept == room->bytes ? room_grow(room) : 0;

		if (n == 0)
			n = fn(fd, room->data + kept, room->bytes - kept, at);
		if (n < 0)
			return (int)n;
		at += n;
		kept += (size_t)n;
		last = n == 0 || at == size;
		done = files->feed(files, file, room->data, kept, last);
		kept -= done;
		memmove(room->data, room->data + done, kept);
	}
	return 0;
}

static int read_fd(struct files *files, struct file *file, int fd,
		   struct room *room)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	/* The task that reads a large one can wait for its turn. */
	file->large = S_ISREG(st.st_mode) &&
		      (st.st_size > SMALL_BYTES || text_is_much());
	return file->large ?
		       0 :
		       file_read(files, file, fd, st.st_size, room, read_here);
}

void file_read_small(struct files *files, struct file *file, struct room *room)
{
	int fd;

	if (file->error < 0)
		return;
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	file->error = fd < 0 ? -errno : read_fd(files, file, fd, room);
	if (fd >= 0)
		close(fd);
	if (!file->large)
		files->end(files, file);
}

static int read_open(struct files *files, struct file *file)
{
	int fd = weft_open(file->path, O_RDONLY, 0);
	struct room room = { 0 };
	int r;

	if (fd < 0)
		return fd;
	(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	r = file_read(files, file, fd, 0, &room, weft_pread);
	free(room.data);
	weft_close(fd);
	return r;
}

int64_t file_read_large(struct files *files, struct file *file)
{
	/* Those that wait for their turn have no descriptor. */
	file->unprinted = file_print_early(files, file);
	if (file->unprinted == 0)
		file->error = read_open(files, file);
	files->end(files, file);
	if (file->unprinted < 0)
		return file->unprinted;
	if (file->error == -ECANCELED)
		return file->error;
	return turn_end(files, file);
}
