/* SPDX-License-Identifier: MIT */
/*
 * From the kernel's events to those of the caller.
 *
 *	kernel			  a file	   a directory of a tree
 *	CREATE, MOVED_TO	  created	   bound, scanned; created
 *	DELETE, MOVED_FROM alone  removed	   dropped; removed
 *	MOVED_FROM and MOVED_TO	  moved		   moved in the tree; moved
 *	Q_OVERFLOW		  all is scanned; lost
 *
 * The halves of a move are two events with one cookie.  Others may be between
 * them, and the second may come a moment later; it is looked for in the input
 * and, if the first is the newest event there is, for PARTNER_MS.
 *
 * A directory that already has its new name in the tree, with the right wd, was
 * seen there by a scan, and its creation reported.
 */
#include "fs/watch.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/memory.h"

enum { PARTNER_MS = 2 };

/* ---- The queue ----------------------------------------------------------- */

/* An entry of a directory, or itself. */
struct place {
	struct weft__watch_dir *dir; /* NULL: no place */
	const char *name;	     /* NULL: the directory itself */
};

static size_t place_bytes(const struct place *place)
{
	const struct weft__watch_dir *dir = place->dir;
	size_t bytes = place->name ? strlen(place->name) + 1 : 0;

	for (; dir && dir->parent; dir = dir->parent)
		bytes += dir->name_bytes + 1;
	return bytes ? bytes - 1 : 0;
}

static char *prepend(char *at, const char *text, size_t bytes, const char *end)
{
	if (at != end)
		*--at = '/';
	at -= bytes;
	memcpy(at, text, bytes);
	return at;
}

/* With a 0 behind it. */
static void place_write(const struct place *place, char *to, size_t bytes)
{
	const struct weft__watch_dir *dir = place->dir;
	char *end = to + bytes, *at = end;

	*end = 0;
	if (place->name)
		at = prepend(at, place->name, strlen(place->name), end);
	for (; dir && dir->parent; dir = dir->parent)
		at = prepend(at, dir->name, dir->name_bytes, end);
}

static void enqueue(struct weft_fs_watch *watch,
		    struct weft__watch_event *event)
{
	event->next = NULL;
	if (watch->queue)
		watch->queue_last->next = event;
	else
		watch->queue = event;
	watch->queue_last = event;
	watch->queued++;
}

static void emit(struct weft_fs_watch *watch, struct weft_fs_event about,
		 const struct place *place, const struct place *from)
{
	size_t bytes = sizeof(struct weft__watch_event);
	struct weft__watch_event *event;
	char *text;

	about.path_bytes = place_bytes(place);
	about.from_bytes = from->dir ? place_bytes(from) : 0;
	bytes += about.path_bytes + about.from_bytes + 2;
	event = weft__memory_new(watch->memory, bytes);
	if (!event) {
		weft__watch_lost(watch);
		return;
	}
	text = (char *)(event + 1);
	place_write(place, text, about.path_bytes);
	about.path = text;
	text += about.path_bytes + 1;
	if (from->dir) {
		place_write(from, text, about.from_bytes);
		about.from = text;
	}
	*event = (struct weft__watch_event){ .event = about, .bytes = bytes };
	enqueue(watch, event);
}

void weft__watch_emit(struct weft_fs_watch *watch, unsigned kind,
		      const struct weft__watch_dir *dir, const char *name,
		      bool is_directory, int error)
{
	static const struct place none;
	struct weft_fs_event about = {
		.kind = kind,
		.is_directory = is_directory,
		.root = dir->root->number,
		.error = error,
	};

	if (!(kind & WEFT_FS_ALL) || (kind & dir->root->kinds))
		emit(watch, about,
		     &(struct place){ (void *)(uintptr_t)dir, name }, &none);
}

static void emit_moved(struct weft_fs_watch *watch, const struct place *from,
		       const struct place *to, bool is_directory)
{
	struct weft_fs_event about = {
		.kind = WEFT_FS_MOVED,
		.is_directory = is_directory,
		.root = to->dir->root->number,
	};

	if (to->dir->root->kinds & WEFT_FS_MOVED) {
		emit(watch, about, to, from);
		return;
	}
	weft__watch_emit(watch, WEFT_FS_REMOVED, from->dir, from->name,
			 is_directory, 0);
	weft__watch_emit(watch, WEFT_FS_CREATED, to->dir, to->name,
			 is_directory, 0);
}

void weft__watch_lost(struct weft_fs_watch *watch)
{
	if (watch->lost)
		return;
	watch->lost = true;
	for (struct weft__watch_root *root = watch->roots; root;
	     root = root->next)
		if (root->dir)
			weft__watch_dir_due(watch, root->dir,
					    WEFT__SCAN_QUIET);
}

/* ---- Changes of an entry ------------------------------------------------- */

static void created(struct weft_fs_watch *watch, struct weft__watch_dir *parent,
		    const char *name, bool is_directory)
{
	int r = -ENOENT;

	if (is_directory && parent->root->is_tree)
		r = weft__watch_bind(watch, parent, name);
	if (r == 0)
		return;
	weft__watch_emit(watch, WEFT_FS_CREATED, parent, name, is_directory, 0);
	if (r < 0 && r != -ENOENT && r != -ESTALE && r != -EXDEV)
		weft__watch_emit(watch, WEFT_FS_UNWATCHED, parent, name, true,
				 r);
}

/* Also if a scan has seen what has the name by now: that has events of its own,
 * which follow. */
static void removed(struct weft_fs_watch *watch, struct weft__watch_dir *parent,
		    const char *name, bool is_directory)
{
	struct weft__watch_dir *dir = weft__watch_child(watch, parent, name);

	if (dir)
		weft__watch_dir_drop(watch, dir);
	weft__watch_emit(watch, WEFT_FS_REMOVED, parent, name, is_directory, 0);
}

/* The directory at the old place stays what it is.  False: it was not there, or
 * another is at the new place. */
static bool directory_moved(struct weft_fs_watch *watch, struct place *from,
			    struct weft__watch_dir *parent, const char *name)
{
	struct weft__watch_dir *dir =
		weft__watch_child(watch, from->dir, from->name);
	struct weft__watch_dir *old = weft__watch_child(watch, parent, name);

	if (!dir)
		return false;
	for (const struct weft__watch_dir *up = parent; up; up = up->parent)
		if (up == dir)
			return false;
	/* A newer directory there is dropped, but not with this one. */
	for (const struct weft__watch_dir *up = from->dir; up; up = up->parent)
		if (up == old)
			return false;
	if (old && old != dir)
		weft__watch_dir_drop(watch, old);
	if (weft__watch_dir_move(watch, dir, parent, name) < 0) {
		weft__watch_lost(watch);
		return false;
	}
	if (weft__watch_verify(watch, dir) != -EEXIST)
		return true;
	weft__watch_dir_drop(watch, dir);
	/* All that was reported of the old one. */
	weft__watch_emit(watch, WEFT_FS_REMOVED, parent, name, true, 0);
	return false;
}

/* Drops a newer directory of that name, which has events of its own.  It may
 * hold parents that the caller knows. */
static void entry_forget(struct weft_fs_watch *watch, int parent_wd,
			 const char *name)
{
	struct weft__watch_dir *parent = weft__watch_by_wd(watch, parent_wd);
	struct weft__watch_dir *dir =
		parent && name ? weft__watch_child(watch, parent, name) : NULL;

	if (dir)
		weft__watch_dir_drop(watch, dir);
}

/* The parents are in one root.  wd: that of the new one. */
static void moved(struct weft_fs_watch *watch, struct place *from, int wd,
		  const char *name, bool is_directory)
{
	struct weft__watch_dir *parent = weft__watch_by_wd(watch, wd);
	struct weft__watch_dir *source = from->dir;
	struct place to = { parent, name };

	if (!is_directory || !parent->root->is_tree) {
		if (!weft__watch_child(watch, source, from->name)) {
			emit_moved(watch, from, &to, is_directory);
			entry_forget(watch, wd, name);
			return;
		}
	} else if (directory_moved(watch, from, parent, name)) {
		emit_moved(watch, from, &to, true);
		return;
	}
	/* Not the one that was moved. */
	removed(watch, source, from->name, is_directory);
	parent = weft__watch_by_wd(watch, wd);
	if (parent) {
		entry_forget(watch, wd, is_directory ? NULL : name);
		created(watch, parent, name, is_directory);
	} else {
		/* It was seen beneath what was dropped. */
		weft__watch_check_all(watch);
	}
}

/* ---- The input ----------------------------------------------------------- */

static struct inotify_event *input_at(struct weft_fs_watch *watch, size_t at)
{
	return (void *)(watch->input + at);
}

static size_t event_bytes(const struct inotify_event *event)
{
	return sizeof(*event) + event->len;
}

/* Adds to the input what the kernel has.  Waits for it, if there is nothing,
 * for PARTNER_MS.  True: something came. */
static bool input_more(struct weft_fs_watch *watch)
{
	struct pollfd ready = { .fd = watch->fd, .events = POLLIN };
	size_t left = watch->input_bytes - watch->input_at;
	ssize_t n;

	memmove(watch->input, watch->input + watch->input_at, left);
	watch->input_at = 0;
	watch->input_bytes = left;
	if (poll(&ready, 1, PARTNER_MS) <= 0)
		return false;
	n = read(watch->fd, watch->input + left, sizeof(watch->input) - left);
	if (n <= 0)
		return false;
	watch->input_bytes += (size_t)n;
	return true;
}

/* The other half of the move that comes first in the input; it is handled with
 * it, and its name is in name_to.  False: there is none. */
static bool partner_take(struct weft_fs_watch *watch, int *ret_wd)
{
	uint32_t cookie = input_at(watch, watch->input_at)->cookie;
	size_t at = watch->input_at;

	do {
		size_t begin = watch->input_at;

		for (; at < watch->input_bytes;
		     at += event_bytes(input_at(watch, at))) {
			struct inotify_event *event = input_at(watch, at);

			if (event->cookie != cookie ||
			    !(event->mask & IN_MOVED_TO))
				continue;
			*ret_wd = event->wd;
			memcpy(watch->name_to, event->name, event->len);
			return true;
		}
		at -= begin;
	} while (input_more(watch));
	return false;
}

static void partner_spend(struct weft_fs_watch *watch, uint32_t cookie)
{
	for (size_t at = watch->input_at; at < watch->input_bytes;
	     at += event_bytes(input_at(watch, at)))
		if (input_at(watch, at)->cookie == cookie)
			input_at(watch, at)->mask = 0;
}

/* ---- The kernel's events ------------------------------------------------- */

static void moved_from(struct weft_fs_watch *watch, struct weft__watch_dir *dir,
		       const struct inotify_event *event, bool is_directory)
{
	uint32_t cookie = event->cookie;
	struct place from = { dir, watch->name_from };
	struct weft__watch_dir *to = NULL;
	int wd;

	/* The input moves. */
	memcpy(watch->name_from, event->name, event->len);
	if (partner_take(watch, &wd))
		to = weft__watch_by_wd(watch, wd);
	if (to && to->root == dir->root) {
		partner_spend(watch, cookie);
		moved(watch, &from, wd, watch->name_to, is_directory);
	} else {
		removed(watch, dir, from.name, is_directory);
	}
}

void weft__watch_root_gone(struct weft_fs_watch *watch,
			   struct weft__watch_dir *dir, int error)
{
	struct weft__watch_root *root = dir->root;

	weft__watch_emit(watch, WEFT_FS_GONE, dir, NULL, root->is_directory,
			 error);
	root->dir = NULL;
	weft__watch_dir_drop(watch, dir);
}

static void root_event(struct weft_fs_watch *watch, struct weft__watch_dir *dir,
		       uint32_t mask)
{
	if (mask & IN_UNMOUNT)
		weft__watch_root_gone(watch, dir, -ENODEV);
	else if (mask & IN_MOVE_SELF)
		weft__watch_root_gone(watch, dir, -ESTALE);
	else if (mask & (IN_DELETE_SELF | IN_IGNORED))
		weft__watch_root_gone(watch, dir, -ENOENT);
}

static void status_events(struct weft_fs_watch *watch,
			  struct weft__watch_dir *dir,
			  const struct inotify_event *event, const char *name)
{
	bool is_directory = event->mask & IN_ISDIR;

	/* Of a directory beneath another its parent tells, too. */
	if (!name && dir->parent)
		return;
	if (event->mask & IN_MODIFY)
		weft__watch_emit(watch, WEFT_FS_CHANGED, dir, name,
				 is_directory, 0);
	if (event->mask & IN_ATTRIB)
		weft__watch_emit(watch, WEFT_FS_STATUS, dir, name,
				 is_directory, 0);
	if (event->mask & IN_CLOSE_WRITE)
		weft__watch_emit(watch, WEFT_FS_CLOSED, dir, name,
				 is_directory, 0);
}

static void entry_event(struct weft_fs_watch *watch,
			struct weft__watch_dir *dir,
			const struct inotify_event *event)
{
	const char *name = event->len ? event->name : NULL;
	bool is_directory = event->mask & IN_ISDIR;

	status_events(watch, dir, event, name);
	if (!name)
		return;
	if (event->mask & (IN_CREATE | IN_MOVED_TO)) {
		struct weft__watch_dir *old =
			weft__watch_child(watch, dir, name);

		if (old && !is_directory)
			weft__watch_dir_drop(watch, old);
		created(watch, dir, name, is_directory);
	}
	if (event->mask & IN_DELETE)
		removed(watch, dir, name, is_directory);
}

static void handle(struct weft_fs_watch *watch,
		   const struct inotify_event *event)
{
	struct weft__watch_dir *dir = weft__watch_by_wd(watch, event->wd);

	if (event->mask & IN_Q_OVERFLOW)
		weft__watch_lost(watch);
	if (!dir)
		return;
	if (event->mask & IN_MOVED_FROM) {
		moved_from(watch, dir, event, event->mask & IN_ISDIR);
		return;
	}
	if (!dir->parent &&
	    (event->mask &
	     (IN_UNMOUNT | IN_MOVE_SELF | IN_DELETE_SELF | IN_IGNORED))) {
		root_event(watch, dir, event->mask);
		return;
	}
	if (event->mask & IN_IGNORED) {
		weft__watch_set_wd(watch, dir, -1);
		weft__watch_dir_later(watch, dir->parent, WEFT__SCAN_CHECK);
		return;
	}
	entry_event(watch, dir, event);
	/* It may have been removed or replaced. */
	if (!dir->root->is_directory && (event->mask & IN_ATTRIB))
		weft__watch_dir_later(watch, dir, WEFT__SCAN_CHECK);
}

/* Needs no system call, and does not wait. */
static bool is_light(struct weft_fs_watch *watch,
		     const struct inotify_event *event)
{
	static const uint32_t changes = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE;
	struct weft__watch_dir *dir = weft__watch_by_wd(watch, event->wd);

	if (event->mask & IN_Q_OVERFLOW)
		return false;
	if (!dir || !(event->mask & ~(changes | (uint32_t)IN_ISDIR)))
		return true;
	return !(event->mask & ~(changes | (uint32_t)(IN_CREATE | IN_DELETE |
						      IN_MOVED_TO))) &&
	       event->len && !weft__watch_child(watch, dir, event->name);
}

bool weft__watch_decode(struct weft_fs_watch *watch, bool alone)
{
	while (watch->input_at < watch->input_bytes && !watch->queue &&
	       !watch->due) {
		struct inotify_event *event = input_at(watch, watch->input_at);
		size_t bytes;

		if (alone && !is_light(watch, event))
			return true;
		if (event->mask & IN_MOVED_FROM) {
			/* It may come to lie elsewhere: it is handled first. */
			handle(watch, event);
			event = input_at(watch, watch->input_at);
			bytes = event_bytes(event);
		} else {
			bytes = event_bytes(event);
			handle(watch, event);
		}
		watch->input_at += bytes;
	}
	return false;
}
