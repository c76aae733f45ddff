/* SPDX-License-Identifier: MIT */
/*
 * Temporary files: without a name (O_TMPFILE), where the file system can do
 * that and /proc is there to give them one; else with a temporary name.
 */
#include "io/temp.h"

#include <weft/file.h>

#include <errno.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weft/io.h>

#include "io/file.h"
#include "io/os/fd_kind.h"
#include "io/os/mask.h"
#include "io/pooled.h"
#include "io/request/call.h"
#include "runtime/base/own_fd.h"

enum { TRIES = 100, PROC_BYTES = 32 };

#define CALL(number, ...) \
	weft__syscall_any(number, (const long[WEFT__WORDS]){ __VA_ARGS__ })

/* ---- Names --------------------------------------------------------------- */

static void name_choose(char name[WEFT__TEMP_NAME_BYTES])
{
	uint64_t random = 0;
	struct timespec now;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) !=
	    (ssize_t)sizeof(random)) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		random = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^
			 (uint64_t)getpid() << 20;
	}
	snprintf(name, WEFT__TEMP_NAME_BYTES, ".weft-%016" PRIx64 ".tmp",
		 random);
}

static void proc_path(char path[PROC_BYTES], int fd)
{
	snprintf(path, PROC_BYTES, "/proc/self/fd/%d", fd);
}

/* linkat() of the descriptor itself is for privileged processes. */
static int file_link(int fd, int dir_fd, const char *path)
{
	char from[PROC_BYTES];

	proc_path(from, fd);
	return (int)CALL(SYS_linkat, AT_FDCWD, weft__word(from), dir_fd,
			 weft__word(path), AT_SYMLINK_FOLLOW);
}

static bool may_be_linked(int fd)
{
	char path[PROC_BYTES];

	proc_path(path, fd);
	return CALL(SYS_faccessat, AT_FDCWD, weft__word(path), F_OK) == 0;
}

/* ---- Making -------------------------------------------------------------- */

static int make_without_name(int dir_fd, mode_t mode)
{
	int fd;

	if (weft__is_masked(WEFT__FEATURE_TMPFILE))
		return -EOPNOTSUPP;
	fd = (int)CALL(SYS_openat, dir_fd, weft__word("."),
		       O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (fd >= 0 && !may_be_linked(fd)) {
		weft__syscall_close(fd);
		return -EOPNOTSUPP;
	}
	return fd;
}

static int make_with_name(struct weft__temp *temp, int dir_fd, mode_t mode)
{
	int fd = -EEXIST;

	for (int i = 0; i < TRIES && fd == -EEXIST; i++) {
		name_choose(temp->name);
		fd = (int)CALL(SYS_openat, dir_fd, weft__word(temp->name),
			       O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
	}
	if (fd < 0)
		temp->name[0] = 0;
	return fd;
}

int weft__temp_name(struct weft__temp *temp)
{
	int r = -EEXIST;

	if (temp->name[0])
		return 0;
	for (int i = 0; i < TRIES && r == -EEXIST; i++) {
		name_choose(temp->name);
		r = file_link(temp->fd, temp->dir_fd, temp->name);
	}
	if (r < 0)
		temp->name[0] = 0;
	return r;
}

void weft__temp_unname(struct weft__temp *temp)
{
	if (temp->name[0])
		(void)CALL(SYS_unlinkat, temp->dir_fd, weft__word(temp->name),
			   0);
	temp->name[0] = 0;
}

/* In a program that was started without 1 and 2, another task that writes there
 * must not write to the file. */
int weft__temp_make(struct weft__temp *temp, int dir_fd, mode_t mode)
{
	int fd = make_without_name(dir_fd, mode);

	temp->name[0] = 0;
	temp->dir_fd = dir_fd;
	/* The second: of file systems that do not know the flag. */
	if (fd == -EOPNOTSUPP || fd == -EISDIR)
		fd = make_with_name(temp, dir_fd, mode);
	fd = weft__fd_or_error_above_stdio(fd);
	if (fd < 0)
		weft__temp_unname(temp);
	temp->fd = fd < 0 ? -1 : fd;
	return fd < 0 ? fd : 0;
}

/* ---- The public calls ---------------------------------------------------- */

struct outer {
	struct weft__temp temp;
	bool linked;
};

_Static_assert(sizeof(struct outer) <= sizeof(struct weft_temp),
	       "private_words has room");

static struct outer *inside(struct weft_temp *temp)
{
	return (void *)temp;
}

struct opening {
	struct weft__temp *temp;
	int dir_fd;
	const char *dir;
	mode_t mode;
};

static int64_t open_run(void *arg)
{
	const struct opening *opening = arg;
	struct weft__temp *temp = opening->temp;
	int r, dir_fd = (int)CALL(SYS_openat, opening->dir_fd,
				  weft__word(opening->dir),
				  O_PATH | O_DIRECTORY | O_CLOEXEC);

	dir_fd = weft__fd_or_error_above_stdio(dir_fd);
	if (dir_fd < 0)
		return dir_fd;
	r = weft__temp_make(temp, dir_fd, opening->mode);
	if (r < 0 || !temp->name[0]) {
		weft__syscall_close(dir_fd);
		temp->dir_fd = -1;
	}
	return r;
}

int weft_temp_open(struct weft_temp *ret_temp, int dir_fd, const char *dir,
		   mode_t mode)
{
	struct opening opening = { &inside(ret_temp)->temp, dir_fd, dir, mode };
	int r;

	*ret_temp = (struct weft_temp){ .fd = -1 };
	r = dir ? (int)weft__pooled(open_run, &opening) :
		  weft__call_refused(-EFAULT);
	if (r == 0)
		(void)weft__file_opened(ret_temp->fd, WEFT__FD_UNKNOWN);
	return r;
}

struct linking {
	struct weft__temp *temp;
	int dir_fd;
	const char *path;
};

/* A rename that replaces nothing, or, where there is none, a second name. */
static int move_name(struct weft__temp *temp, int dir_fd, const char *path)
{
	int r = (int)CALL(SYS_renameat2, temp->dir_fd, weft__word(temp->name),
			  dir_fd, weft__word(path), RENAME_NOREPLACE);

	if (r == -EINVAL) {
		r = (int)CALL(SYS_linkat, temp->dir_fd, weft__word(temp->name),
			      dir_fd, weft__word(path));
		if (r == 0)
			weft__temp_unname(temp);
	}
	if (r == 0)
		temp->name[0] = 0;
	return r;
}

static int64_t link_run(void *arg)
{
	const struct linking *linking = arg;
	struct weft__temp *temp = linking->temp;

	return temp->name[0] ?
		       move_name(temp, linking->dir_fd, linking->path) :
		       file_link(temp->fd, linking->dir_fd, linking->path);
}

int weft_temp_link(struct weft_temp *temp, int dir_fd, const char *path)
{
	struct outer *outer = inside(temp);
	struct linking linking = { &outer->temp, dir_fd, path };
	int r;

	if (!path)
		return weft__call_refused(-EFAULT);
	if (temp->fd < 0 || outer->linked)
		return weft__call_refused(-EINVAL);
	r = (int)weft__pooled_on(temp->fd, link_run, &linking);
	outer->linked = r == 0;
	return r;
}

static int64_t unname_run(void *arg)
{
	weft__temp_unname(arg);
	return 0;
}

int weft_temp_close(struct weft_temp *closed)
{
	struct weft__temp *temp = &inside(closed)->temp;

	if (!weft__running(weft__worker_self()))
		return -EPERM;
	if (temp->fd < 0)
		return 0;
	if (temp->name[0])
		(void)weft__pooled_shielded(unname_run, temp);
	if (temp->dir_fd >= 0)
		weft__syscall_close(temp->dir_fd);
	(void)weft_close(temp->fd);
	*closed = (struct weft_temp){ .fd = -1 };
	return 0;
}
