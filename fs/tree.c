/* SPDX-License-Identifier: MIT */
#include "fs/tree.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "io/os/syscall.h"
#include "runtime/sched/wait.h"

enum { JOBS_MAX = 16, HALFWAY_MAX = 8 };

/* ---- Directories ------------------------------------------------------ */

static unsigned processors(void)
{
	cpu_set_t set;
	int count = 1;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		count = CPU_COUNT(&set);
	return count < 1 ? 1 : count < JOBS_MAX ? (unsigned)count : JOBS_MAX;
}

void weft__tree_init(struct weft__tree *tree, weft_fn work, unsigned tasks)
{
	tree->memory = weft__worker_self()->runtime->memory;
	tree->work = work;
	/* A job a processor, and as many tasks with the results of others. */
	tree->lane.jobs_max = tasks ? tasks : processors();
	tree->lane.name = "tree";
	tree->tasks_max = tasks ? tasks : 2 * tree->lane.jobs_max;
	tree->root_fd = -1;
}

static size_t dir_bytes(size_t name_bytes)
{
	return sizeof(struct weft__tree_dir) + name_bytes + 1;
}

struct weft__tree_dir *weft__tree_dir_new(struct weft__tree *tree,
					  struct weft__tree_dir *parent,
					  const char *name, size_t name_bytes)
{
	struct weft__tree_dir *dir =
		weft__memory_new(tree->memory, dir_bytes(name_bytes));

	if (!dir)
		return NULL;
	*dir = (struct weft__tree_dir){
		.parent = parent,
		.path_bytes = name_bytes,
		.pending = 1,
		.fd = -1,
		.name_bytes = (uint16_t)name_bytes,
	};
	memcpy(dir->name, name, name_bytes);
	dir->name[name_bytes] = '\0';
	if (!parent)
		return dir;
	dir->depth = parent->depth + 1;
	if (parent->path_bytes)
		dir->path_bytes += parent->path_bytes + 1;
	return dir;
}

void weft__tree_dir_free(struct weft__tree *tree, struct weft__tree_dir *dir)
{
	weft__memory_free(tree->memory, dir, dir_bytes(dir->name_bytes));
}

void weft__tree_path(const struct weft__tree_dir *dir, char *path)
{
	size_t at = dir->path_bytes;

	for (; at > 0; dir = dir->parent) {
		at -= dir->name_bytes;
		memcpy(path + at, dir->name, dir->name_bytes);
		if (at > 0)
			path[--at] = '/';
	}
}

/* The caller holds the lock.  Returns the number of tasks to let go on. */
static unsigned wakes(struct weft__tree *tree, size_t most)
{
	unsigned count = most < tree->waiting ? (unsigned)most : tree->waiting;

	tree->waiting -= count;
	return count;
}

/* The caller holds the lock. */
static void stack_put(struct weft__tree *tree, struct weft__tree_dir *dir)
{
	dir->next = tree->stack;
	tree->stack = dir;
	tree->stack_count++;
}

/* The caller holds the lock. */
static void stack_put_new(struct weft__tree *tree, struct weft__tree_dir *first)
{
	struct weft__tree_dir *dir, *next;

	for (dir = first; dir; dir = next) {
		next = dir->next;
		dir->id = ++tree->last_id;
		if (dir->parent)
			dir->parent->pending++;
		stack_put(tree, dir);
	}
}

/* The caller holds the lock. */
static bool goes_below(struct weft__tree *tree, struct weft__tree_dir *dir)
{
	if (dir->fd >= 0 && !dir->halfway && tree->halfway < HALFWAY_MAX) {
		dir->halfway = true;
		tree->halfway++;
	}
	return dir->halfway;
}

/* Both in one step: once it is in the stack, another task may finish the
 * parent, unless the new ones are counted. */
void weft__tree_push(struct weft__tree *tree, struct weft__tree_dir *first,
		     struct weft__tree_dir *again, bool takes)
{
	unsigned waking;
	bool below;

	weft__lock_take(&tree->lock);
	below = again && goes_below(tree, again);
	if (below)
		stack_put(tree, again);
	stack_put_new(tree, first);
	if (again && !below)
		stack_put(tree, again);
	waking = wakes(tree, tree->stack_count - takes);
	weft__lock_drop(&tree->lock);
	if (waking)
		weft_sem_release(&tree->more, waking);
}

struct weft__tree_dir *weft__tree_pop(struct weft__tree *tree)
{
	struct weft__tree_dir *dir;

	weft__lock_take(&tree->lock);
	dir = tree->stack;
	if (dir) {
		tree->stack = dir->next;
		tree->stack_count--;
	}
	weft__lock_drop(&tree->lock);
	return dir;
}

bool weft__tree_drop(struct weft__tree *tree, struct weft__tree_dir *dir)
{
	bool last;

	weft__lock_take(&tree->lock);
	last = --dir->pending == 0; /* TREE1 */
	weft__lock_drop(&tree->lock);
	return last;
}

/* A directory that leaves was counted down to 0 before. */
void weft__tree_give_up(struct weft__tree *tree, struct weft__tree_dir *dir)
{
	while (dir && (dir->leaves || weft__tree_drop(tree, dir))) {
		struct weft__tree_dir *parent = dir->parent;

		if (dir->fd >= 0)
			weft__syscall_close(dir->fd);
		weft__tree_dir_free(tree, dir);
		dir = parent;
	}
}

void weft__tree_halfway_end(struct weft__tree *tree, struct weft__tree_dir *dir)
{
	weft__lock_take(&tree->lock);
	tree->halfway -= dir->halfway;
	dir->halfway = false;
	weft__lock_drop(&tree->lock);
}

void weft__tree_end(struct weft__tree *tree)
{
	unsigned waking;

	weft__lock_take(&tree->lock);
	tree->done = true;
	waking = wakes(tree, UINT_MAX);
	weft__lock_drop(&tree->lock);
	if (waking)
		weft_sem_release(&tree->more, waking);
}

/* ---- The crew --------------------------------------------------------- */

static int crew_add(struct weft__tree *tree)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = tree->lane.name;
	return weft_go_opts(tree->scope, tree->work, &tree,
			    sizeof(struct weft__tree *), &opts);
}

/* The crew's tasks cannot tell the caller's deadline from a cancellation. */
static int interruption(int error)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	int r;

	if (weft__task_is(task, WEFT__TASK_WITHIN))
		weft__within_look(worker, task);
	r = weft__interrupted(worker, task);
	return r < 0 ? r : error;
}

int weft__tree_run(struct weft__tree *tree, struct weft__tree_dir *root)
{
	struct weft__tree_dir *dir;
	int64_t result = 0;

	tree->started = 1;
	weft__tree_push(tree, root, NULL, false);
	WEFT_SCOPE(crew, &result) {
		int r;

		tree->scope = crew;
		r = crew_add(tree);
		if (r < 0)
			weft_scope_fail(crew, r);
	}
	while ((dir = weft__tree_pop(tree)))
		weft__tree_give_up(tree, dir);
	return result == -ECANCELED ? interruption((int)result) : (int)result;
}

/* Ends the wait of a task that was interrupted: TREE3. */
static void wait_give_up(struct weft__tree *tree)
{
	weft__lock_take(&tree->lock);
	if (tree->waiting)
		tree->waiting--;
	weft__lock_drop(&tree->lock);
}

int weft__tree_wait(struct weft__tree *tree)
{
	bool has, done;
	int r;

	for (;;) {
		weft__lock_take(&tree->lock);
		has = tree->stack;
		done = tree->done;
		if (!has && !done)
			tree->waiting++;
		weft__lock_drop(&tree->lock);
		if (has || done)
			return has;
		r = weft_sem_acquire(&tree->more, 1);
		if (r < 0) {
			wait_give_up(tree);
			return r;
		}
	}
}

void weft__tree_staff(struct weft__tree *tree)
{
	bool wants;

	weft__lock_take(&tree->lock);
	wants = tree->stack_count && !tree->waiting &&
		tree->started < tree->tasks_max;
	tree->started += wants;
	weft__lock_drop(&tree->lock);
	/* The tasks that there are do the work, if it fails. */
	if (wants)
		(void)!crew_add(tree);
}
