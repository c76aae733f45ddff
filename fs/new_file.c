/* SPDX-License-Identifier: MIT */
/*
 * New file - see new_file.h.
 *
 *	open	O_TMPFILE in the folder: it has no name, and is gone with its
 *		last descriptor, also after kill -9.  Where the file system has
 *		no such files, or the process no /proc to link them from: a file
 *		named .weft- and 16 digits
 *	commit	fsync(2).  A name that is free is taken by linkat(2).  One that
 *		is in use is replaced: linkat(2) to a temporary name, then
 *		rename(2).  At the end fsync(2) of the folder
 *
 * The folder is opened once: a folder that is moved meanwhile keeps the file.
 */
#include "fs/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/blocking.h>
#include <weft/io.h>
#include <weft/task.h>

#include "io/request/reactor.h"
#include "runtime/sched/wait.h"

enum { NAMES_TRIED = 100, PROC_PATH_BYTES = 32 };

static void proc_path(int fd, char *ret_path)
{
	(void)snprintf(ret_path, PROC_PATH_BYTES, "/proc/self/fd/%d", fd);
}

/* Calls a function with new names until one is free. */
static int name_find(struct weft__new_file *file,
		     int (*fn)(struct weft__new_file *file))
{
	for (int i = 0; i < NAMES_TRIED; i++) {
		unsigned char bytes[8];
		char *end = file->temporary;
		int r;

		if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
			return -EIO;
		end = stpcpy(end, ".weft-");
		for (size_t j = 0; j < sizeof(bytes); j++)
			end += snprintf(end, 3, "%02x", bytes[j]);
		r = fn(file);
		if (r != -EEXIST)
			return r;
	}
	return -EEXIST;
}

/* ---- Jobs ---------------------------------------------------------------- */

static int folder_open(struct weft__new_file *file)
{
	char folder[PATH_MAX] = ".";
	size_t bytes = (size_t)(file->name - file->path);

	if (bytes >= sizeof(folder))
		return -ENAMETOOLONG;
	if (bytes > 0) {
		memcpy(folder, file->path, bytes);
		folder[bytes] = '\0';
	}
	file->dir_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* One that may not be listed may still be written to. */
	if (file->dir_fd < 0 && errno == EACCES)
		file->dir_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return file->dir_fd < 0 ? -errno : 0;
}

static int named_open(struct weft__new_file *file)
{
	file->fd = openat(file->dir_fd, file->temporary,
			  O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file->mode);
	if (file->fd < 0)
		return -errno;
	file->named = true;
	return 0;
}

static int unnamed_open(struct weft__new_file *file)
{
	char path[PROC_PATH_BYTES];

	file->fd = openat(file->dir_fd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC,
			  file->mode);
	if (file->fd < 0)
		return -errno;
	proc_path(file->fd, path);
	if (access(path, F_OK) == 0)
		return 0;
	(void)close(file->fd);
	return -EOPNOTSUPP;
}

static int64_t job_open(void *arg)
{
	struct weft__new_file *file = arg;
	int r = folder_open(file);

	if (r < 0)
		return r;
	r = unnamed_open(file);
	/* An old kernel, or one that forbids it, has further errors. */
	if (r < 0 && r != -ENOSPC && r != -EACCES && r != -EROFS)
		r = name_find(file, named_open);
	if (r < 0)
		(void)close(file->dir_fd);
	return r;
}

static int link_as(struct weft__new_file *file, const char *name)
{
	char path[PROC_PATH_BYTES];

	proc_path(file->fd, path);
	return linkat(AT_FDCWD, path, file->dir_fd, name, AT_SYMLINK_FOLLOW) <
			       0 ?
		       -errno :
		       0;
}

static int link_temporary(struct weft__new_file *file)
{
	int r = link_as(file, file->temporary);

	file->named = r == 0;
	return r;
}

static int rename_temporary(struct weft__new_file *file)
{
	if (renameat(file->dir_fd, file->temporary, file->dir_fd, file->name) <
	    0)
		return -errno;
	file->named = false;
	return 0;
}

static int64_t job_commit(void *arg)
{
	struct weft__new_file *file = arg;
	int r = fsync(file->fd) < 0 ? -errno : 0;

	if (r == 0 && !file->named) {
		r = link_as(file, file->name);
		if (r == -EEXIST)
			r = name_find(file, link_temporary);
	}
	if (r == 0 && file->named)
		r = rename_temporary(file);
	/* Whole it is; EBADF is of a folder that may not be read. */
	if (r == 0 && fsync(file->dir_fd) < 0 && errno != EBADF &&
	    errno != EINVAL)
		r = -errno;
	return r;
}

static int64_t job_close(void *arg)
{
	struct weft__new_file *file = arg;

	if (file->named)
		(void)unlinkat(file->dir_fd, file->temporary, 0);
	(void)close(file->dir_fd);
	return 0;
}

/* ---- Calls --------------------------------------------------------------- */

struct job {
	weft_fn fn;
	struct weft__new_file *file;
	bool begun;
};

static int64_t job_run(void *arg)
{
	struct job *job = arg;

	job->begun = true;
	return job->fn(job->file);
}

static int run(struct weft__new_file *file, weft_fn fn)
{
	struct weft_runtime *runtime = weft__worker_self()->runtime;
	struct job job = { .fn = fn, .file = file };
	int64_t r = weft_blocking_lane(&weft__reactor(runtime)->files, job_run,
				       &job);

	/* There is no thread: then this one waits for the disk. */
	if (!job.begun && (r == -EAGAIN || r == -ENOMEM))
		r = job_run(&job);
	return (int)r;
}

int weft__new_file_open(struct weft__new_file *file, const char *path,
			mode_t mode)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!*path)
		return -ENOENT;
	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	*file = (struct weft__new_file){
		.path = path,
		.name = name,
		.mode = mode,
	};
	return run(file, job_open);
}

int weft__new_file_commit(struct weft__new_file *file)
{
	return run(file, job_commit);
}

void weft__new_file_close(struct weft__new_file *file)
{
	WEFT_SHIELD {
		(void)run(file, job_close);
		(void)weft_close(file->fd);
	}
}
