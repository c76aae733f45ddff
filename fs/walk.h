/* SPDX-License-Identifier: MIT */
#ifndef WEFT_FS_WALK_H
#define WEFT_FS_WALK_H

#include "fs/tree.h"

/* A call of weft_walk(). */
struct weft__walk {
	struct weft__tree tree;
	const struct weft_walk_opts *opts;
	weft_walk_fn visit;
	void *arg;
	/* As the caller names the root. */
	int dir_fd;
	const char *path;
	uint64_t root_device;
};

/* The path of what is visited, in a buffer that grows. */
struct weft__walk_path {
	char *text;
	size_t max;
	size_t dir_bytes; /* the directory's part, with its slash */
};

static inline bool weft__walk_has(const struct weft__walk *walk, unsigned flag)
{
	return walk->opts->flags & flag;
}

/* The records of a directory that go together with an array of statuses. */
struct weft__walk_records {
	char *at;
	size_t bytes;
	struct statx *statuses; /* of all but "." and ".."; or NULL */
};

/* ---- Reading: walk_read.c; in jobs ------------------------------------ */

/* Opens a directory that is to be read.  -ESRCH: it is on another device. */
int weft__walk_open(struct weft__walk *walk, struct weft__tree_hand *hand,
		    struct weft__tree_dir *dir);

/* The device and the number of an open directory. */
int weft__walk_identify(int fd, uint64_t *ret_device, uint64_t *ret_inode);

/* Finds the types that the directory did not tell, and the statuses.  The
 * word `offset` of a record becomes 0 or an error. */
void weft__walk_look(struct weft__walk *walk, int fd,
		     struct weft__walk_records records);

/* The status of a file; of the link itself, if links are followed and it names
 * none.  0, or an error. */
int weft__walk_status(struct weft__walk *walk, int dir_fd, const char *name,
		      struct statx *ret_status);

/* ---- Visiting: walk_visit.c; in tasks --------------------------------- */

void weft__walk_path_fini(struct weft__walk *walk,
			  struct weft__walk_path *path);

/* Makes it the path of a directory.  0 or -ENOMEM. */
int weft__walk_path_set(struct weft__walk *walk, struct weft__walk_path *path,
			const struct weft__tree_dir *dir);

/* Visits a file in the directory that the path was set to. */
int weft__walk_visit_dirent(struct weft__walk *walk,
			    struct weft__walk_path *path,
			    const struct weft__tree_dir *dir, int dir_fd,
			    const struct weft__dirent *dirent,
			    const struct statx *status);

/* Visits a directory again that was so visited and is not entered, if the walk
 * has WEFT_WALK_POST. */
int weft__walk_leave_dirent(struct weft__walk *walk,
			    struct weft__walk_path *path,
			    const struct weft__tree_dir *dir, int dir_fd,
			    const struct weft__dirent *dirent);

/* Visits a directory again: at its end, or for an error, or both. */
int weft__walk_visit_dir(struct weft__walk *walk, struct weft__walk_path *path,
			 const struct weft__tree_dir *dir, int dir_fd,
			 enum weft_walk_event event, int error);

/* Is a directory that was visited with this result to be entered? */
static inline bool weft__walk_enters(const struct weft__walk *walk,
				     unsigned depth, int result)
{
	return result == 0 && depth < walk->opts->depth_max;
}

/* ---- The two ways: walk_any.c, walk_sorted.c -------------------------- */

/* The function of a task of the crew. */
int64_t weft__walk_any(void *arg);

/* Walks in order, in the calling task. */
int weft__walk_sorted(struct weft__walk *walk, struct weft__tree_dir *root);

#endif
