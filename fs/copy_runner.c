/* SPDX-License-Identifier: MIT */
/*
 * Copy runner - one of the tasks of weft_copy_tree().  It gives turns to the
 * pool, one after the other.  If a function of the options is to be called, the
 * turn ends, and the task calls it.
 *
 * An idle runner waits for `more`.  Each runner that takes from the queue, or
 * leaves, notifies another one as long as that can find something: a
 * notification wakes one runner, and several that no runner waits for count as
 * one.
 */
#include "fs/copy_runner.h"

#include <errno.h>
#include <string.h>

/* ---- The end of all ------------------------------------------------------ */

bool weft__copy_tree_stops(const struct weft__copy_tree *tree)
{
	/* relaxed: what stops the call is read under the lock. */
	return weft__load(&tree->stops, relaxed);
}

void weft__copy_tree_stop(struct weft__copy_tree *tree, int error)
{
	weft__lock_take(&tree->lock);
	/* All is done: the call returns that. */
	if (tree->error == 0 && !tree->finished)
		tree->error = error;
	/* relaxed: under the lock; others see it soon. */
	weft__store(&tree->stops, true, relaxed);
	weft__lock_drop(&tree->lock);
	weft_notify_one(&tree->more);
}

/* ---- Turns --------------------------------------------------------------- */

static void counts_add(struct weft__copy_runner *runner)
{
	struct weft__copy_tree *tree = runner->tree;

	weft__lock_take(&tree->lock);
	tree->counts.files += runner->counts.files;
	tree->counts.directories += runner->counts.directories;
	tree->counts.bytes += runner->counts.bytes;
	weft__lock_drop(&tree->lock);
	runner->counts = (struct weft_copy_counts){ 0 };
}

static int64_t runner_turn(void *arg)
{
	struct weft__copy_runner *runner = arg;
	uint64_t by_ns = weft__copy_now_ns() + WEFT__COPY_TURN_NS;
	enum weft__copy_step step;

	do
		step = weft__copy_runner_step(runner);
	while (step == WORKS && weft__copy_now_ns() < by_ns);
	counts_add(runner);
	return step;
}

/* ---- The task ------------------------------------------------------------ */

/* Writes a slash and the name; `bytes` are its own and one. */
static char *name_before(char *at, const char *name, size_t bytes)
{
	at -= bytes;
	*at = '/';
	memcpy(at + 1, name, bytes - 1);
	return at;
}

/* The path of a name in a node, for a function of the options. */
static char *path_new(struct weft__copy_tree *tree,
		      const struct weft__copy_node *node, const char *name,
		      size_t *ret_bytes)
{
	size_t top = strlen(tree->from_path);
	size_t last = name[0] ? strlen(name) + 1 : 0;
	size_t bytes = top + last + 1;
	const struct weft__copy_node *up;
	char *path, *at;

	for (up = node; up->parent; up = up->parent)
		bytes += up->name_bytes;
	path = weft__memory_new(tree->memory, bytes);
	if (!path)
		return NULL;
	*ret_bytes = bytes;
	at = path + bytes - 1;
	*at = '\0';
	if (last)
		at = name_before(at, name, last);
	for (up = node; up->parent; up = up->parent)
		at = name_before(at, up->name, up->name_bytes);
	memcpy(path, tree->from_path, top);
	return path;
}

static int report_call(struct weft__copy_runner *runner)
{
	struct weft__copy_tree *tree = runner->tree;
	struct weft__copy_report *report = &runner->report;
	size_t bytes;
	char *path = path_new(tree, report->node, report->name, &bytes);
	int r = 0;

	if (!path)
		return -ENOMEM;
	if (report->error < 0)
		r = tree->opts.on_error(path, report->error, tree->opts.arg);
	else
		tree->opts.on_copied(path, tree->opts.arg);
	weft__memory_free(tree->memory, path, bytes);
	if (report->error < 0 && r >= 0) {
		weft__lock_take(&tree->lock);
		tree->counts.errors++;
		weft__lock_drop(&tree->lock);
	}
	return r;
}

static void progress_call(struct weft__copy_tree *tree)
{
	struct weft_copy_counts counts;

	weft__lock_take(&tree->lock);
	counts = tree->counts;
	weft__lock_drop(&tree->lock);
	tree->opts.on_progress(&counts, tree->opts.arg);
}

/* Calls the functions of the options: 0, or the error to end with. */
static int runner_call(struct weft__copy_runner *runner)
{
	struct weft__copy_tree *tree = runner->tree;
	int r = 0;

	if (!runner->report.set && !tree->opts.on_progress)
		return 0;
	r = weft_mutex_lock(&tree->calling);
	if (r < 0)
		return r;
	if (runner->report.set && !weft__copy_tree_stops(tree))
		r = report_call(runner);
	if (tree->opts.on_progress)
		progress_call(tree);
	weft_mutex_unlock(&tree->calling);
	if (runner->report.set)
		weft__copy_node_unref(tree, runner->report.node);
	runner->report.set = false;
	return r;
}

/* Gives back what it has.  The nodes are the call's to free. */
static int64_t runner_drop(void *arg)
{
	struct weft__copy_runner *runner = arg;
	struct weft__copy_tree *tree = runner->tree;

	weft__copy_one_drop(&runner->one);
	if (runner->waiting)
		weft__copy_links_next_free(tree, runner->waiting);
	counts_add(runner);
	return 0;
}

static int64_t runner_run(struct weft__copy_runner *runner)
{
	struct weft__copy_tree *tree = runner->tree;
	int64_t step = WORKS, r = 0;

	while (r >= 0 && step != LEAVES) {
		step = weft_blocking_lane(&tree->lane, runner_turn, runner);
		if (step < 0)
			r = step;
		else if (step == IDLES)
			r = weft_notify_wait(&tree->more);
		else if (step != LEAVES)
			r = runner_call(runner);
	}
	return r < 0 ? r : 0;
}

int64_t weft__copy_runner_main(void *arg)
{
	struct weft__copy_tree *tree = *(struct weft__copy_tree **)arg;
	struct weft__copy_runner *runner =
		weft__memory_zeroed(tree->memory, sizeof(*runner));
	int64_t r = -ENOMEM;

	if (runner) {
		runner->tree = tree;
		runner->one.from = -1;
		runner->one.to = -1;
		runner->number = weft__copy_temp_number();
		weft__lock_take(&tree->lock);
		tree->busy++;
		weft__lock_drop(&tree->lock);
		r = runner_run(runner);
	}
	if (r < 0)
		weft__copy_tree_stop(tree, (int)r);
	if (runner &&
	    (runner->one.made || runner->one.from >= 0 || runner->waiting))
		weft__copy_clean_up(&tree->lane, runner_drop, runner);
	if (runner)
		weft__memory_free(tree->memory, runner, sizeof(*runner));
	weft_notify_one(&tree->more);
	return 0;
}
