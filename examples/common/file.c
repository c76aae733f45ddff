/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weft/weft.h>

#include "file.h"

enum { SMALL_BYTES = 128 << 10, LARGE_BYTES = 256 << 10 };

typedef ssize_t (*read_fn)(int fd, void *data, size_t bytes, off_t offset);

static ssize_t read_here(int fd, void *data, size_t bytes, off_t offset)
{
	ssize_t n = pread(fd, data, bytes, offset);

	if (n < 0 && errno == ESPIPE)
		n = read(fd, data, bytes);
	return n < 0 ? -errno : n;
}

/* Reads to the end, which is at `size` unless that is 0.  Room that is full of
 * one line doubles. */
static int file_read(struct files *files, struct file *file, int fd,
		     off_t size, read_fn fn)
{
	size_t room = file->large ? LARGE_BYTES : SMALL_BYTES;
	char *data = malloc(room);
	bool last = false;
	size_t kept = 0;
	off_t at = 0;
	ssize_t n = 1;

	while (data && !last && !file->enough) {
		size_t done;

		n = fn(fd, data + kept, room - kept, at);
		if (n < 0)
			break;
		at += n;
		kept += (size_t)n;
		last = n == 0 || at == size;
		done = files->feed(files, file, data, kept, last);
		kept -= done;
		memmove(data, data + done, kept);
		if (kept == room) {
			char *more = realloc(data, room *= 2);

			if (!more)
				free(data);
			data = more;
		}
	}
	free(data);
	return !data ? -ENOMEM : n < 0 ? (int)n : 0;
}

static int read_fd(struct files *files, struct file *file, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	file->large = S_ISREG(st.st_mode) && st.st_size > SMALL_BYTES;
	return file->large ? 0 :
			     file_read(files, file, fd, st.st_size, read_here);
}

void file_read_small(struct files *files, struct file *file)
{
	int fd;

	if (file->error < 0)
		return;
	fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	file->error = fd < 0 ? -errno : read_fd(files, file, fd);
	if (fd >= 0)
		close(fd);
	if (!file->large)
		files->end(files, file);
}

int64_t file_read_large(struct files *files, struct file *file)
{
	int fd = weft_open(file->path, O_RDONLY, 0);

	file->error = fd;
	if (fd >= 0) {
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		file->error = file_read(files, file, fd, 0, weft_pread);
		weft_close(fd);
	}
	files->end(files, file);
	return file->error == -ECANCELED ? file->error : 0;
}
