/* SPDX-License-Identifier: MIT */
/*
 * The calls on a watch: see watch.h for what lies beneath.
 *
 * A change that needs no system call is decoded in the task.  Renames, new
 * directories and scans go to a thread of the pool, which does as much as it
 * can; a task that is interrupted before that leaves the input for the next
 * call.
 */
#include "fs/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/io.h>

#include "io/os/syscall.h"
#include "io/request/call.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"

/* ---- Life cycle ---------------------------------------------------------- */

int weft_fs_watch_open(struct weft_fs_watch **ret_watch)
{
	const struct weft_allocator *memory;
	struct weft_fs_watch *watch;
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r == -EPERM)
		return r;
	memory = worker->runtime->memory;
	watch = weft__memory_new(memory, sizeof(*watch));
	if (!watch)
		return -ENOMEM;
	memset(watch, 0, offsetof(struct weft_fs_watch, input));
	watch->memory = memory;
	watch->looked = watch->scans - 1;
	watch->fd = weft__fd_above_stdio(
		inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
	if (watch->fd < 0) {
		r = watch->fd;
		weft__memory_free(memory, watch, sizeof(*watch));
		return r;
	}
	*ret_watch = watch;
	return 0;
}

static void event_free(struct weft_fs_watch *watch,
		       struct weft__watch_event *event)
{
	if (event && event->bytes)
		weft__memory_free(watch->memory, event, event->bytes);
}

static void root_free(struct weft_fs_watch *watch,
		      struct weft__watch_root *root)
{
	if (root->dir)
		weft__watch_dir_drop(watch, root->dir);
	weft__memory_free(watch->memory, root, sizeof(*root));
}

/* The events of a root, or with -1 all. */
static void events_free(struct weft_fs_watch *watch, int root)
{
	struct weft__watch_event *event = watch->queue, *next;

	watch->queue = NULL;
	watch->queued = 0;
	for (struct weft__watch_event **end = &watch->queue; event;
	     event = next) {
		next = event->next;
		if (root >= 0 && event->event.root != root) {
			*end = watch->queue_last = event;
			watch->queued++;
			end = &event->next;
			*end = NULL;
			continue;
		}
		event_free(watch, event);
	}
}

static void watch_free(struct weft_fs_watch *watch)
{
	size_t bytes = watch->buckets * sizeof(void *);
	struct weft__watch_root *root = watch->roots, *next;

	/* The kernel's watches went with the descriptor. */
	watch->fd = -1;
	for (; root; root = next) {
		next = root->next;
		root_free(watch, root);
	}
	events_free(watch, -1);
	event_free(watch, watch->shown);
	weft__memory_free(watch->memory, watch->by_wd, bytes);
	weft__memory_free(watch->memory, watch->by_name, bytes);
	weft__memory_free(watch->memory, watch, sizeof(*watch));
}

int weft_fs_watch_close(struct weft_fs_watch *watch)
{
	int r;

	if (!watch)
		return 0;
	/* relaxed: a mistake that is only looked for. */
	weft__assert(!weft__load(&watch->busy, relaxed),
		     "weft_fs_watch_close() while another task uses the watch");
	r = weft_close(watch->fd);
	if (r != -EPERM)
		watch_free(watch);
	return r;
}

int weft_fs_watch_fd(const struct weft_fs_watch *watch)
{
	return watch->fd;
}

/* One task at a time: 0, -EBUSY or an error of the call. */
static int enter(struct weft_fs_watch *watch)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r < 0)
		return r;
	/* pairs: [watch.busy] */
	return weft__swap(&watch->busy, true, acquire) ? -EBUSY : 0;
}

static int leave(struct weft_fs_watch *watch, int r)
{
	/* pairs: [watch.busy] */
	weft__store(&watch->busy, false, release);
	return r;
}

/* ---- Adding -------------------------------------------------------------- */

struct add {
	struct weft_fs_watch *watch;
	struct weft__watch_root *root;
	const char *path;
};

/* A root that could not be watched as a whole is refused. */
static bool is_fatal(int error)
{
	return error < 0 && error != -EACCES && error != -EPERM;
}

static int64_t add_root(void *arg)
{
	struct add *add = arg;
	struct weft__watch_root *root = add->root;
	char path[PATH_MAX];
	int r;

	if (!realpath(add->path, path))
		return -errno;
	root->dir = weft__watch_dir_new(add->watch, root, NULL, path);
	if (!root->dir)
		return -ENOMEM;
	r = weft__watch_bind_root(add->watch, root->dir);
	if (r == 0 && root->is_tree)
		weft__watch_dir_due(add->watch, root->dir, WEFT__SCAN_QUIET);
	return r;
}

static int64_t scan_due(void *arg)
{
	weft__watch_scan_due(arg);
	return 0;
}

static int add_run(struct add *add)
{
	struct weft_fs_watch *watch = add->watch;
	int r = (int)weft_blocking(add_root, add);

	watch->add_error = 0;
	watch->adding = true;
	while (r >= 0 && weft__watch_scans(watch) &&
	       !is_fatal(watch->add_error))
		r = (int)weft_blocking(scan_due, watch);
	watch->adding = false;
	return r < 0 || !is_fatal(watch->add_error) ? r : watch->add_error;
}

int weft_fs_watch_add(struct weft_fs_watch *watch, const char *path,
		      unsigned kinds, unsigned flags)
{
	struct add add = { watch, NULL, path };
	struct weft__watch_root *root;
	int r = enter(watch);

	if (r < 0)
		return r;
	if (!path)
		return leave(watch, -EFAULT);
	if (!kinds || (kinds & ~(unsigned)WEFT_FS_ALL) ||
	    (flags & ~(unsigned)WEFT_FS_TREE))
		return leave(watch, -EINVAL);
	root = weft__memory_zeroed(watch->memory, sizeof(*root));
	if (!root)
		return leave(watch, -ENOMEM);
	root->kinds = kinds;
	root->is_tree = flags & WEFT_FS_TREE;
	root->number = watch->roots_count;
	add.root = root;
	r = add_run(&add);
	if (r < 0) {
		root_free(watch, root);
		events_free(watch, watch->roots_count);
		return leave(watch, r);
	}
	root->next = watch->roots;
	watch->roots = root;
	return leave(watch, watch->roots_count++);
}

/* Looks of one call at directories that are incomplete.  It is reached only
 * where the kernel has no openat2(2), with an inode that is mounted at two
 * places. */
enum { LOOKS_MAX = 100 };

/* ---- Events -------------------------------------------------------------- */

static bool queue_take(struct weft_fs_watch *watch,
		       struct weft_fs_event *ret_event)
{
	struct weft__watch_event *event = watch->queue;

	if (!event && watch->lost && !watch->due) {
		watch->lost = false;
		event = &watch->lost_event;
		event->event = (struct weft_fs_event){
			.kind = WEFT_FS_LOST,
			.root = -1,
			.path = "",
		};
		event->next = NULL;
	}
	if (!event)
		return false;
	if (event == watch->queue) {
		watch->queue = event->next;
		watch->queued--;
	}
	event_free(watch, watch->shown);
	watch->shown = event;
	*ret_event = event->event;
	return true;
}

/* On a thread of the pool: input, and directories. */
static int64_t catch_up(void *arg)
{
	struct weft_fs_watch *watch = arg;

	weft__watch_scan_due(watch);
	while (!watch->queue && !watch->due &&
	       watch->input_at < watch->input_bytes) {
		(void)weft__watch_decode(watch, false);
		weft__watch_scan_due(watch);
	}
	return 0;
}

/* Until there is an event, or the input is used up: 0, or an error. */
static int decode(struct weft_fs_watch *watch)
{
	while (weft__watch_scans(watch) ||
	       (!watch->queue && weft__watch_decode(watch, true))) {
		int r = (int)weft_blocking(catch_up, watch);

		if (r < 0)
			return r;
	}
	return 0;
}

/* The kernel's queue is empty, and directories may be looked at again: as long
 * as that has helped one, since one may be in the way to another; and after an
 * event, since a directory that cannot be opened may stay so for long. */
static int look_again(struct weft_fs_watch *watch)
{
	watch->looked = watch->scans;
	weft__watch_later_due(watch);
	return watch->due ? (int)weft_blocking(scan_due, watch) : 0;
}

static int input_read(struct weft_fs_watch *watch, bool waits)
{
	ssize_t n;

	if (!waits && !weft__syscall_is_readable(watch->fd))
		return -EAGAIN;
	n = weft_read(watch->fd, watch->input, sizeof(watch->input));
	if (n < 0)
		return (int)n;
	watch->input_at = 0;
	watch->input_bytes = (size_t)n;
	watch->looked = watch->scans - 1;
	return 0;
}

static int next(struct weft_fs_watch *watch, struct weft_fs_event *ret_event,
		bool waits)
{
	for (int looks = 0;;) {
		int r = decode(watch);

		if (r < 0)
			return r;
		if (queue_take(watch, ret_event))
			return 0;
		/* Its input is decoded before more is read. */
		if (watch->due || watch->input_at < watch->input_bytes)
			continue;
		if (watch->incomplete && watch->looked != watch->scans &&
		    looks < LOOKS_MAX &&
		    !weft__syscall_is_readable(watch->fd)) {
			looks++;
			r = look_again(watch);
		} else {
			r = input_read(watch, waits);
		}
		if (r < 0)
			return r;
	}
}

int weft_fs_watch_next(struct weft_fs_watch *watch,
		       struct weft_fs_event *ret_event)
{
	int r = enter(watch);

	return r < 0 ? r : leave(watch, next(watch, ret_event, true));
}

int weft_fs_watch_try_next(struct weft_fs_watch *watch,
			   struct weft_fs_event *ret_event)
{
	int r = enter(watch);

	return r < 0 ? r : leave(watch, next(watch, ret_event, false));
}
