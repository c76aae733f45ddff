/* SPDX-License-Identifier: MIT */
/*
 * Walking in order, in one task: a stack of frames, each with the records of a
 * directory in the order of their names, and the place where the walk is in it.
 *
 *	a frame		all names of one directory
 *	the window	the statuses of the next entries of the top frame; it
 *			ends with a directory, since the walk then goes there
 *
 * Directories are read, and statuses filled in, by jobs on the pool.  Of the
 * frames, those near the top keep their descriptors; a lower one is opened
 * again when the walk comes back to it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/walk.h"
#include "io/os/syscall.h"

enum {
	BUFFER_BYTES = 32 << 10,
	WINDOW_MAX = 64,
	OPEN_MAX = 12,
	/* Visits without a wait, before other tasks have their turn. */
	VISITS_MAX = 1024,
};

struct frame {
	struct frame *below; /* the frame of the parent */
	struct weft__tree_dir *dir;
	char *records;
	size_t bytes;
	struct weft__dirent **order;
	size_t count, at;
	int fd;
	int error;
};

struct sorted {
	struct weft__walk *walk;
	struct weft__tree_hand hand;
	struct weft__walk_path path;
	struct frame *top;
	size_t window_end; /* in the top frame's order */
	size_t window_start;
	unsigned visits;
	bool keeps; /* descriptors are needed after the reading */
	struct statx window[WINDOW_MAX];
	_Alignas(8) char buffer[BUFFER_BYTES];
};

/* ---- Reading, in a job ------------------------------------------------ */

static int records_add(struct sorted *sorted, struct frame *frame, size_t bytes)
{
	char *records =
		weft__memory_resize(sorted->walk->tree.memory, frame->records,
				    frame->bytes, frame->bytes + bytes);

	if (!records)
		return -ENOMEM;
	memcpy(records + frame->bytes, sorted->buffer, bytes);
	frame->records = records;
	frame->bytes += bytes;
	return 0;
}

/* 0, or -ENOMEM; another error is the frame's. */
static int records_read(struct sorted *sorted, struct frame *frame)
{
	ssize_t r;
	int error;

	while ((r = weft__dirents_read(frame->fd, sorted->buffer,
				       BUFFER_BYTES)) > 0) {
		struct weft__walk_records records = { sorted->buffer,
						      (size_t)r, NULL };

		if (!sorted->walk->opts->status_mask)
			weft__walk_look(sorted->walk, frame->fd, records);
		error = records_add(sorted, frame, (size_t)r);
		if (error < 0)
			return error;
	}
	frame->error = (int)r;
	return 0;
}

static int names_compare(const void *left, const void *right)
{
	const struct weft__dirent *const *a = left, *const *b = right;

	return strcmp((*a)->name, (*b)->name);
}

static int records_sort(struct sorted *sorted, struct frame *frame)
{
	const struct weft_allocator *memory = sorted->walk->tree.memory;
	struct weft__dirent *dirent;
	size_t at, count = 0;

	for (at = 0; at < frame->bytes; at += dirent->bytes, count++)
		dirent = (void *)(frame->records + at);
	frame->order = weft__memory_new(memory,
					(count + 1) * sizeof(*frame->order));
	if (!frame->order)
		return -ENOMEM;
	/* For its freeing; those at the end are not visited. */
	frame->order[0] = NULL;
	for (at = 0, count = 0; at < frame->bytes; at += dirent->bytes) {
		dirent = (void *)(frame->records + at);
		if (!weft__dirent_is_dots(dirent))
			frame->order[count++] = dirent;
	}
	frame->count = count;
	qsort(frame->order, count, sizeof(*frame->order), names_compare);
	return 0;
}

/* Reads the directory of the new top frame. */
static int64_t frame_read(void *arg)
{
	struct sorted *sorted = arg;
	struct frame *frame = sorted->top;
	int r;

	frame->fd = weft__walk_open(sorted->walk, &sorted->hand, frame->dir);
	if (frame->fd < 0) {
		frame->error = frame->fd == -ESRCH ? 0 : frame->fd;
		return 0;
	}
	r = records_read(sorted, frame);
	if (r == 0)
		r = records_sort(sorted, frame);
	if (!sorted->keeps || frame->count == 0) {
		weft__syscall_close(frame->fd);
		frame->fd = -1;
	}
	return r;
}

static void window_fill(struct sorted *sorted, struct frame *frame)
{
	size_t at = frame->at, end = at + WINDOW_MAX;
	int r = frame->fd < 0 ? frame->fd : 0;

	if (end > frame->count)
		end = frame->count;
	sorted->window_start = at;
	while (at < end) {
		struct weft__dirent *dirent = frame->order[at];
		struct statx *status =
			&sorted->window[at++ - sorted->window_start];

		if (frame->fd >= 0)
			r = weft__walk_status(sorted->walk, frame->fd,
					      dirent->name, status);
		dirent->offset = r;
		if (r == 0)
			dirent->type = weft__dirent_type(status->stx_mode);
		if (dirent->type == DT_DIR)
			break;
	}
	sorted->window_end = at;
}

/* Gets the next visits in the top frame their descriptor and statuses. */
static int64_t frame_prepare(void *arg)
{
	struct sorted *sorted = arg;
	struct frame *frame = sorted->top;

	if (frame->fd < 0)
		frame->fd = weft__walk_open(sorted->walk, &sorted->hand,
					    frame->dir);
	if (sorted->walk->opts->status_mask)
		window_fill(sorted, frame);
	return 0;
}

/* ---- Frames ----------------------------------------------------------- */

static int job(struct sorted *sorted, weft_fn fn)
{
	sorted->visits = 0;
	return (int)weft_blocking_lane(&sorted->walk->tree.lane, fn, sorted);
}

static void frame_pop(struct sorted *sorted)
{
	struct weft__tree *tree = &sorted->walk->tree;
	struct frame *frame = sorted->top;
	size_t records = 0;

	for (size_t at = 0; at < frame->bytes; records++)
		at += ((struct weft__dirent *)(void *)(frame->records + at))
			      ->bytes;
	sorted->top = frame->below;
	sorted->window_end = 0;
	if (frame->fd >= 0)
		weft__syscall_close(frame->fd);
	weft__memory_free(tree->memory, frame->order,
			  (records + 1) * sizeof(*frame->order));
	weft__memory_free(tree->memory, frame->records, frame->bytes);
	weft__memory_free(tree->memory, frame, sizeof(*frame));
}

/* Takes over the directory. */
static int frame_push(struct sorted *sorted, struct weft__tree_dir *dir)
{
	struct weft__tree *tree = &sorted->walk->tree;
	struct frame *frame = weft__memory_zeroed(tree->memory, sizeof(*frame));
	struct frame *lower = sorted->top;

	if (!frame) {
		weft__tree_dir_free(tree, dir);
		return -ENOMEM;
	}
	dir->id = ++tree->last_id;
	frame->dir = dir;
	frame->fd = -1;
	frame->below = sorted->top;
	sorted->top = frame;
	sorted->window_end = 0;
	for (int i = 1; lower && i < OPEN_MAX; i++)
		lower = lower->below;
	if (lower && lower->fd >= 0) {
		weft__syscall_close(lower->fd);
		lower->fd = -1;
	}
	return job(sorted, frame_read);
}

/* ---- Visits ----------------------------------------------------------- */

static int prepare(struct sorted *sorted)
{
	const struct frame *frame = sorted->top;

	if (sorted->keeps &&
	    (frame->fd < 0 || (sorted->walk->opts->status_mask &&
			       frame->at >= sorted->window_end)))
		return job(sorted, frame_prepare);
	if (++sorted->visits < VISITS_MAX)
		return 0;
	sorted->visits = 0;
	return weft_yield();
}

static int dir_fd(const struct sorted *sorted)
{
	/* A frame that could not be opened again has an error there. */
	return sorted->top && sorted->top->fd >= 0 &&
			       weft__walk_has(sorted->walk, WEFT_WALK_DIR_FD) ?
		       sorted->top->fd :
		       -1;
}

/* Visits the next entry of the top frame, and enters it. */
static int entry_visit(struct sorted *sorted)
{
	struct weft__walk *walk = sorted->walk;
	struct frame *frame = sorted->top;
	const struct weft__dirent *dirent;
	const struct statx *status = NULL;
	struct weft__tree_dir *dir;
	int r = prepare(sorted);

	if (r >= 0)
		r = weft__walk_path_set(walk, &sorted->path, frame->dir);
	if (r < 0)
		return r;
	if (walk->opts->status_mask)
		status = &sorted->window[frame->at - sorted->window_start];
	dirent = frame->order[frame->at++];
	r = weft__walk_visit_dirent(walk, &sorted->path, frame->dir,
				    dir_fd(sorted), dirent, status);
	if (r < 0 || dirent->type != DT_DIR || dirent->offset)
		return r;
	if (!weft__walk_enters(walk, frame->dir->depth + 1, r))
		return weft__walk_leave_dirent(walk, &sorted->path, frame->dir,
					       dir_fd(sorted), dirent);
	dir = weft__tree_dir_new(&walk->tree, frame->dir, dirent->name,
				 strlen(dirent->name));
	return dir ? frame_push(sorted, dir) : -ENOMEM;
}

/* Leaves the top frame. */
static int frame_leave(struct sorted *sorted)
{
	struct weft__walk *walk = sorted->walk;
	struct weft__tree_dir *dir = sorted->top->dir;
	int r = 0;

	if (sorted->top->error)
		r = weft__walk_visit_dir(walk, &sorted->path, dir, -1,
					 WEFT_WALK_ERROR, sorted->top->error);
	frame_pop(sorted);
	if (r >= 0 && weft__walk_has(walk, WEFT_WALK_POST)) {
		if (dir->parent && weft__walk_has(walk, WEFT_WALK_DIR_FD) &&
		    sorted->top->fd < 0)
			r = job(sorted, frame_prepare);
		if (r >= 0)
			r = weft__walk_visit_dir(walk, &sorted->path, dir,
						 dir_fd(sorted),
						 WEFT_WALK_LEAVE, 0);
	}
	weft__tree_dir_free(&walk->tree, dir);
	return r;
}

int weft__walk_sorted(struct weft__walk *walk, struct weft__tree_dir *root)
{
	struct sorted *sorted =
		weft__memory_new(walk->tree.memory, sizeof(*sorted));
	int r;

	if (!sorted) {
		weft__tree_dir_free(&walk->tree, root);
		return -ENOMEM;
	}
	sorted->walk = walk;
	sorted->path = (struct weft__walk_path){ 0 };
	sorted->top = NULL;
	sorted->keeps = weft__walk_has(walk, WEFT_WALK_DIR_FD) ||
			walk->opts->status_mask;
	weft__tree_hand_init(&sorted->hand, &walk->tree);
	r = frame_push(sorted, root);
	while (r >= 0 && sorted->top)
		r = sorted->top->at < sorted->top->count ? entry_visit(sorted) :
							   frame_leave(sorted);
	while (sorted->top) {
		struct weft__tree_dir *dir = sorted->top->dir;

		frame_pop(sorted);
		weft__tree_dir_free(&walk->tree, dir);
	}
	weft__tree_hand_fini(&sorted->hand);
	weft__walk_path_fini(walk, &sorted->path);
	weft__memory_free(walk->tree.memory, sorted, sizeof(*sorted));
	return r < 0 ? r : 0;
}
