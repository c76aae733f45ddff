/* SPDX-License-Identifier: MIT */
/*
 * Copy links - the table of files that have several names, by device and
 * number.  A file is in it from the first name that is met to the last.
 *
 *	first met ---> being copied ---> copied ---> all names met: gone
 *	                names wait        names are linked
 *
 * The runner that copies also makes the names that came to wait meanwhile.  If
 * the copy fails, it tries the next of these.
 */
#include <errno.h>
#include <string.h>

#include "fs/copy_tree.h"

static struct weft__copy_group **chain_of(struct weft__copy_tree *tree,
					  dev_t dev, ino_t ino)
{
	uint64_t hash =
		((uint64_t)ino ^ (uint64_t)dev << 40) * 0x9e3779b97f4a7c15u;

	return &tree->groups[hash >> 54];
}

_Static_assert(WEFT__COPY_GROUPS == 1 << 10, "bits of chain_of()");

/* Under the lock, as those below. */
static struct weft__copy_group *group_find(struct weft__copy_tree *tree,
					   const struct stat *status)
{
	struct weft__copy_group *group =
		*chain_of(tree, status->st_dev, status->st_ino);

	while (group &&
	       (group->dev != status->st_dev || group->ino != status->st_ino))
		group = group->next;
	return group;
}

static void group_add(struct weft__copy_tree *tree,
		      struct weft__copy_group *group, const struct stat *status)
{
	struct weft__copy_group **chain =
		chain_of(tree, status->st_dev, status->st_ino);

	group->dev = status->st_dev;
	group->ino = status->st_ino;
	group->left = (uint64_t)status->st_nlink - 1;
	group->next = *chain;
	*chain = group;
}

static void group_remove(struct weft__copy_tree *tree,
			 struct weft__copy_group *group)
{
	struct weft__copy_group **link = chain_of(tree, group->dev, group->ino);

	while (*link != group)
		link = &(*link)->next;
	*link = group->next;
}

static struct weft__copy_waiting *waiting_new(struct weft__copy_tree *tree,
					      struct weft__copy_node *node,
					      const char *name)
{
	size_t name_bytes = strlen(name) + 1;
	size_t bytes = sizeof(struct weft__copy_waiting) + name_bytes;
	struct weft__copy_waiting *waiting =
		weft__memory_new(tree->memory, bytes);

	if (!waiting)
		return NULL;
	*waiting = (struct weft__copy_waiting){ .node = node, .bytes = bytes };
	memcpy(waiting->name, name, name_bytes);
	return waiting;
}

static struct weft__copy_group *group_new(struct weft__copy_tree *tree)
{
	return weft__memory_zeroed(tree->memory,
				   sizeof(struct weft__copy_group));
}

static void group_free(struct weft__copy_tree *tree,
		       struct weft__copy_group *group)
{
	weft__memory_free(tree->memory, group, sizeof(*group));
}

/* Made by the caller for the case that it is needed. */
struct meeting {
	struct weft__copy_group *group;
	struct weft__copy_waiting *waiting;
};

/* Under the lock: WEFT__COPY_*, or -EAGAIN: something else is to be made. */
static int group_meet(struct weft__copy_tree *tree, const struct stat *status,
		      struct meeting *meeting,
		      struct weft__copy_group **ret_group)
{
	struct weft__copy_group *group = group_find(tree, status);

	if (group ? !group->copied && !meeting->waiting : !meeting->group)
		return -EAGAIN;
	if (!group) {
		*ret_group = meeting->group;
		meeting->group = NULL;
		group_add(tree, *ret_group, status);
		(*ret_group)->users = 1;
		return WEFT__COPY_FIRST;
	}
	/* Names may be added to it while it is copied. */
	if (group->left > 0)
		group->left--;
	*ret_group = group;
	if (group->copied) {
		group->users++;
		return WEFT__COPY_LINKED;
	}
	meeting->waiting->next = group->waiting;
	group->waiting = meeting->waiting;
	meeting->waiting->node->pending++;
	meeting->waiting = NULL;
	return WEFT__COPY_LATER;
}

int weft__copy_links_meet(struct weft__copy_tree *tree,
			  struct weft__copy_node *node, const char *name,
			  const struct stat *status,
			  struct weft__copy_group **ret_group)
{
	struct meeting meeting = { NULL, NULL };
	int r = -EAGAIN;

	while (r == -EAGAIN) {
		weft__lock_take(&tree->lock);
		r = group_meet(tree, status, &meeting, ret_group);
		weft__lock_drop(&tree->lock);
		if (r != -EAGAIN)
			break;
		if (!meeting.group)
			meeting.group = group_new(tree);
		if (!meeting.waiting)
			meeting.waiting = waiting_new(tree, node, name);
		if (!meeting.group || !meeting.waiting)
			r = -ENOMEM;
	}
	if (meeting.group)
		group_free(tree, meeting.group);
	if (meeting.waiting)
		weft__copy_links_next_free(tree, meeting.waiting);
	return r;
}

void weft__copy_links_made(struct weft__copy_tree *tree,
			   struct weft__copy_group *group,
			   struct weft__copy_node *node, const char *name)
{
	weft__lock_take(&tree->lock);
	group->copied = true;
	group->node = node;
	node->refs++;
	memcpy(group->name, name, strlen(name) + 1);
	weft__lock_drop(&tree->lock);
}

/* The caller holds the lock, and is no user any more.  Returns whether it is to
 * free the group. */
static bool group_is_over(struct weft__copy_tree *tree,
			  struct weft__copy_group *group)
{
	if (group->users > 0 || group->waiting ||
	    (group->copied && group->left > 0))
		return false;
	group_remove(tree, group);
	return true;
}

static void group_end(struct weft__copy_tree *tree,
		      struct weft__copy_group *group)
{
	weft__copy_node_unref(tree, group->node);
	group_free(tree, group);
}

struct weft__copy_waiting *weft__copy_links_next(struct weft__copy_tree *tree,
						 struct weft__copy_group *group)
{
	struct weft__copy_waiting *waiting;
	bool over = false;

	weft__lock_take(&tree->lock);
	waiting = group->waiting;
	if (waiting) {
		group->waiting = waiting->next;
	} else {
		group->users--;
		over = group_is_over(tree, group);
	}
	weft__lock_drop(&tree->lock);
	if (over)
		group_end(tree, group);
	return waiting;
}

void weft__copy_links_next_free(struct weft__copy_tree *tree,
				struct weft__copy_waiting *waiting)
{
	weft__memory_free(tree->memory, waiting, waiting->bytes);
}

void weft__copy_links_leave(struct weft__copy_tree *tree,
			    struct weft__copy_group *group)
{
	bool over;

	weft__lock_take(&tree->lock);
	group->users--;
	over = group_is_over(tree, group);
	weft__lock_drop(&tree->lock);
	if (over)
		group_end(tree, group);
}

static void chain_free(struct weft__copy_tree *tree,
		       struct weft__copy_group *group)
{
	while (group) {
		struct weft__copy_group *next = group->next;

		while (group->waiting) {
			struct weft__copy_waiting *waiting = group->waiting;

			group->waiting = waiting->next;
			weft__copy_links_next_free(tree, waiting);
		}
		group_free(tree, group);
		group = next;
	}
}

void weft__copy_links_free(struct weft__copy_tree *tree)
{
	size_t bytes = WEFT__COPY_GROUPS * sizeof(*tree->groups);

	for (int i = 0; tree->groups && i < WEFT__COPY_GROUPS; i++)
		chain_free(tree, tree->groups[i]);
	weft__memory_free(tree->memory, tree->groups, bytes);
	tree->groups = NULL;
}
