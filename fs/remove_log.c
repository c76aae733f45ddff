/* SPDX-License-Identifier: MIT */
/*
 * Notes of a removal: a job writes them, the task of the job reports them.
 * Nothing is noted that is not to be reported.
 */
#include "fs/remove.h"

#include <errno.h>
#include <string.h>

static bool is_reported(const struct weft__removal *removal, int error)
{
	return removal->opts->report &&
	       (error || !(removal->opts->flags & WEFT_REMOVE_QUIET));
}

static char *log_room(struct weft__remover *remover, size_t bytes)
{
	struct weft__remove_log *log = &remover->log;
	size_t max = (log->bytes + bytes) * 2;
	char *text;

	if (log->max - log->bytes >= bytes)
		return log->text + log->bytes;
	text = weft__memory_resize(remover->removal->tree.memory, log->text,
				   log->max, max);
	if (!text)
		return NULL;
	log->text = text;
	log->max = max;
	return text + log->bytes;
}

static bool log_add(struct weft__remover *remover,
		    const struct weft__tree_dir *dir, const char *name,
		    int error)
{
	size_t name_bytes = name ? strlen(name) : 0;
	size_t bytes = sizeof(error) + dir->path_bytes + 1 + name_bytes + 1;
	char *text = log_room(remover, bytes), *start = text;

	if (!text)
		return false;
	memcpy(text, &error, sizeof(error));
	text += sizeof(error);
	weft__tree_path(dir, text);
	text += dir->path_bytes;
	if (name && dir->path_bytes)
		*text++ = '/';
	if (name)
		memcpy(text, name, name_bytes);
	text += name_bytes;
	*text++ = '\0';
	remover->log.bytes += (size_t)(text - start);
	return true;
}

void weft__remove_stop(struct weft__removal *removal, int error)
{
	weft__lock_take(&removal->tree.lock);
	if (!removal->error)
		removal->error = error;
	removal->stops = true;
	weft__lock_drop(&removal->tree.lock);
}

void weft__remove_note(struct weft__remover *remover,
		       struct weft__tree_dir *dir, const char *name, int error)
{
	struct weft__removal *removal = remover->removal;

	if (error) {
		remover->counts.failed++;
		weft__lock_take(&removal->tree.lock);
		dir->fails = true;
		if (!removal->error)
			removal->error = error;
		if (!(removal->opts->flags & WEFT_REMOVE_GO_ON))
			removal->stops = true;
		weft__lock_drop(&removal->tree.lock);
	}
	if (is_reported(removal, error) && !log_add(remover, dir, name, error))
		weft__remove_stop(removal, -ENOMEM);
}

static int log_pass(struct weft__remover *remover)
{
	const struct weft_remove_opts *opts = remover->removal->opts;
	const char *at = remover->log.text;
	const char *end = at + remover->log.bytes;
	int error, r = 0;

	while (at < end && r >= 0) {
		memcpy(&error, at, sizeof(error));
		at += sizeof(error);
		r = opts->report(at, error, opts->arg);
		at += strlen(at) + 1;
	}
	remover->log.bytes = 0;
	return r < 0 ? r : 0;
}

/* The task that reports holds the mutex, and others wait for their turn in any
 * case: what was removed is to be known. */
int weft__remove_report(struct weft__remover *remover)
{
	struct weft__removal *removal = remover->removal;
	int r = 0;

	if (!remover->log.bytes)
		return 0;
	WEFT_SHIELD {
		r = weft_mutex_lock(&removal->reporting);
	}
	if (r < 0)
		return r;
	r = log_pass(remover);
	weft_mutex_unlock(&removal->reporting);
	return r;
}
