/* SPDX-License-Identifier: MIT */
#include "tests/support/tree_kit.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/errno_now.h"
#include "tests/support/expect.h"

/* ---- Lists ------------------------------------------------------------ */

void tree_list_add(struct tree_list *list, const char *text)
{
	char *copy = strdup(text);

	EXPECT(copy);
	weft__lock_take(&list->lock);
	if (list->count == list->max) {
		list->max = list->max ? 2 * list->max : 64;
		list->texts = realloc(list->texts,
				      list->max * sizeof(*list->texts));
		EXPECT(list->texts);
	}
	list->texts[list->count++] = copy;
	weft__lock_drop(&list->lock);
}

void tree_list_free(struct tree_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->texts[i]);
	free(list->texts);
	*list = (struct tree_list){ 0 };
}

static int compare(const void *left, const void *right)
{
	const char *const *a = left, *const *b = right;

	return strcmp(*a, *b);
}

void tree_list_sort(struct tree_list *list)
{
	if (list->count)
		qsort(list->texts, list->count, sizeof(*list->texts), compare);
}

size_t tree_list_find(const struct tree_list *list, const char *text)
{
	size_t i = 0;

	while (i < list->count && strcmp(list->texts[i], text) != 0)
		i++;
	return i;
}

void tree_lists_compare_order(const struct tree_list *got,
			      const struct tree_list *expected)
{
	for (size_t i = 0; i < got->count && i < expected->count; i++)
		if (strcmp(got->texts[i], expected->texts[i]) != 0)
			ck_abort_msg("%zu: got '%.200s', not '%.200s'", i,
				     got->texts[i], expected->texts[i]);
	if (got->count != expected->count)
		ck_abort_msg("got %zu, not %zu", got->count, expected->count);
}

void tree_lists_compare(struct tree_list *got, struct tree_list *expected)
{
	tree_list_sort(got);
	tree_list_sort(expected);
	tree_lists_compare_order(got, expected);
}

/* ---- The directory ---------------------------------------------------- */

static bool open_in(struct tree *tree, const char *base)
{
	if (!base || strlen(base) > 40)
		return false;
	stpcpy(stpcpy(tree->path, base), "/weft-tree-XXXXXX");
	return mkdtemp(tree->path);
}

/* In memory, if that is possible: many small files take long elsewhere. */
void tree_open(struct tree *tree)
{
	EXPECT(open_in(tree, getenv("TMPDIR")) || open_in(tree, "/dev/shm") ||
	       open_in(tree, "/tmp"));
	tree->fd = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	EXPECT(tree->fd >= 0);
}

void tree_close(struct tree *tree)
{
	tree_empty(tree->fd);
	close(tree->fd);
	EXPECT(rmdir(tree->path) == 0);
}

static void file_make(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	EXPECT(fd >= 0 && write(fd, name, 1) == 1 && close(fd) == 0);
}

void tree_file(const struct tree *tree, const char *path)
{
	file_make(tree->fd, path);
}

void tree_dir(const struct tree *tree, const char *path)
{
	char part[PATH_MAX];

	for (size_t i = 0; i <= strlen(path); i++)
		if (path[i] == '/' || !path[i]) {
			memcpy(part, path, i);
			part[i] = '\0';
			EXPECT(mkdirat(tree->fd, part, 0755) == 0 ||
			       errno_now() == EEXIST);
		}
}

void tree_below(const struct tree *tree, struct tree *ret_below)
{
	*ret_below = *tree;
	tree_dir(tree, "t");
	snprintf(ret_below->path, sizeof(ret_below->path), "%.60s/t",
		 tree->path);
	ret_below->fd = openat(tree->fd, "t", O_RDONLY | O_CLOEXEC);
	EXPECT(ret_below->fd >= 0);
}

void tree_make_deep(const struct tree *tree, const char *name, int levels)
{
	int at = dup(tree->fd), next;

	for (int i = 0; i < levels; i++) {
		EXPECT(mkdirat(at, name, 0755) == 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		EXPECT(next >= 0);
		close(at);
		at = next;
	}
	file_make(at, "bottom");
	close(at);
}

static void socket_make(const struct tree *tree)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket",
		 tree->path);
	EXPECT(fd >= 0 && bind(fd, (const struct sockaddr *)&address,
			       sizeof(address)) == 0);
	close(fd);
}

static void names_make(const struct tree *tree)
{
	static const char *const names[] = {
		" ", "a b", "new\nline", "\t", "-rf", "--", "...", "..a", ".a",
		"*", "?", "[", "\\", "'", "\"", "$HOME", "\x01", "\x7f",
		"\xff\xfe", "\xc3\x28", "\xe2\x82\xac", "a:b", "~",
	};
	char longest[256], path[300];

	tree_dir(tree, "names");
	memset(longest, 'l', 255);
	longest[255] = '\0';
	for (size_t i = 0; i <= sizeof(names) / sizeof(*names); i++) {
		bool last = i == sizeof(names) / sizeof(*names);

		snprintf(path, sizeof(path), "names/%s",
			 last ? longest : names[i]);
		/* Not every file system has all bytes in its names. */
		if (mkdirat(tree->fd, path, 0755) < 0) {
			EXPECT(errno_now() == EILSEQ || errno_now() == EINVAL);
			continue;
		}
		snprintf(path, sizeof(path), "names/%s/%s",
			 last ? longest : names[i], last ? "f" : names[i]);
		tree_file(tree, path);
	}
}

static void links_make(const struct tree *tree)
{
	tree_dir(tree, "links/dir");
	tree_file(tree, "links/file");
	tree_file(tree, "links/dir/file");
	EXPECT(linkat(tree->fd, "links/file", tree->fd, "links/hard", 0) == 0);
	EXPECT(symlinkat("file", tree->fd, "links/to_file") == 0);
	EXPECT(symlinkat("dir", tree->fd, "links/to_dir") == 0);
	EXPECT(symlinkat("nothing", tree->fd, "links/to_nothing") == 0);
	EXPECT(symlinkat("itself", tree->fd, "links/itself") == 0);
	EXPECT(symlinkat("pong", tree->fd, "links/ping") == 0);
	EXPECT(symlinkat("ping", tree->fd, "links/pong") == 0);
	EXPECT(symlinkat("..", tree->fd, "links/dir/up") == 0);
	EXPECT(symlinkat("/proc", tree->fd, "links/proc") == 0);
}

void tree_make_nasty(const struct tree *tree)
{
	char longest[256];

	names_make(tree);
	links_make(tree);
	tree_dir(tree, "empty/empty/empty");
	tree_file(tree, "file");
	EXPECT(mkfifoat(tree->fd, "fifo", 0644) == 0);
	socket_make(tree);
	/* Only root may. */
	EXPECT(mknodat(tree->fd, "null", S_IFCHR | 0644, makedev(1, 3)) == 0 ||
	       errno_now() == EPERM);
	memset(longest, 'd', 255);
	longest[255] = '\0';
	tree_make_deep(tree, longest, 20);
	tree_make_deep(tree, "a", 150);
}

static unsigned next(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345;
	return *seed >> 16 & 0x7fff;
}

/* Goes up and down at random. */
void tree_make_random(const struct tree *tree, unsigned seed, int files)
{
	char path[2048] = "", name[2100];
	size_t depth = 0;

	for (int i = 0; i < files; i++) {
		unsigned what = next(&seed) % 16;
		size_t bytes = strlen(path);

		snprintf(name, sizeof(name), "%s%s%u", path, bytes ? "/" : "",
			 next(&seed) % 1000);
		if (what < 3 && depth < 100 &&
		    mkdirat(tree->fd, name, 0755) == 0) {
			memcpy(path, name, strlen(name) + 1);
			depth++;
		} else if (what < 5 && depth) {
			*(strrchr(path, '/') ? strrchr(path, '/') : path) = 0;
			depth--;
		} else if (what == 5) {
			(void)!symlinkat("..", tree->fd, name);
		} else if (what == 6) {
			(void)!mkdirat(tree->fd, name, 0755);
		} else if (faccessat(tree->fd, name, F_OK,
				     AT_SYMLINK_NOFOLLOW) < 0) {
			file_make(tree->fd, name);
		}
	}
}

/* ---- Listing and emptying --------------------------------------------- */

void tree_line(char *line, size_t bytes, const char *path, int type)
{
	snprintf(line, bytes, "%s\t%d", path, type);
}

/* The names of an open directory, sorted. */
static void names_read(int fd, struct tree_list *ret_names)
{
	DIR *dir = fdopendir(openat(fd, ".", O_RDONLY | O_CLOEXEC));
	const struct dirent *entry;

	EXPECT(dir);
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			tree_list_add(ret_names, entry->d_name);
	closedir(dir);
	tree_list_sort(ret_names);
}

/* The directory below, in place of this one. */
static int go(int fd, const char *name)
{
	int other = openat(fd, name,
			   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	EXPECT(other >= 0);
	close(fd);
	return other;
}

/* Takes over the descriptor; returns it, or another of the directory. */
static int list_below(int fd, const char *path, struct tree_list *list)
{
	struct tree_list names = { 0 };
	struct stat st;

	names_read(fd, &names);
	for (size_t i = 0; i < names.count; i++) {
		size_t bytes = strlen(path) + strlen(names.texts[i]) + 2;
		char *below = malloc(bytes), *line = malloc(bytes + 16);

		EXPECT(below && line);
		snprintf(below, bytes, "%s%s%s", path, *path ? "/" : "",
			 names.texts[i]);
		EXPECT(fstatat(fd, names.texts[i], &st, AT_SYMLINK_NOFOLLOW) ==
		       0);
		tree_line(line, bytes + 16, below,
			  (int)IFTODT(st.st_mode));
		tree_list_add(list, line);
		if (S_ISDIR(st.st_mode))
			fd = go(list_below(go(fd, names.texts[i]), below, list),
				"..");
		free(below);
		free(line);
	}
	tree_list_free(&names);
	return fd;
}

void tree_list(int dir_fd, const char *path, struct tree_list *ret_list)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char line[16];

	EXPECT(fd >= 0);
	tree_line(line, sizeof(line), "", DT_DIR);
	tree_list_add(ret_list, line);
	close(list_below(fd, "", ret_list));
}

static int empty_below(int fd)
{
	struct tree_list names = { 0 };

	names_read(fd, &names);
	for (size_t i = 0; i < names.count; i++) {
		if (unlinkat(fd, names.texts[i], 0) == 0)
			continue;
		(void)!fchmodat(fd, names.texts[i], 0700, 0);
		fd = go(empty_below(go(fd, names.texts[i])), "..");
		EXPECT(unlinkat(fd, names.texts[i], AT_REMOVEDIR) == 0);
	}
	tree_list_free(&names);
	return fd;
}

void tree_empty(int fd)
{
	close(empty_below(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
}
