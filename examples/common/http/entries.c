/* SPDX-License-Identifier: MIT */
/*
 * The entries of a directory.  readdir() blocks the thread.  io_uring cannot
 * read directories, so a call that suspends would gain nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "entries.h"

static int by_name(const void *a, const void *b)
{
	return strcoll((*(struct dirent *const *)a)->d_name,
		       (*(struct dirent *const *)b)->d_name);
}

static int grow(struct entries *entries)
{
	size_t room = entries->room ? entries->room * 2 : 16;
	struct dirent **at = realloc(entries->at, room * sizeof(*at));

	if (!at)
		return -ENOMEM;
	entries->at = at;
	entries->room = room;
	return 0;
}

static int add(struct entries *entries, const struct dirent *entry)
{
	struct dirent *copy;

	if (entries->count == entries->room && grow(entries) < 0)
		return -ENOMEM;
	copy = malloc(entry->d_reclen);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, entry, entry->d_reclen);
	entries->at[entries->count++] = copy;
	return 0;
}

static int add_all(struct entries *entries, DIR *dir)
{
	const struct dirent *entry;
	int r = 0;

	while (r == 0) {
		errno = 0;
		entry = readdir(dir);
		if (!entry)
			return -errno;
		if (entry->d_name[0] != '.')
			r = add(entries, entry);
	}
	return r;
}

/* Not inlined: a compiler may keep the address of errno across a call that
 * suspends, and the task may resume on another thread. */
__attribute__((noinline)) int entries_read(int dir_fd, struct entries *entries)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	r = add_all(entries, dir);
	closedir(dir);
	if (entries->count)
		qsort(entries->at, entries->count, sizeof(*entries->at),
		      by_name);
	return r;
}

void entries_free(struct entries *entries)
{
	while (entries->count > 0)
		free(entries->at[--entries->count]);
	free(entries->at);
}
