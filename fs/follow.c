/* SPDX-License-Identifier: MIT */
/*
 * The calls on a follow: see follow.h for the path.
 *
 *	read the file --- bytes ---> the caller
 *	   | none
 *	the next file has bytes?  read the last of this one; take the next
 *	   | no
 *	resolve the path, if there is one and an event said so; read again
 *	   | done
 *	wait for an event, or a second
 */
#include "fs/follow.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <weft/blocking.h>
#include <weft/io.h>
#include <weft/time.h>

#include "io/request/call.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"

/* ---- The files ----------------------------------------------------------- */

static int64_t resolve(void *arg)
{
	return weft__follow_resolve(arg);
}

static int64_t take(void *arg)
{
	return weft__follow_take(arg);
}

/* By its name, or else by a descriptor. */
static bool has_path(const struct weft_follow *follow)
{
	return follow->path[0];
}

/* The names are looked at again only if the job has begun, and if the next file
 * has bytes that are read first. */
static int path_resolve(struct weft_follow *follow)
{
	int r = (int)weft_blocking(resolve, follow);

	if (r == 0)
		follow->dirty = false;
	return r;
}

/* weft_close() is done in full, whatever it returns. */
static void file_close(struct weft_follow *follow)
{
	if (follow->fd < 0)
		return;
	if (follow->wd >= 0)
		(void)inotify_rm_watch(follow->notices, follow->wd);
	(void)weft_close(follow->fd);
}

static void next_take(struct weft_follow *follow)
{
	file_close(follow);
	follow->fd = follow->next_fd;
	follow->wd = follow->next_wd;
	follow->next_fd = follow->next_wd = -1;
	follow->switching = false;
	follow->offset = 0;
	follow->news |= WEFT_FOLLOW_NEW;
}

/* 1: the file is longer than `bytes`; 0: it is not; or an error.  Suspends
 * where a server has to be asked. */
static int longer_than(int fd, int64_t bytes)
{
	struct stat status;
	int r = weft_fstat(fd, &status);

	return r < 0 ? r : status.st_size > bytes;
}

/* The next file is taken when it has bytes, and this one then has no more.  1:
 * read again; 0; or the call is interrupted. */
static int next_try(struct weft_follow *follow)
{
	int r;

	if (follow->next_fd < 0)
		return 0;
	if (follow->fd < 0 || follow->switching) {
		next_take(follow);
		return 1;
	}
	r = longer_than(follow->next_fd, 0);
	follow->switching = r > 0;
	/* A file that cannot be looked at has no bytes yet; the others are not
	 * of the file. */
	return r > 0 || r == -ECANCELED || r == -ETIMEDOUT || r == -ENOMEM ||
			       r == -EAGAIN ?
		       r :
		       0;
}

/* Bytes, or 0: there are none. */
static ssize_t file_read(struct weft_follow *follow, void *buf, size_t bytes)
{
	ssize_t n;

	if (follow->fd < 0)
		return 0;
	n = weft_pread(follow->fd, buf, bytes, follow->offset);
	if (n == 0 && follow->offset > 0) {
		int r = longer_than(follow->fd, follow->offset - 1);

		if (r != 0)
			return r < 0 ? r : 0;
		follow->offset = 0;
		follow->news |= WEFT_FOLLOW_CUT;
		n = weft_pread(follow->fd, buf, bytes, 0);
	}
	if (n > 0)
		follow->offset += n;
	return n;
}

/* ---- Waiting ------------------------------------------------------------- */

/* Is the event one of the path's? */
static bool concerns(const struct weft_follow *follow,
		     const struct inotify_event *event)
{
	/* It has -1 for its wd. */
	if (event->mask & IN_Q_OVERFLOW)
		return true;
	if (event->wd == follow->wd || event->wd == follow->next_wd)
		return event->mask & (IN_ATTRIB | IN_IGNORED | IN_UNMOUNT);
	if (event->len == 0)
		return true;
	for (int i = 0; i < follow->names_count; i++)
		if (follow->names[i].wd == event->wd &&
		    strcmp(follow->names[i].name, event->name) == 0)
			return true;
	return false;
}

static int wait_for_events(struct weft_follow *follow)
{
	ssize_t n, at = 0;

	if (follow->polls) {
		follow->dirty = true;
		return weft_sleep(WEFT_SEC(1));
	}
	n = weft_read(follow->notices, follow->input, sizeof(follow->input));
	while (at < n) {
		const struct inotify_event *event =
			(const void *)(follow->input + at);

		if (concerns(follow, event))
			follow->dirty = true;
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	return n < 0 ? (int)n : 0;
}

/* ---- The calls ----------------------------------------------------------- */

static ssize_t tell(struct weft_follow *follow, ssize_t r, unsigned *ret_news)
{
	if (ret_news)
		*ret_news = follow->news;
	follow->news = 0;
	return r;
}

ssize_t weft_follow_read(struct weft_follow *follow, void *buf, size_t bytes,
			 unsigned *ret_news)
{
	for (;;) {
		ssize_t n = file_read(follow, buf, bytes);

		if (n > 0 || (n == 0 && bytes == 0))
			return tell(follow, n, ret_news);
		if (n == 0)
			n = next_try(follow);
		if (n < 0)
			return n;
		if (n > 0)
			continue;
		if (follow->dirty && has_path(follow))
			n = path_resolve(follow);
		else if (follow->news)
			return tell(follow, 0, ret_news);
		else
			n = wait_for_events(follow);
		if (n < 0)
			return n;
	}
}

static ssize_t stream_read(void *arg, void *buf, size_t bytes)
{
	ssize_t n;

	do
		n = weft_follow_read(arg, buf, bytes, NULL);
	while (n == 0);
	return n;
}

void weft_follow_stream(struct weft_follow *follow, struct weft_stream *stream)
{
	static const struct weft_stream_ops ops = { .read = stream_read };

	weft_stream_init_over(stream, &ops, follow);
}

int weft_follow_fd(const struct weft_follow *follow)
{
	return follow->fd;
}

int weft_follow_seek(struct weft_follow *follow, int64_t offset)
{
	if (offset < 0)
		return -EINVAL;
	if (follow->fd < 0)
		return -ENOENT;
	follow->offset = offset;
	return 0;
}

int weft_follow_polls(const struct weft_follow *follow)
{
	return follow->polls;
}

int weft_follow_close(struct weft_follow *follow)
{
	if (!follow)
		return 0;
	if (!weft__running(weft__worker_self()))
		return -EPERM;
	if (follow->notices >= 0)
		(void)weft_close(follow->notices);
	follow->wd = -1;
	file_close(follow);
	if (follow->next_fd >= 0)
		(void)weft_close(follow->next_fd);
	weft__memory_free(follow->memory, follow, sizeof(*follow));
	return 0;
}

static int follow_new(struct weft__worker *worker,
		      struct weft_follow **ret_follow)
{
	const struct weft_allocator *memory = worker->runtime->memory;
	struct weft_follow *follow =
		weft__memory_zeroed(memory, sizeof(*follow));

	if (!follow)
		return -ENOMEM;
	follow->memory = memory;
	follow->fd = follow->next_fd = -1;
	follow->wd = follow->next_wd = -1;
	follow->dirty = true;
	follow->notices = weft__fd_above_stdio(
		inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
	*ret_follow = follow;
	return 0;
}

static void offset_set(struct weft_follow *follow, int64_t offset)
{
	follow->offset = offset == WEFT_FOLLOW_END ? follow->size : offset;
}

int weft_follow_open(const char *path, int64_t offset,
		     struct weft_follow **ret_follow)
{
	struct weft_follow *follow;
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	if (!path)
		return -EFAULT;
	if (!path[0] || offset < WEFT_FOLLOW_END)
		return -EINVAL;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	r = follow_new(worker, &follow);
	if (r < 0)
		return r;
	memcpy(follow->path, path, strlen(path));
	r = path_resolve(follow);
	if (r < 0) {
		(void)weft_follow_close(follow);
		return r;
	}
	if (follow->next_fd >= 0) {
		next_take(follow);
		follow->news = 0;
		offset_set(follow, offset);
	}
	*ret_follow = follow;
	return 0;
}

int weft_follow_open_fd(int fd, int64_t offset, struct weft_follow **ret_follow)
{
	struct weft_follow *follow;
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	if (offset < WEFT_FOLLOW_END)
		return -EINVAL;
	r = follow_new(worker, &follow);
	if (r < 0)
		return r;
	follow->fd = fd;
	r = (int)weft_blocking(take, follow);
	if (r < 0) {
		follow->fd = -1;
		(void)weft_follow_close(follow);
		return r;
	}
	offset_set(follow, offset);
	*ret_follow = follow;
	return 0;
}
