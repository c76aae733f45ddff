/* SPDX-License-Identifier: MIT */
/*
 * weft_copy_tree(): the beginning and the end of a call.  The runners between
 * them are in copy_runner.c; copy_tree.h has the model.
 *
 * The calling task is a runner itself, and starts others.  One that cannot be
 * started is missing, no more.
 */
#include "fs/copy_runner.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weft/time.h>

#include "io/request/call.h"
#include "runtime/base/own_fd.h"
#include "runtime/sched/runtime.h"

enum {
	RUNNERS_MIN = 2,
	RUNNERS_MAX = 64,
	OPEN_MIN = 8,
	OPEN_MAX = 64, /* nodes, with two descriptors each */
};

struct call {
	struct weft__copy_tree tree;
	bool begun;   /* there may be something to close */
	bool is_file; /* `from` is no directory */
};

/* ---- The beginning ------------------------------------------------------- */

static unsigned open_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    limit.rlim_cur / 8 >= OPEN_MAX)
		return OPEN_MAX;
	return limit.rlim_cur / 8 > OPEN_MIN ? (unsigned)limit.rlim_cur / 8 :
					       OPEN_MIN;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is it the original, or a directory above?  Closes `dir`: 0 or an error. */
static int look_above(int dir, const struct stat *from)
{
	struct stat status, before = { 0 };
	int r = fstat(dir, &status) < 0 ? -errno : 0;

	while (r == 0 && !is_same(&status, &before)) {
		int above;

		if (is_same(&status, from)) {
			r = -EINVAL;
			break;
		}
		before = status;
		above = openat(dir, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(dir);
		dir = above;
		r = dir < 0 || fstat(dir, &status) < 0 ? -errno : 0;
	}
	if (dir >= 0)
		close(dir);
	return r;
}

/* A copy into itself would have no end. */
static int check_into_itself(const struct weft__copy_tree *tree)
{
	int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int dir = openat(tree->to_parent, tree->root->name, flags);

	if (dir < 0 && errno == ENOENT)
		dir = openat(tree->to_parent, ".", flags);
	if (dir < 0)
		return errno == ELOOP ? -ENOTDIR : -errno;
	return look_above(dir, &tree->root->status);
}

/* A directory with a slash behind its name, which may be that of a link: 1; 0:
 * there is none yet, or another file; or an error. */
static int to_enter(struct weft__copy_tree *tree)
{
	int fd = weft__fd_above_stdio(
		open(tree->to_path, O_PATH | O_DIRECTORY | O_CLOEXEC));

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	close(tree->to_parent);
	tree->to_parent = fd;
	return 1;
}

static int root_new(struct weft__copy_tree *tree)
{
	char text[NAME_MAX + 1];
	const char *name;
	size_t bytes;
	int r = weft__copy_parent_open(tree->to_path, &name, &bytes);

	if (r < 0)
		return r;
	tree->to_parent = r;
	r = bytes == 0;
	if (bytes > 0 && name[bytes] == '/')
		r = to_enter(tree);
	if (r < 0)
		return r;
	if (r > 0) {
		name = ".";
		bytes = 1;
	}
	memcpy(text, name, bytes);
	text[bytes] = '\0';
	tree->root = weft__copy_node_new(tree, NULL, text);
	return tree->root ? 0 : -ENOMEM;
}

/* The original: 0; 1: it is no directory; or an error. */
static int from_open(struct weft__copy_tree *tree)
{
	struct weft__copy_node *root = tree->root;
	int follow = tree->opts.flags & WEFT_COPY_FOLLOW ? 0 : O_NOFOLLOW;
	int r = weft__fd_above_stdio(
		open(tree->from_path,
		     O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow));

	if (r < 0)
		return r == -ENOTDIR || r == -ELOOP ? 1 : r;
	root->from = r;
	return fstat(root->from, &root->status) < 0 ? -errno : 0;
}

static int64_t call_begin(void *arg)
{
	struct call *call = arg;
	struct weft__copy_tree *tree = &call->tree;
	uint64_t number = weft__copy_temp_number();
	int r;

	call->begun = true;
	r = root_new(tree);
	if (r == 0)
		r = from_open(tree);
	call->is_file = r > 0;
	if (r == 0)
		r = check_into_itself(tree);
	if (r == 0)
		r = weft__copy_root_open(tree, &number);
	if (r == 0)
		weft__copy_tree_push(tree, &tree->root->item);
	return r;
}

static int call_prepare(struct call *call, struct weft__copy_tree *tree)
{
	size_t bytes = WEFT__COPY_GROUPS * sizeof(*tree->groups);

	tree->to_parent = -1;
	tree->bytes_left = tree->opts.bytes_max;
	tree->open_max = open_max();
	if (tree->opts.flags & WEFT_COPY_LINKS) {
		tree->groups = weft__memory_zeroed(tree->memory, bytes);
		if (!tree->groups)
			return -ENOMEM;
	}
	/* relaxed: no runner exists yet. */
	weft__store(&tree->clones, true, relaxed);
	return (int)weft_blocking_lane(&tree->lane, call_begin, call);
}

/* ---- The end ------------------------------------------------------------- */

/* Gives directories their names that were not completed. */
static int64_t call_end(void *arg)
{
	struct call *call = arg;
	struct weft__copy_tree *tree = &call->tree;

	for (struct weft__copy_node *node = tree->all; node;
	     node = node->all_next)
		(void)weft__copy_node_publish(tree, node);
	while (tree->queue) {
		struct weft__copy_item *item = tree->queue;

		tree->queue = item->next;
		if (item->bytes)
			weft__memory_free(tree->memory, item,
					  sizeof(*item) + item->bytes);
	}
	weft__copy_links_free(tree);
	weft__copy_nodes_free(tree);
	if (tree->to_parent >= 0)
		close(tree->to_parent);
	return 0;
}

static unsigned runners_count(const struct weft__copy_tree *tree,
			      const struct weft__worker *worker)
{
	unsigned n = tree->opts.jobs_max;

	if (n == 0)
		n = worker->runtime->workers_count > RUNNERS_MIN ?
			    worker->runtime->workers_count :
			    RUNNERS_MIN;
	return n < RUNNERS_MAX ? n : RUNNERS_MAX;
}

static void tree_run(struct weft__copy_tree *tree, unsigned runners)
{
	struct weft_scope scope;

	tree->lane.jobs_max = runners;
	if (weft_supervisor_begin(&scope) < 0)
		runners = 1;
	for (unsigned i = 1; i < runners; i++)
		if (WEFT_GO(&scope, weft__copy_runner_main, tree) < 0)
			break;
	(void)weft__copy_runner_main(&tree);
	(void)weft_scope_end(&scope);
}

/* The runners that a task started are cancelled where the task itself is out of
 * time, and one of them may have been the first to stop the call. */
static int reason(int error)
{
	struct weft__worker *worker;
	int own;

	if (error != -ECANCELED)
		return error;
	own = weft__call_begin(&worker);
	/* The alarm of a runner was the first; this task's own is due. */
	if (own == 0 && weft_deadline_passed())
		own = weft_sleep(WEFT_SEC(1));
	return own < 0 ? own : error;
}

static int call_run(struct call *call, struct weft__worker *worker,
		    struct weft_copy_counts *counts)
{
	struct weft__copy_tree *tree = &call->tree;
	int r = call_prepare(call, tree);

	if (r == 0) {
		tree_run(tree, runners_count(tree, worker));
		r = reason(tree->error);
	}
	if (call->begun)
		weft__copy_clean_up(&tree->lane, call_end, call);
	else
		(void)call_end(call);
	*counts = tree->counts;
	return r;
}

int weft_copy_tree(const char *from, const char *to,
		   const struct weft_copy_opts *opts,
		   struct weft_copy_counts *ret_counts)
{
	struct weft_copy_counts counts = { 0 };
	struct weft_copy_opts known;
	struct weft__worker *worker;
	const struct weft_allocator *memory;
	struct call *call;
	int r = weft__copy_begin(from, to, opts, &known, &worker);

	if (r < 0)
		goto out;
	memory = worker->runtime->memory;
	call = weft__memory_zeroed(memory, sizeof(*call));
	r = -ENOMEM;
	if (!call)
		goto out;
	call->tree.opts = known;
	call->tree.memory = memory;
	call->tree.from_path = from;
	call->tree.to_path = to;
	call->tree.lane = (struct weft_lane)WEFT_LANE_INIT("copy", 0);
	r = call_run(call, worker, &counts);
	if (call->is_file)
		r = weft__copy_file(weft__worker_self(), from, to, &known,
				    &counts);
	weft__memory_free(memory, call, sizeof(*call));
	if (known.on_progress)
		known.on_progress(&counts, known.arg);
out:
	if (ret_counts)
		*ret_counts = counts;
	return r;
}
