/* SPDX-License-Identifier: MIT */
/*
 * weft_remove_tree(): a crew of tasks, each of which runs jobs that remove
 * files for some milliseconds, and reports what they did after each.
 *
 *	job on the pool			task
 *	---------------			----
 *	removes: remove_dir.c		calls `report` for each note,
 *	notes: remove_log.c		under the mutex `reporting`
 *
 * Concurrency
 *   The counts, the first error and `stops` are under the tree's lock; the
 *   records and the log of a remover belong to its task, or its job.
 */
#include "fs/remove.h"

#include <errno.h>
#include <string.h>

#include "io/os/syscall.h"
#include "io/request/call.h"

static const unsigned FLAGS = WEFT_REMOVE_GO_ON | WEFT_REMOVE_ONE_MOUNT |
			      WEFT_REMOVE_CONTENTS | WEFT_REMOVE_QUIET;

/* ---- The task --------------------------------------------------------- */

static struct weft__remover *remover_new(struct weft__removal *removal)
{
	struct weft__remover *remover =
		weft__memory_new(removal->tree.memory, sizeof(*remover));

	if (!remover)
		return NULL;
	remover->removal = removal;
	remover->log = (struct weft__remove_log){ 0 };
	remover->counts = (struct weft_remove_counts){ 0 };
	weft__tree_hand_init(&remover->hand, &removal->tree);
	return remover;
}

static void remover_free(struct weft__remover *remover)
{
	const struct weft_allocator *memory = remover->removal->tree.memory;

	weft__tree_hand_fini(&remover->hand);
	weft__memory_free(memory, remover->log.text, remover->log.max);
	weft__memory_free(memory, remover, sizeof(*remover));
}

/* Runs a job, then reports.  The job's result, or that of a report. */
static int job(struct weft__remover *remover, weft_fn fn)
{
	int r = (int)weft_blocking_lane(&remover->removal->tree.lane, fn,
					remover);
	int reported;

	weft__tree_staff(&remover->removal->tree);
	reported = weft__remove_report(remover);
	if (reported < 0)
		weft__remove_stop(remover->removal, reported);
	return r >= 0 && reported < 0 ? reported : r;
}

static int64_t remove_any(void *arg)
{
	struct weft__tree *tree = *(struct weft__tree **)arg;
	struct weft__remover *remover =
		remover_new((struct weft__removal *)(void *)tree);
	int r;

	if (!remover)
		return -ENOMEM;
	while ((r = weft__tree_wait(tree)) > 0) {
		r = job(remover, weft__remove_some);
		if (r < 0)
			break;
	}
	remover_free(remover);
	return r;
}

/* ---- The call --------------------------------------------------------- */

static int root_begin(struct weft__removal *removal)
{
	struct weft__remover *remover = remover_new(removal);
	int r;

	if (!remover)
		return -ENOMEM;
	r = job(remover, weft__remove_root);
	remover_free(remover);
	return r;
}

static int removal_run(struct weft__removal *removal)
{
	struct weft__tree_dir *root;
	int r = root_begin(removal);

	if (r <= 0)
		return r;
	root = weft__tree_dir_new(&removal->tree, NULL, "", 0);
	if (!root)
		return -ENOMEM;
	r = weft__tree_run(&removal->tree, root);
	return r < 0 ? r : removal->error;
}

/* Copies the path, without slashes at its end: they would have a link
 * followed.  0, -EINVAL or -ENOMEM. */
static int path_take(struct weft__removal *removal, const char *path)
{
	size_t bytes = strlen(path), last;

	while (bytes && path[bytes - 1] == '/')
		bytes--;
	removal->had_slash = path[bytes];
	for (last = bytes; last && path[last - 1] != '/';)
		last--;
	if (!bytes)
		return -EINVAL;
	if (!(removal->opts->flags & WEFT_REMOVE_CONTENTS) &&
	    path[last] == '.' &&
	    (last + 1 == bytes || (path[last + 1] == '.' && last + 2 == bytes)))
		return -EINVAL;
	removal->path = weft__memory_new(removal->tree.memory, bytes + 1);
	if (!removal->path)
		return -ENOMEM;
	memcpy(removal->path, path, bytes);
	removal->path[bytes] = '\0';
	return 0;
}

static int removal_begin(struct weft__removal *removal, const char *path)
{
	int r;

	weft__tree_init(&removal->tree, remove_any, removal->opts->tasks);
	removal->tree.one_mount = removal->opts->flags & WEFT_REMOVE_ONE_MOUNT;
	r = path_take(removal, path);
	if (r < 0)
		return r;
	r = removal_run(removal);
	if (removal->tree.root_fd >= 0)
		weft__syscall_close(removal->tree.root_fd);
	weft__memory_text_free(removal->tree.memory, removal->path);
	return r;
}

int weft_remove_tree(int dir_fd, const char *path,
		     const struct weft_remove_opts *opts)
{
	static const struct weft_remove_opts defaults = WEFT_REMOVE_OPTS_INIT;
	struct weft__removal removal = {
		.opts = opts ? opts : &defaults,
		.dir_fd = dir_fd,
	};
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r == 0 && (removal.opts->size != sizeof(*opts) ||
		       (removal.opts->flags & ~FLAGS)))
		r = -EINVAL;
	if (r == 0)
		r = path ? removal_begin(&removal, path) : -EFAULT;
	if (removal.opts->size == sizeof(*opts) && removal.opts->ret_counts)
		*removal.opts->ret_counts = removal.counts;
	return r;
}
