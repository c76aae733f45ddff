/* SPDX-License-Identifier: MIT */
/* A directory of a test's own, and the names in it: as they are on the disk,
 * and as events of a watch tell. */
#ifndef WEFT_TESTS_SUPPORT_FS_NAMES_H
#define WEFT_TESTS_SUPPORT_FS_NAMES_H

#include <ftw.h>
#include <sched.h>
#include <sys/stat.h>

#include "tests/support/io_kit.h"
#include "tests/support/quiet_dir.h"

enum { FS_NAMES_MAX = 4096 };

struct fs_names {
	char *path[FS_NAMES_MAX];
	int count;
};

static char fs_root[64];

static inline const char *fs_path(const char *name)
{
	static _Thread_local char path[2][8192];
	static _Thread_local int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[turn]), "%s/%s", fs_root, name);
	return path[turn];
}

static inline void fs_root_make(void)
{
	snprintf(fs_root, sizeof(fs_root), "%s/weft-test-XXXXXX", quiet_dir());
	ck_assert_ptr_nonnull(mkdtemp(fs_root));
}

static inline int fs_remove_one(const char *path, const struct stat *status,
				int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	(void)where;
	return remove(path);
}

static inline void fs_root_drop(void)
{
	(void)nftw(fs_root, fs_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void fs_make(const char *name)
{
	int fd = open(fs_path(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

static inline void fs_write(const char *name, const char *text)
{
	int fd = open(fs_path(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
		      0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static inline void fs_mkdir(const char *name)
{
	ck_assert_int_eq(mkdir(fs_path(name), 0700), 0);
}

static inline void fs_rename(const char *from, const char *to)
{
	ck_assert_int_eq(rename(fs_path(from), fs_path(to)), 0);
}

/* This process, without threads so far, becomes one of a user that has no more
 * of that.  The limits of the machine stay. */
static inline bool fs_limit(const char *what, int limit)
{
	char path[64], number[16];
	int fd, n = snprintf(number, sizeof(number), "%d", limit);
	bool done;

	snprintf(path, sizeof(path), "/proc/sys/user/%s", what);
	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, number, (size_t)n) == n;
	if (fd >= 0)
		close(fd);
	return done;
}

/* The most events that wait in a watch; 0: the kernel does not say. */
static inline int fs_queued_max(void)
{
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
	int max = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &max) != 1)
		max = 0;
	fclose(file);
	return max;
}

/* ---- Sets of names ------------------------------------------------------- */

static inline int names_find(const struct fs_names *names, const char *path)
{
	for (int i = 0; i < names->count; i++)
		if (strcmp(names->path[i], path) == 0)
			return i;
	return -1;
}

static inline void names_add(struct fs_names *names, const char *path)
{
	if (names_find(names, path) >= 0)
		return;
	ck_assert_int_lt(names->count, FS_NAMES_MAX);
	names->path[names->count++] = strdup(path);
}

static inline bool is_beneath(const char *path, const char *top)
{
	size_t bytes = strlen(top);

	return strncmp(path, top, bytes) == 0 &&
	       (path[bytes] == 0 || path[bytes] == '/');
}

static inline void names_remove(struct fs_names *names, const char *top)
{
	for (int i = 0; i < names->count;)
		if (is_beneath(names->path[i], top)) {
			free(names->path[i]);
			names->path[i] = names->path[--names->count];
		} else {
			i++;
		}
}

static inline void names_move(struct fs_names *names, const char *from,
			      const char *to)
{
	names_remove(names, to);
	for (int i = 0; i < names->count; i++)
		if (is_beneath(names->path[i], from)) {
			char *old = names->path[i];

			ck_assert_int_ge(asprintf(&names->path[i], "%s%s", to,
						  old + strlen(from)), 0);
			free(old);
		}
	names_add(names, to);
}

static inline void names_clear(struct fs_names *names)
{
	while (names->count > 0)
		free(names->path[--names->count]);
}

/* nftw() has no argument. */
static struct fs_names *names_listed;

static inline int names_list_one(const char *path, const struct stat *status,
				 int kind, struct FTW *where)
{
	(void)status;
	(void)kind;
	if (where->level > 0)
		names_add(names_listed, path + strlen(fs_root) + 1);
	return 0;
}

static inline void names_list(struct fs_names *names)
{
	names_clear(names);
	names_listed = names;
	ck_assert_int_eq(nftw(fs_root, names_list_one, 16, FTW_PHYS), 0);
}

static inline void names_apply(struct fs_names *names,
			       const struct weft_fs_event *event)
{
	switch (event->kind) {
	case WEFT_FS_CREATED:
		names_add(names, event->path);
		break;
	case WEFT_FS_REMOVED:
		names_remove(names, event->path);
		break;
	case WEFT_FS_MOVED:
		names_move(names, event->from, event->path);
		break;
	case WEFT_FS_LOST:
		names_list(names);
		break;
	default:
		break;
	}
}

static inline int names_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The number of names that only one of both has; they are printed. */
static inline int names_differ(struct fs_names *told, struct fs_names *there)
{
	int differences = 0, i = 0, k = 0;

	qsort(told->path, (size_t)told->count, sizeof(char *), names_compare);
	qsort(there->path, (size_t)there->count, sizeof(char *),
	      names_compare);
	while (i < told->count || k < there->count) {
		int r = i == told->count  ? 1 :
			k == there->count ? -1 :
					    strcmp(told->path[i],
						   there->path[k]);

		if (r)
			fprintf(stderr, "only %s: %s\n",
				r < 0 ? "told" : "there",
				r < 0 ? told->path[i] : there->path[k]);
		differences += r != 0;
		i += r <= 0;
		k += r >= 0;
	}
	return differences;
}

#endif
