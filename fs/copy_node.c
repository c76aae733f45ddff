/* SPDX-License-Identifier: MIT */
/*
 * Copy node - the directories of a tree that is copied: their descriptors, and
 * their names.  copy_tree.h has the model.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fs/copy_meta.h"
#include "fs/copy_tree.h"
#include "runtime/base/own_fd.h"

enum {
	DIR_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
	OWN_RIGHTS = 0700,
	PLAIN_RIGHTS = 01777, /* not set-group-ID, which the parent may give */
	SPECIAL_RIGHTS = 07000,
	ALL_RIGHTS = 07777,
};

/* ---- Life ---------------------------------------------------------------- */

struct weft__copy_node *weft__copy_node_new(struct weft__copy_tree *tree,
					    struct weft__copy_node *parent,
					    const char *name)
{
	size_t bytes = strlen(name) + 1;
	struct weft__copy_node *node =
		weft__memory_zeroed(tree->memory, sizeof(*node) + bytes);

	if (!node)
		return NULL;
	node->item.node = node;
	node->parent = parent;
	node->from = -1;
	node->to = -1;
	node->pending = 1;
	node->refs = 1;
	node->name_bytes = bytes;
	memcpy(node->name, name, bytes);
	weft__lock_take(&tree->lock);
	node->all_next = tree->all;
	if (tree->all)
		tree->all->all_before = node;
	tree->all = node;
	if (parent) {
		node->depth = parent->depth + 1;
		parent->pending++;
		parent->refs++;
	}
	weft__lock_drop(&tree->lock);
	return node;
}

/* The caller holds the lock. */
static void idle_remove(struct weft__copy_tree *tree,
			struct weft__copy_node *node)
{
	if (node->idle_before)
		node->idle_before->idle_next = node->idle_next;
	else
		tree->idle_first = node->idle_next;
	if (node->idle_next)
		node->idle_next->idle_before = node->idle_before;
	else
		tree->idle_last = node->idle_before;
	node->idle_next = NULL;
	node->idle_before = NULL;
	node->idle = false;
}

static void idle_add(struct weft__copy_tree *tree, struct weft__copy_node *node)
{
	node->idle_next = tree->idle_first;
	if (tree->idle_first)
		tree->idle_first->idle_before = node;
	else
		tree->idle_last = node;
	tree->idle_first = node;
	node->idle = true;
}

/* Takes the descriptors of the node; the caller holds the lock. */
static void fds_take(struct weft__copy_tree *tree, struct weft__copy_node *node,
		     int ret_fds[2])
{
	ret_fds[0] = node->from;
	ret_fds[1] = node->to;
	if (node->idle)
		idle_remove(tree, node);
	if (node->from >= 0)
		tree->open_count--;
	node->from = -1;
	node->to = -1;
}

static void fds_close(const int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static void node_free(struct weft__copy_tree *tree,
		      struct weft__copy_node *node)
{
	weft__memory_free(tree->memory, node, sizeof(*node) + node->name_bytes);
}

void weft__copy_node_ref(struct weft__copy_tree *tree,
			 struct weft__copy_node *node)
{
	weft__lock_take(&tree->lock);
	node->refs++;
	weft__lock_drop(&tree->lock);
}

void weft__copy_node_unref(struct weft__copy_tree *tree,
			   struct weft__copy_node *node)
{
	while (node) {
		struct weft__copy_node *parent = node->parent;
		int fds[2] = { -1, -1 };
		bool last;

		weft__lock_take(&tree->lock);
		last = --node->refs == 0;
		if (last) {
			fds_take(tree, node, fds);
			if (node->all_next)
				node->all_next->all_before = node->all_before;
			if (node->all_before)
				node->all_before->all_next = node->all_next;
			else
				tree->all = node->all_next;
		}
		weft__lock_drop(&tree->lock);
		if (!last)
			return;
		fds_close(fds);
		node_free(tree, node);
		node = parent;
	}
}

void weft__copy_nodes_free(struct weft__copy_tree *tree)
{
	while (tree->all) {
		struct weft__copy_node *node = tree->all;
		const int fds[2] = { node->from, node->to };

		tree->all = node->all_next;
		fds_close(fds);
		node_free(tree, node);
	}
}

/* ---- Descriptors --------------------------------------------------------- */

/* Is it open?  Then the caller is a user. */
static bool node_use(struct weft__copy_tree *tree, struct weft__copy_node *node)
{
	bool is_open;

	weft__lock_take(&tree->lock);
	is_open = node->from >= 0;
	if (is_open) {
		node->users++;
		if (node->idle)
			idle_remove(tree, node);
	}
	weft__lock_drop(&tree->lock);
	return is_open;
}

/* Closes the one that was used longest ago: false: there are few enough. */
static bool idle_close(struct weft__copy_tree *tree, unsigned open_max)
{
	int fds[2] = { -1, -1 };
	bool closes;

	weft__lock_take(&tree->lock);
	closes = tree->open_count > open_max && tree->idle_last;
	if (closes)
		fds_take(tree, tree->idle_last, fds);
	weft__lock_drop(&tree->lock);
	fds_close(fds);
	return closes;
}

void weft__copy_node_put(struct weft__copy_tree *tree,
			 struct weft__copy_node *node)
{
	bool many;

	weft__lock_take(&tree->lock);
	/* The root is opened by its path, which may mean another one now. */
	if (--node->users == 0 && node->from >= 0 && node->parent)
		idle_add(tree, node);
	many = tree->open_count > tree->open_max;
	weft__lock_drop(&tree->lock);
	while (many)
		many = idle_close(tree, tree->open_max);
}

unsigned weft__copy_nodes_relieve(struct weft__copy_tree *tree)
{
	unsigned n = 0;

	while (idle_close(tree, 0))
		n++;
	return n;
}

/* The caller is a user of it then, whether these or others are its. */
static void fds_set(struct weft__copy_tree *tree, struct weft__copy_node *node,
		    int fds[2])
{
	weft__lock_take(&tree->lock);
	if (node->from < 0) {
		node->from = fds[0];
		node->to = fds[1];
		fds[0] = -1;
		fds[1] = -1;
		tree->open_count++;
	}
	node->users++;
	if (node->idle)
		idle_remove(tree, node);
	weft__lock_drop(&tree->lock);
	fds_close(fds);
}

static int dir_open(struct weft__copy_tree *tree, int dir, const char *name)
{
	int fd = weft__fd_above_stdio(openat(dir, name, DIR_FLAGS));

	if ((fd == -EMFILE || fd == -ENFILE) && weft__copy_nodes_relieve(tree))
		fd = weft__fd_above_stdio(openat(dir, name, DIR_FLAGS));
	return fd;
}

static int dir_open_same(struct weft__copy_tree *tree, int dir,
			 const char *name, dev_t dev, ino_t ino)
{
	struct stat status;
	int r, fd = dir_open(tree, dir, name);

	if (fd < 0)
		return fd;
	if (fstat(fd, &status) == 0 && status.st_dev == dev &&
	    status.st_ino == ino)
		return fd;
	r = -ESTALE;
	close(fd);
	return r;
}

static bool is_staged(struct weft__copy_tree *tree,
		      const struct weft__copy_node *node)
{
	bool staged;

	weft__lock_take(&tree->lock);
	staged = node->staged;
	weft__lock_drop(&tree->lock);
	return staged;
}

/* Opens the node again; the caller is a user of its parent. */
static int node_reopen(struct weft__copy_tree *tree,
		       struct weft__copy_node *node)
{
	int fds[2] = { -1, -1 };
	const char *name = is_staged(tree, node) ? node->temp : node->name;

	fds[0] = dir_open_same(tree, node->parent->from, node->name,
			       node->status.st_dev, node->status.st_ino);
	if (fds[0] < 0)
		return fds[0];
	fds[1] = dir_open_same(tree, node->parent->to, name, node->to_dev,
			       node->to_ino);
	if (fds[1] < 0) {
		close(fds[0]);
		return fds[1];
	}
	fds_set(tree, node, fds);
	return 0;
}

/* From the nearest one above that is open down to the node.  The way is kept in
 * an array: it may be some thousand long. */
static int node_reach(struct weft__copy_tree *tree,
		      struct weft__copy_node *node)
{
	size_t bytes = (node->depth + 1) * sizeof(node);
	struct weft__copy_node **way = weft__memory_new(tree->memory, bytes);
	unsigned n = 0;
	int r = 0;

	if (!way)
		return -ENOMEM;
	while (!node_use(tree, node)) {
		way[n++] = node;
		node = node->parent;
	}
	while (r == 0 && n > 0) {
		r = node_reopen(tree, way[--n]);
		weft__copy_node_put(tree, node);
		node = way[n];
	}
	weft__memory_free(tree->memory, way, bytes);
	return r;
}

int weft__copy_node_get(struct weft__copy_tree *tree,
			struct weft__copy_node *node)
{
	return node_use(tree, node) ? 0 : node_reach(tree, node);
}

/* ---- The first opening --------------------------------------------------- */

static mode_t rights_at_first(const struct weft__copy_tree *tree,
			      const struct weft__copy_node *node)
{
	uint32_t set_later = WEFT_COPY_MODE | WEFT_COPY_XATTRS;

	if (tree->opts.flags & set_later)
		return OWN_RIGHTS;
	return (node->status.st_mode & PLAIN_RIGHTS) | OWN_RIGHTS;
}

static bool lacks_own(mode_t mode)
{
	return (mode & OWN_RIGHTS) != OWN_RIGHTS;
}

static int staged_make(struct weft__copy_tree *tree,
		       struct weft__copy_node *node, int dir, uint64_t *number)
{
	for (int i = 0; i < WEFT__COPY_TRIES; i++) {
		weft__copy_temp_name(node->temp, number);
		if (mkdirat(dir, node->temp, rights_at_first(tree, node)) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* The umask may have left the owner no right to open it. */
static int made_open(struct weft__copy_tree *tree, struct weft__copy_node *node,
		     int dir, const char *made)
{
	struct weft__copy_name name = { dir, made };
	struct stat status;
	int r = dir_open(tree, dir, made);

	if (r != -EACCES)
		return r;
	if (fstatat(dir, made, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	node->to_mode = status.st_mode;
	r = weft__copy_rights_set(name, (status.st_mode & ALL_RIGHTS) |
						OWN_RIGHTS);
	return r < 0 ? r : dir_open(tree, dir, made);
}

/* Makes the directory of the copy, or opens the one that is there: a descriptor
 * or an error. */
static int to_open(struct weft__copy_tree *tree, struct weft__copy_node *node,
		   int dir, bool direct, uint64_t *number)
{
	const char *made;
	int r = -ENOENT;

	if (!direct)
		r = dir_open(tree, dir, node->name);
	if (r != -ENOENT)
		return r == -ELOOP ? -ENOTDIR : r;
	if (!direct)
		r = staged_make(tree, node, dir, number);
	else
		r = mkdirat(dir, node->name, rights_at_first(tree, node)) < 0 ?
			    -errno :
			    0;
	if (r < 0)
		return r;
	node->fresh = true;
	node->direct = true;
	made = direct ? node->name : node->temp;
	r = made_open(tree, node, dir, made);
	if (r < 0)
		(void)unlinkat(dir, made, AT_REMOVEDIR);
	return r;
}

static int to_make(struct weft__copy_tree *tree, struct weft__copy_node *node,
		   int dir, bool direct, uint64_t *number)
{
	struct stat status;
	int r, fd = to_open(tree, node, dir, direct, number);

	if (fd < 0)
		return fd;
	if (fstat(fd, &status) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	node->to_dev = status.st_dev;
	node->to_ino = status.st_ino;
	if (!node->to_mode)
		node->to_mode = status.st_mode;
	if (node->fresh && lacks_own(status.st_mode))
		(void)fchmod(fd, (status.st_mode & ALL_RIGHTS) | OWN_RIGHTS);
	if (node->fresh && (tree->opts.flags & WEFT_COPY_XATTRS))
		weft__copy_acls_drop(fd, true);
	node->opened = true;
	weft__lock_take(&tree->lock);
	node->staged = node->fresh && !direct;
	weft__lock_drop(&tree->lock);
	return fd;
}

/* The copy is found inside of the original, where a mount has put it. */
static bool is_the_copy(const struct weft__copy_tree *tree,
			const struct weft__copy_node *node)
{
	return node->status.st_dev == tree->root->to_dev &&
	       node->status.st_ino == tree->root->to_ino;
}

static int node_open_below(struct weft__copy_tree *tree,
			   struct weft__copy_node *node, uint64_t *number)
{
	const struct weft__copy_node *parent = node->parent;
	int fds[2] = { -1, -1 }, r = 0;

	fds[0] = dir_open(tree, parent->from, node->name);
	if (fds[0] < 0)
		return fds[0];
	if (fstat(fds[0], &node->status) < 0)
		r = -errno;
	else if (is_the_copy(tree, node))
		r = -EINVAL;
	if (r == 0)
		r = fds[1] =
			to_make(tree, node, parent->to, parent->direct, number);
	if (r < 0) {
		fds_close(fds);
		return r;
	}
	fds_set(tree, node, fds);
	return 0;
}

int weft__copy_node_open(struct weft__copy_tree *tree,
			 struct weft__copy_node *node, uint64_t *number)
{
	int r = weft__copy_node_get(tree, node->parent);

	if (r < 0)
		return r;
	r = node_open_below(tree, node, number);
	weft__copy_node_put(tree, node->parent);
	return r;
}

int weft__copy_root_open(struct weft__copy_tree *tree, uint64_t *number)
{
	struct weft__copy_node *root = tree->root;

	root->to = to_make(tree, root, tree->to_parent, false, number);
	if (root->to < 0)
		return root->to;
	tree->open_count++;
	return 0;
}

/* ---- The end ------------------------------------------------------------- */

static int node_meta(struct weft__copy_tree *tree, struct weft__copy_node *node,
		     char *buffer)
{
	mode_t wanted = node->status.st_mode;

	if (tree->opts.flags & (WEFT_COPY_MODE | WEFT_COPY_OWNER |
				WEFT_COPY_TIMES | WEFT_COPY_XATTRS)) {
		int r = weft__copy_meta(node->from, node->to, &node->status,
					tree->opts.flags, buffer);

		if (r < 0 ||
		    (tree->opts.flags & (WEFT_COPY_MODE | WEFT_COPY_XATTRS)))
			return r;
	}
	/* Rights that it had meanwhile only. */
	if (node->fresh && (lacks_own(wanted) || lacks_own(node->to_mode)) &&
	    fchmod(node->to, node->to_mode & (wanted | SPECIAL_RIGHTS)) < 0)
		return -errno;
	return 0;
}

static int dir_fsync(int dir)
{
	int r = 0, fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fsync(fd) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* The node need not be open. */
static int publish_in(struct weft__copy_tree *tree,
		      struct weft__copy_node *node, int dir)
{
	bool syncs = tree->opts.flags & WEFT_COPY_FSYNC;
	int r = 0;

	/* A new directory is on the file system of that which it is in. */
	if (syncs && syncfs(node->parent ? dir : node->to) < 0)
		return -errno;
	r = weft__copy_publish(dir, node->temp, node->name, 0);
	if (r < 0)
		return r;
	weft__lock_take(&tree->lock);
	node->staged = false;
	weft__lock_drop(&tree->lock);
	return syncs ? dir_fsync(dir) : 0;
}

/* A descriptor of the node's copy, the original of which cannot be opened
 * again.  Those on the way to it have their names. */
static int to_reopen(struct weft__copy_tree *tree, struct weft__copy_node *node)
{
	size_t bytes = (node->depth + 1) * sizeof(node);
	struct weft__copy_node **way = weft__memory_new(tree->memory, bytes);
	unsigned n = 0;
	int fd;

	if (!way)
		return -ENOMEM;
	for (; !node_use(tree, node); node = node->parent)
		way[n++] = node;
	fd = dir_open(tree, node->to, ".");
	while (fd >= 0 && n > 0) {
		const struct weft__copy_node *next = way[--n];
		int above = fd;

		fd = dir_open_same(tree, above, next->name, next->to_dev,
				   next->to_ino);
		close(above);
	}
	weft__copy_node_put(tree, node);
	weft__memory_free(tree->memory, way, bytes);
	return fd;
}

int weft__copy_node_publish(struct weft__copy_tree *tree,
			    struct weft__copy_node *node)
{
	int r = 0, fd;

	if (!is_staged(tree, node))
		return 0;
	if (!node->parent)
		return publish_in(tree, node, tree->to_parent);
	if (weft__copy_node_get(tree, node->parent) == 0) {
		r = publish_in(tree, node, node->parent->to);
		weft__copy_node_put(tree, node->parent);
		return r;
	}
	fd = to_reopen(tree, node->parent);
	if (fd < 0)
		return fd;
	r = publish_in(tree, node, fd);
	close(fd);
	return r;
}

int weft__copy_node_end(struct weft__copy_tree *tree,
			struct weft__copy_node *node, char *buffer)
{
	int r = weft__copy_node_get(tree, node), published;

	if (r == 0) {
		r = node_meta(tree, node, buffer);
		weft__copy_node_put(tree, node);
	}
	/* Whatever it lacks, it is not to keep a name that says unfinished. */
	published = weft__copy_node_publish(tree, node);
	return r < 0 ? r : published;
}
