/* SPDX-License-Identifier: MIT */
/*
 * Copy step - what a runner of weft_copy_tree() does in a turn.  A turn is a
 * number of steps on a thread of the pool.  Each step does the first of these
 * that there is:
 *
 *	a directory that is complete	its end
 *	a file that is being copied	its next piece
 *	a file with several names	the next name that came to wait
 *	names that were read		the next name
 *	names that are used up		gives up the directory
 *	the queue			the next item
 *
 * A step reports one file or directory at most.
 */
#include "fs/copy_runner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The record of getdents64(2). */
struct names_entry {
	uint64_t ino;
	int64_t offset;
	unsigned short bytes;
	unsigned char type;
	char name[];
};

_Static_assert(WEFT__COPY_BUFFER_BYTES >= 2 * WEFT__COPY_NAMES_BYTES,
	       "the buffer serves for names, too");

/* ---- Reports ------------------------------------------------------------- */

static enum weft__copy_step report_set(struct weft__copy_runner *runner,
				       struct weft__copy_node *node,
				       const char *name, int error)
{
	struct weft__copy_tree *tree = runner->tree;
	struct weft__copy_report *report = &runner->report;

	if (error < 0 && !tree->opts.on_error) {
		weft__copy_tree_stop(tree, error);
		return WORKS;
	}
	if (error == 0 && !tree->opts.on_copied)
		return WORKS;
	report->set = true;
	report->error = error;
	report->node = node;
	weft__copy_node_ref(tree, node);
	memcpy(report->name, name, strlen(name) + 1);
	return REPORTS;
}

/* ---- The queue ----------------------------------------------------------- */

void weft__copy_tree_push(struct weft__copy_tree *tree,
			  struct weft__copy_item *item)
{
	bool wakes;

	weft__lock_take(&tree->lock);
	item->next = tree->queue;
	tree->queue = item;
	wakes = tree->idle > 0;
	weft__lock_drop(&tree->lock);
	if (wakes)
		weft_notify_one(&tree->more);
}

/* The caller holds the lock. */
static void be_busy(struct weft__copy_runner *runner)
{
	if (runner->is_idle) {
		runner->is_idle = false;
		runner->tree->idle--;
		runner->tree->busy++;
	}
}

static void be_idle(struct weft__copy_runner *runner)
{
	if (!runner->is_idle) {
		runner->is_idle = true;
		runner->tree->idle++;
		runner->tree->busy--;
	}
}

static enum weft__copy_step item_take(struct weft__copy_runner *runner,
				      struct weft__copy_item **ret_item)
{
	struct weft__copy_tree *tree = runner->tree;
	enum weft__copy_step step = WORKS;
	bool wakes;

	weft__lock_take(&tree->lock);
	*ret_item = tree->queue;
	if (tree->queue) {
		tree->queue = tree->queue->next;
		be_busy(runner);
	} else {
		be_idle(runner);
		tree->finished = tree->busy == 0; /* CPT3 */
		step = tree->finished ? LEAVES : IDLES;
	}
	wakes = tree->idle > 0 && (tree->queue || tree->finished);
	weft__lock_drop(&tree->lock);
	if (wakes)
		weft_notify_one(&tree->more);
	return step;
}

/* Takes one from what the node is pending on. */
static void pending_drop(struct weft__copy_runner *runner,
			 struct weft__copy_node *node)
{
	bool last;

	weft__lock_take(&runner->tree->lock);
	last = --node->pending == 0;
	weft__lock_drop(&runner->tree->lock);
	if (last)
		runner->ending = node;
}

/* ---- Directories --------------------------------------------------------- */

/* Reads names until the buffer is full: 1: there are more; 0; or an error. */
static int names_read(struct weft__copy_runner *runner)
{
	struct weft__copy_node *node = runner->node;
	/* Some file systems have names longer than NAME_MAX. */
	size_t most = sizeof(struct names_entry) + PATH_MAX + 8;

	runner->names_bytes = 0;
	runner->names_at = 0;
	/* It may have been closed and opened again since the last read. */
	if (node->offset && lseek(node->from, node->offset, SEEK_SET) < 0)
		return -errno;
	while (WEFT__COPY_NAMES_BYTES - runner->names_bytes > most) {
		char *into = runner->names + runner->names_bytes;
		const struct names_entry *entry = (const void *)into;
		long n = syscall(SYS_getdents64, node->from, into,
				 WEFT__COPY_NAMES_BYTES - runner->names_bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		runner->names_bytes += (size_t)n;
		for (size_t at = 0; at < (size_t)n; at += entry->bytes)
			entry = (const void *)(into + at);
		node->offset = entry->offset;
	}
	return 1;
}

static bool is_to_be_read(const struct weft__copy_runner *runner)
{
	const struct weft__copy_tree *tree = runner->tree;

	return !(tree->opts.flags & WEFT_COPY_ONE_DEVICE) ||
	       runner->node->status.st_dev == tree->root->status.st_dev;
}

static int node_open(struct weft__copy_runner *runner,
		     struct weft__copy_node *node)
{
	if (node->opened)
		return weft__copy_node_get(runner->tree, node);
	return weft__copy_node_open(runner->tree, node, &runner->number);
}

/* Opens a directory, and reads of its names. */
static enum weft__copy_step node_begin(struct weft__copy_runner *runner,
				       struct weft__copy_node *node)
{
	struct weft__copy_tree *tree = runner->tree;
	int r = node_open(runner, node);

	if (r < 0) {
		pending_drop(runner, node);
		return report_set(runner, node, "", r);
	}
	runner->node = node;
	r = is_to_be_read(runner) ? names_read(runner) : 0;
	if (r > 0) {
		weft__lock_take(&tree->lock);
		node->pending++;
		weft__lock_drop(&tree->lock);
		weft__copy_tree_push(tree, &node->item);
	}
	return r < 0 ? report_set(runner, node, "", r) : WORKS;
}

static void names_free(struct weft__copy_tree *tree,
		       struct weft__copy_item *item)
{
	weft__memory_free(tree->memory, item, sizeof(*item) + item->bytes);
}

static enum weft__copy_step names_begin(struct weft__copy_runner *runner,
					struct weft__copy_item *item)
{
	struct weft__copy_node *node = item->node;
	int r = weft__copy_node_get(runner->tree, node);

	if (r < 0) {
		names_free(runner->tree, item);
		pending_drop(runner, node);
		return report_set(runner, node, "", r);
	}
	memcpy(runner->names, item + 1, item->bytes);
	runner->names_bytes = item->bytes;
	runner->names_at = 0;
	runner->node = node;
	names_free(runner->tree, item);
	return WORKS;
}

static enum weft__copy_step item_begin(struct weft__copy_runner *runner)
{
	struct weft__copy_item *item;
	enum weft__copy_step step = item_take(runner, &item);

	if (step != WORKS)
		return step;
	return item->bytes ? names_begin(runner, item) :
			     node_begin(runner, item->node);
}

static enum weft__copy_step node_give_up(struct weft__copy_runner *runner)
{
	struct weft__copy_node *node = runner->node;

	runner->node = NULL;
	weft__copy_node_put(runner->tree, node);
	pending_drop(runner, node);
	return WORKS;
}

static enum weft__copy_step node_end(struct weft__copy_runner *runner)
{
	struct weft__copy_tree *tree = runner->tree;
	struct weft__copy_node *node = runner->ending;
	enum weft__copy_step step = WORKS;
	int r;

	runner->ending = NULL;
	if (node->opened) {
		r = weft__copy_node_end(tree, node, runner->buffer);
		runner->counts.directories += r == 0;
		step = report_set(runner, node, "", r);
	}
	if (node->parent)
		pending_drop(runner, node->parent);
	weft__copy_node_unref(tree, node);
	return step;
}

static enum weft__copy_step child_add(struct weft__copy_runner *runner,
				      const char *name)
{
	struct weft__copy_node *child =
		weft__copy_node_new(runner->tree, runner->node, name);

	if (!child)
		return report_set(runner, runner->node, name, -ENOMEM);
	weft__copy_tree_push(runner->tree, &child->item);
	return WORKS;
}

/* Half of the names that are left, for a runner that is idle.  Without memory
 * this one goes on alone. */
static void names_share(struct weft__copy_runner *runner)
{
	struct weft__copy_tree *tree = runner->tree;
	size_t at = runner->names_at, bytes;
	size_t half = (runner->names_bytes + at) / 2;
	struct weft__copy_item *item;

	while (at < half)
		at += ((const struct names_entry
				*)(const void *)(runner->names + at))
			      ->bytes;
	bytes = runner->names_bytes - at;
	if (bytes == 0)
		return;
	item = weft__memory_new(tree->memory, sizeof(*item) + bytes);
	if (!item)
		return;
	*item = (struct weft__copy_item){ NULL, runner->node, bytes };
	memcpy(item + 1, runner->names + at, bytes);
	runner->names_bytes = at;
	weft__lock_take(&tree->lock);
	runner->node->pending++;
	weft__lock_drop(&tree->lock);
	weft__copy_tree_push(tree, item);
}

/* ---- Files --------------------------------------------------------------- */

static void one_set(struct weft__copy_runner *runner,
		    struct weft__copy_node *place, const char *name)
{
	struct weft__copy_tree *tree = runner->tree;

	runner->place = place;
	runner->name = name;
	runner->one = (struct weft__copy_one){
		.from_dir = place->from,
		.to_dir = place->to,
		.from_name = name,
		.to_name = name,
		.flags = tree->opts.flags & ~WEFT_COPY_FOLLOW,
		.direct = place->direct,
		/* relaxed: a hint. */
		.clones = weft__load(&tree->clones, relaxed),
		.bytes_max = UINT64_MAX,
		.number = &runner->number,
		.buffer = runner->buffer,
		.from = -1,
		.to = -1,
	};
}

/* Takes the file's size from what may still be copied. */
static int bytes_reserve(struct weft__copy_runner *runner)
{
	struct weft__copy_tree *tree = runner->tree;
	struct weft__copy_one *one = &runner->one;
	uint64_t size = (uint64_t)one->status.st_size;
	bool fits;

	if (tree->opts.bytes_max == UINT64_MAX || !S_ISREG(one->status.st_mode))
		return 0;
	weft__lock_take(&tree->lock);
	fits = size <= tree->bytes_left;
	one->bytes_max = size ? size : tree->bytes_left;
	if (fits)
		tree->bytes_left -= size;
	weft__lock_drop(&tree->lock);
	return fits ? 0 : -EFBIG;
}

/* The name that is being copied is done with. */
static enum weft__copy_step one_end(struct weft__copy_runner *runner, int r)
{
	struct weft__copy_node *place = runner->place;
	char name[NAME_MAX + 1];
	enum weft__copy_step step;

	runner->copies = false;
	weft__copy_one_drop(&runner->one);
	if (r == 0) {
		runner->counts.files++;
		runner->counts.bytes += runner->one.bytes.done;
		if (runner->group && !runner->group_copied) {
			runner->group_copied = true;
			weft__copy_links_made(runner->tree, runner->group,
					      place, runner->name);
		}
	}
	memcpy(name, runner->name, strlen(runner->name) + 1);
	step = report_set(runner, place, name, r);
	if (runner->waiting) {
		weft__copy_links_next_free(runner->tree, runner->waiting);
		runner->waiting = NULL;
		weft__copy_node_put(runner->tree, place);
		pending_drop(runner, place);
	}
	return step;
}

static enum weft__copy_step one_goes_on(struct weft__copy_runner *runner, int r)
{
	if (r > 0) {
		runner->copies = true;
		return WORKS;
	}
	return one_end(runner, r);
}

static enum weft__copy_step one_copy(struct weft__copy_runner *runner)
{
	int r = bytes_reserve(runner);

	if (r == 0)
		r = weft__copy_one_make(&runner->one);
	if (r >= 0 && S_ISREG(runner->one.status.st_mode) &&
	    !runner->one.clones)
		/* relaxed: a hint. */
		weft__store(&runner->tree->clones, false, relaxed);
	return one_goes_on(runner, r);
}

/* Links the name to the copy of its file. */
static int link_to(struct weft__copy_runner *runner,
		   struct weft__copy_group *group)
{
	int r = weft__copy_node_get(runner->tree, group->node);

	if (r < 0)
		return r;
	r = weft__copy_one_link(&runner->one, group->node->to, group->name);
	weft__copy_node_put(runner->tree, group->node);
	return r;
}

static enum weft__copy_step named_copy(struct weft__copy_runner *runner)
{
	struct weft__copy_group *group;
	int r = weft__copy_links_meet(runner->tree, runner->place, runner->name,
				      &runner->one.status, &group);

	if (r == WEFT__COPY_LATER) {
		weft__copy_one_drop(&runner->one);
		return WORKS;
	}
	if (r == WEFT__COPY_LINKED) {
		r = link_to(runner, group);
		weft__copy_links_leave(runner->tree, group);
		return one_end(runner, r);
	}
	if (r < 0)
		return one_end(runner, r);
	runner->group = group;
	runner->group_copied = false;
	return one_copy(runner);
}

/* The next name that waits for the file. */
static enum weft__copy_step group_go(struct weft__copy_runner *runner)
{
	struct weft__copy_waiting *waiting =
		weft__copy_links_next(runner->tree, runner->group);
	struct weft__copy_node *node;
	int r;

	if (!waiting) {
		runner->group = NULL;
		return WORKS;
	}
	node = waiting->node;
	r = weft__copy_node_get(runner->tree, node);
	if (r < 0) {
		enum weft__copy_step step =
			report_set(runner, node, waiting->name, r);

		weft__copy_links_next_free(runner->tree, waiting);
		pending_drop(runner, node);
		return step;
	}
	runner->waiting = waiting;
	one_set(runner, node, waiting->name);
	r = weft__copy_one_open(&runner->one, DT_UNKNOWN);
	if (r < 0 || !runner->group_copied)
		return r < 0 ? one_end(runner, r) : one_copy(runner);
	return one_end(runner, link_to(runner, runner->group));
}

static enum weft__copy_step file_begin(struct weft__copy_runner *runner,
				       const char *name, int type)
{
	struct weft__copy_one *one = &runner->one;
	int r;

	one_set(runner, runner->node, name);
	r = weft__copy_one_open(one, type);
	if ((r == -EMFILE || r == -ENFILE) &&
	    weft__copy_nodes_relieve(runner->tree))
		r = weft__copy_one_open(one, type);
	if (r == -EISDIR)
		return child_add(runner, name);
	if (r < 0)
		return one_end(runner, r);
	if (runner->tree->groups && one->status.st_nlink > 1)
		return named_copy(runner);
	return one_copy(runner);
}

static enum weft__copy_step name_begin(struct weft__copy_runner *runner)
{
	const struct names_entry *entry =
		(const void *)(runner->names + runner->names_at);
	const char *name = entry->name;

	runner->names_at += entry->bytes;
	if (name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2])))
		return WORKS;
	/* None that open(2) could be given elsewhere, nor that has room. */
	if (strlen(name) > NAME_MAX)
		return report_set(runner, runner->node, name, -ENAMETOOLONG);
	if (entry->type == DT_DIR)
		return child_add(runner, name);
	return file_begin(runner, name, entry->type);
}

/* ---- Steps --------------------------------------------------------------- */

static bool others_idle(struct weft__copy_runner *runner)
{
	struct weft__copy_tree *tree = runner->tree;
	bool r;

	weft__lock_take(&tree->lock);
	r = tree->idle > 0 && !tree->queue;
	weft__lock_drop(&tree->lock);
	return r;
}

enum weft__copy_step weft__copy_runner_step(struct weft__copy_runner *runner)
{
	if (weft__copy_tree_stops(runner->tree))
		return LEAVES;
	if (runner->ending)
		return node_end(runner);
	if (runner->copies)
		return one_goes_on(runner, weft__copy_one_step(&runner->one));
	if (runner->group)
		return group_go(runner);
	if (runner->names_at < runner->names_bytes) {
		if (others_idle(runner))
			names_share(runner);
		return name_begin(runner);
	}
	if (runner->node)
		return node_give_up(runner);
	return item_begin(runner);
}
