/* SPDX-License-Identifier: MIT */
/*
 * Walking in any order: each task of the crew reads a batch of directories in
 * one job, and visits what is in it.
 *
 *	job on the pool				task
 *	---------------				----
 *	takes directories from the stack,	visits the records of each
 *	opens and reads them into one buffer,	part, collects directories,
 *	notes each as a part of the batch,	pushes them;
 *	until the buffer is full, the stack	finishes directories that
 *	is empty, or a millisecond is over	were read to their end
 *
 * A directory that has more records than the buffer goes back onto the stack,
 * below the directories that were found in it, so that those are walked first.
 * It keeps its descriptor, whose position is where its reading goes on.  If
 * many directories are halfway, it goes on top, and is read to its end first.
 *
 * Invariants
 *   WALK1  A directory is in the stack, or in one part of one batch, or it was
 *       read and waits for directories below it.
 *   WALK2  With WEFT_WALK_DIR_FD a part's descriptor stays open until the next
 *       job of its batch.
 */
#include <errno.h>
#include <string.h>

#include "fs/walk.h"
#include "io/os/syscall.h"

enum {
	RECORDS_BYTES = 64 << 10,
	RECORD_BYTES_MIN = 24,
	/* If they are asked for.  They take a call each. */
	STATUSES_MAX = 512,
	/* Less room is not worth a call; the longest record fits. */
	ROOM_BYTES_MIN = 2 << 10,
	PARTS_MAX = 128,
	/* With descriptors: of all tasks. */
	PARTS_OPEN_MAX = 32,
};
#define JOB_NS WEFT_MS(1)

/* Records of one directory. */
struct part {
	struct weft__tree_dir *dir; /* NULL: dealt with */
	uint32_t start, end;	    /* in the records */
	uint32_t status;	    /* the first, in the statuses */
	int fd;			    /* for its visits; or -1 */
	int error;
	bool ended; /* all was read */
	bool closes; /* the fd, after the visits */
};

struct batch {
	struct weft__walk *walk;
	struct weft__tree_hand hand;
	struct weft__walk_path path;
	struct statx *statuses;
	uint32_t statuses_count;
	uint32_t used; /* bytes of records */
	unsigned parts_count, parts_max;
	struct part parts[PARTS_MAX];
	_Alignas(8) char records[RECORDS_BYTES];
};

/* ---- Reading, in a job ------------------------------------------------ */

static void parts_close(struct batch *batch)
{
	for (unsigned i = 0; i < batch->parts_count; i++)
		if (batch->parts[i].closes)
			weft__syscall_close(batch->parts[i].fd);
	batch->parts_count = 0;
	batch->used = 0;
	batch->statuses_count = 0;
}

/* So many bytes may be read: there is a status for each record in them. */
static uint32_t room(const struct batch *batch)
{
	uint32_t bytes = RECORDS_BYTES - batch->used, most;

	if (!batch->statuses)
		return bytes;
	most = (STATUSES_MAX - batch->statuses_count) * RECORD_BYTES_MIN;
	return bytes < most ? bytes : most;
}

static uint32_t entries_count(const char *records, size_t bytes)
{
	const struct weft__dirent *dirent;
	uint32_t count = 0;

	for (size_t at = 0; at < bytes; at += dirent->bytes) {
		dirent = (const void *)(records + at);
		count += !weft__dirent_is_dots(dirent);
	}
	return count;
}

/* Reads into the batch.  Returns 0 at the end, 1 if there may be more, or an
 * error. */
static int records_read(struct batch *batch, int fd)
{
	struct weft__walk_records records;
	ssize_t r;

	while (room(batch) >= ROOM_BYTES_MIN) {
		records.at = batch->records + batch->used;
		r = weft__dirents_read(fd, records.at, room(batch));
		if (r <= 0)
			return (int)r;
		records.bytes = (size_t)r;
		records.statuses = NULL;
		if (batch->statuses) {
			records.statuses =
				batch->statuses + batch->statuses_count;
			batch->statuses_count +=
				entries_count(records.at, records.bytes);
		}
		weft__walk_look(batch->walk, fd, records);
		batch->used += (uint32_t)r;
	}
	return 1;
}

static void part_read(struct batch *batch, struct part *part)
{
	struct weft__tree_dir *dir = part->dir;
	bool keeps = weft__walk_has(batch->walk, WEFT_WALK_DIR_FD);
	int fd = dir->fd >= 0 ? dir->fd :
				weft__walk_open(batch->walk, &batch->hand, dir);
	int r;

	part->ended = true;
	if (fd < 0) {
		part->error = fd == -ESRCH ? 0 : fd;
		return;
	}
	r = records_read(batch, fd);
	part->end = batch->used;
	if (r > 0) {
		part->ended = false;
		dir->fd = fd;
	} else {
		part->error = r;
		if (dir->fd >= 0)
			weft__tree_halfway_end(&batch->walk->tree, dir);
		part->closes = keeps;
		dir->fd = -1;
	}
	if (keeps)
		part->fd = fd;
	else if (part->ended)
		weft__syscall_close(fd);
}

/* A directory that leaves is visited in its parent. */
static void part_leave(struct batch *batch, struct part *part)
{
	int fd;

	part->ended = true;
	if (!part->dir->parent ||
	    !weft__walk_has(batch->walk, WEFT_WALK_DIR_FD))
		return;
	fd = weft__tree_open(&batch->hand, part->dir->parent);
	part->closes = fd >= 0;
	part->fd = fd >= 0 ? fd : -1;
}

static int64_t batch_read(void *arg)
{
	struct batch *batch = arg;
	struct weft__tree_dir *dir;
	weft_nsec until_ns = weft_now() + JOB_NS;

	parts_close(batch);
	do {
		struct part *part = &batch->parts[batch->parts_count];

		dir = weft__tree_pop(&batch->walk->tree);
		if (!dir)
			break;
		*part = (struct part){
			.dir = dir,
			.start = batch->used,
			.end = batch->used,
			.status = batch->statuses_count,
			.fd = -1,
		};
		batch->parts_count++;
		if (dir->leaves)
			part_leave(batch, part);
		else
			part_read(batch, part);
	} while (batch->parts_count < batch->parts_max &&
		 room(batch) >= ROOM_BYTES_MIN &&
		 weft_now() < until_ns);
	return 0;
}

/* ---- Visiting, in the task -------------------------------------------- */

/* Visits are over for these directories, from one that was finished up. */
static void dirs_finish(struct weft__walk *walk, struct weft__tree_dir *dir,
			bool takes)
{
	struct weft__tree *tree = &walk->tree;

	while (dir->leaves || weft__tree_drop(tree, dir)) {
		struct weft__tree_dir *parent = dir->parent;

		if (!dir->leaves && weft__walk_has(walk, WEFT_WALK_POST)) {
			dir->leaves = true;
			weft__tree_push(tree, NULL, dir, takes);
			return;
		}
		weft__tree_dir_free(tree, dir);
		if (!parent) {
			weft__tree_end(tree);
			return;
		}
		dir = parent;
	}
}

/* Visits the records of a part.  Directories that are to be entered are put
 * before *first. */
static int records_visit(struct batch *batch, const struct part *part,
			 struct weft__tree_dir **first)
{
	struct weft__walk *walk = batch->walk;
	const struct statx *status =
		batch->statuses ? batch->statuses + part->status : NULL;
	const struct weft__dirent *dirent;
	struct weft__tree_dir *dir;
	int r = weft__walk_path_set(walk, &batch->path, part->dir);

	for (size_t at = part->start; r >= 0 && at < part->end;
	     at += dirent->bytes) {
		dirent = (const void *)(batch->records + at);
		if (weft__dirent_is_dots(dirent))
			continue;
		r = weft__walk_visit_dirent(walk, &batch->path, part->dir,
					    part->fd, dirent, status);
		status += status != NULL;
		if (r < 0 || dirent->type != DT_DIR || dirent->offset)
			continue;
		if (!weft__walk_enters(walk, part->dir->depth + 1, r)) {
			r = weft__walk_leave_dirent(walk, &batch->path,
						    part->dir, part->fd,
						    dirent);
			continue;
		}
		dir = weft__tree_dir_new(&walk->tree, part->dir, dirent->name,
					 strlen(dirent->name));
		if (!dir)
			return -ENOMEM;
		dir->next = *first;
		*first = dir;
	}
	return r < 0 ? r : 0;
}

static void dirs_free(struct weft__walk *walk, struct weft__tree_dir *dir)
{
	while (dir) {
		struct weft__tree_dir *next = dir->next;

		weft__tree_dir_free(&walk->tree, dir);
		dir = next;
	}
}

/* A directory that was read is visited for the last time, or goes on. */
static void part_end(struct batch *batch, struct part *part,
		     struct weft__tree_dir *found)
{
	struct weft__tree *tree = &batch->walk->tree;
	struct weft__tree_dir *dir = part->dir;
	bool takes = part + 1 == &batch->parts[batch->parts_count];

	part->dir = NULL;
	if (found || !part->ended)
		weft__tree_push(tree, found, part->ended ? NULL : dir, takes);
	if (part->ended)
		dirs_finish(batch->walk, dir, takes);
}

static int part_visit(struct batch *batch, struct part *part)
{
	struct weft__walk *walk = batch->walk;
	struct weft__tree_dir *found = NULL;
	int r;

	if (part->dir->leaves) {
		r = weft__walk_visit_dir(walk, &batch->path, part->dir,
					 part->fd, WEFT_WALK_LEAVE, 0);
		if (r >= 0)
			part_end(batch, part, NULL);
		return r;
	}
	r = records_visit(batch, part, &found);
	if (r >= 0 && part->error)
		r = weft__walk_visit_dir(walk, &batch->path, part->dir, -1,
					 WEFT_WALK_ERROR, part->error);
	if (r < 0) {
		dirs_free(walk, found);
		return r;
	}
	part_end(batch, part, found);
	return 0;
}

/* ---- The task --------------------------------------------------------- */

static const size_t STATUSES_BYTES = STATUSES_MAX * sizeof(struct statx);

static void batch_free(struct batch *batch)
{
	struct weft__walk *walk = batch->walk;

	for (unsigned i = 0; i < batch->parts_count; i++)
		if (batch->parts[i].dir)
			weft__tree_give_up(&walk->tree, batch->parts[i].dir);
	parts_close(batch);
	weft__tree_hand_fini(&batch->hand);
	weft__walk_path_fini(walk, &batch->path);
	weft__memory_free(walk->tree.memory, batch->statuses, STATUSES_BYTES);
	weft__memory_free(walk->tree.memory, batch, sizeof(*batch));
}

static struct batch *batch_new(struct weft__walk *walk)
{
	struct batch *batch =
		weft__memory_new(walk->tree.memory, sizeof(*batch));

	if (!batch)
		return NULL;
	batch->walk = walk;
	weft__tree_hand_init(&batch->hand, &walk->tree);
	batch->path = (struct weft__walk_path){ 0 };
	batch->statuses = NULL;
	batch->parts_count = 0;
	batch->parts_max = PARTS_MAX;
	if (weft__walk_has(walk, WEFT_WALK_DIR_FD))
		batch->parts_max = 1 + PARTS_OPEN_MAX / walk->tree.tasks_max;
	if (walk->opts->status_mask) {
		batch->statuses =
			weft__memory_new(walk->tree.memory, STATUSES_BYTES);
		if (!batch->statuses) {
			batch_free(batch);
			return NULL;
		}
	}
	return batch;
}

static int batch_visit(struct batch *batch)
{
	int r = 0;

	for (unsigned i = 0; i < batch->parts_count && r >= 0; i++)
		r = part_visit(batch, &batch->parts[i]);
	return r;
}

int64_t weft__walk_any(void *arg)
{
	struct weft__tree *tree = *(struct weft__tree **)arg;
	struct batch *batch = batch_new((struct weft__walk *)(void *)tree);
	int64_t r;

	if (!batch)
		return -ENOMEM;
	while ((r = weft__tree_wait(tree)) > 0) {
		r = weft_blocking_lane(&tree->lane, batch_read, batch);
		if (r < 0)
			break;
		weft__tree_staff(tree);
		r = batch_visit(batch);
		if (r < 0)
			break;
	}
	batch_free(batch);
	return r;
}
