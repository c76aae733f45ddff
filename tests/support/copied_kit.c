/* SPDX-License-Identifier: MIT */
/*
 * Trees of files; see the header.  Each directory is read in full before one
 * below it is opened, so that a walk needs two descriptors a level.
 */
#include "tests/support/copied_kit.h"

#include <check.h>
#include <dirent.h>
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
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/support/errno_now.h"
#include "tests/support/expect.h"

enum { LINKS_MAX = 4096, VALUE_BYTES = 1024 };

/* ---- Making -------------------------------------------------------------- */

char copied_top[COPIED_PATH_BYTES];

/* Any user may work in it. */
static void top_make(const char *dir)
{
	snprintf(copied_top, sizeof(copied_top), "%s/weft-copied-XXXXXX", dir);
	ck_assert_ptr_nonnull(mkdtemp(copied_top));
	ck_assert_int_eq(chmod(copied_top, 0777), 0);
	ck_assert_int_eq(chdir(copied_top), 0);
	umask(022);
}

void copied_setup(void)
{
	const char *dir = getenv("TMPDIR");

	top_make(dir && strlen(dir) < 128 ? dir : "/tmp");
}

void copied_setup_quick(void)
{
	if (access("/dev/shm", W_OK | X_OK) == 0)
		top_make("/dev/shm");
	else
		copied_setup();
}

void copied_teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	copied_remove(copied_top);
}

const char *copied_join(char to[COPIED_PATH_BYTES], const char *path,
			const char *name)
{
	int n = snprintf(to, COPIED_PATH_BYTES, "%s/%s", path, name);

	EXPECT(n > 0 && n < COPIED_PATH_BYTES);
	return to;
}

void copied_bytes(char *buffer, size_t bytes, unsigned seed)
{
	uint32_t state = seed * 2654435761u + 1;

	for (size_t i = 0; i < bytes; i++) {
		state = state * 1664525u + 1013904223u;
		buffer[i] = (char)(state >> 24);
	}
}

void copied_file(int dir, const char *name, size_t bytes, unsigned seed)
{
	char *buffer = malloc(bytes + 1);
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0644);

	ck_assert_int_ge(fd, 0);
	EXPECT(buffer);
	copied_bytes(buffer, bytes, seed);
	ck_assert_int_eq(write(fd, buffer, bytes), (ssize_t)bytes);
	close(fd);
	free(buffer);
}

int copied_dir(int dir, const char *name, mode_t mode)
{
	int fd;

	ck_assert_int_eq(mkdirat(dir, name, 0700), 0);
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, mode), 0);
	return fd;
}

static void sparse_make(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, "data", 4, 1 << 20), 4);
	ck_assert_int_eq(pwrite(fd, "more", 4, 3 << 20), 4);
	ck_assert_int_eq(ftruncate(fd, (5 << 20) + 7), 0);
	close(fd);
}

static void nodes_make(const char *path, int dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	char full[COPIED_PATH_BYTES];
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(mkfifoat(dir, "fifo", 0622), 0);
	copied_join(full, path, "socket");
	EXPECT(strlen(full) < sizeof(addr.sun_path));
	memcpy(addr.sun_path, full, strlen(full) + 1);
	ck_assert_int_eq(bind(fd, (void *)&addr, sizeof(addr)), 0);
	close(fd);
	if (mknodat(dir, "null", S_IFCHR | 0666, makedev(1, 3)) < 0)
		ck_assert_int_eq(errno_now(), EPERM);
}

static void names_make(int dir)
{
	char longest[NAME_MAX + 1];

	memset(longest, 'n', NAME_MAX);
	longest[NAME_MAX] = '\0';
	copied_file(dir, longest, 10, 1);
	copied_file(dir, "new\nline", 11, 2);
	copied_file(dir, "\xff\xfe no UTF-8", 12, 3);
	copied_file(dir, " ", 13, 4);
	copied_file(dir, "-rf", 14, 5);
	copied_file(dir, "*?[a]\\\"'$(", 15, 6);
	copied_file(dir, "...", 16, 7);
	longest[0] = 'd';
	close(copied_dir(dir, longest, 0755));
}

static void rights_make(int dir)
{
	struct timespec times[] = { { 1000000000, 123456789 },
				    { 1100000000, 987654321 } };
	int sub = copied_dir(dir, "read-only", 0700), fd;

	copied_file(sub, "set-user-ID", 100, 8);
	ck_assert_int_eq(fchmodat(sub, "set-user-ID", 04751, 0), 0);
	copied_file(sub, "old", 100, 9);
	ck_assert_int_eq(fchmodat(sub, "old", 0440, 0), 0);
	ck_assert_int_eq(utimensat(sub, "old", times, 0), 0);
	fd = openat(sub, "old", O_RDONLY | O_CLOEXEC);
	if (fsetxattr(fd, "user.weft", "value\0more", 10, 0) < 0)
		EXPECT(errno_now() == EOPNOTSUPP || errno_now() == EACCES);
	close(fd);
	ck_assert_int_eq(futimens(sub, times), 0);
	ck_assert_int_eq(fchmod(sub, 0555), 0);
	close(sub);
	close(copied_dir(dir, "sticky", 01777));
}

/* Links and FIFOs take no others; only some processes may set these. */
static bool xattr_set(int dir, const char *name)
{
	char path[NAME_MAX + 32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	if (lsetxattr(path, "trusted.weft", name, strlen(name), 0) == 0)
		return true;
	EXPECT(errno_now() == EPERM || errno_now() == EOPNOTSUPP);
	return false;
}

static bool links_make(int dir)
{
	int sub = copied_dir(dir, "links", 0750);
	bool has_xattrs;

	ck_assert_int_eq(symlinkat("nowhere/at all", dir, "dangling"), 0);
	has_xattrs = xattr_set(dir, "dangling") && xattr_set(dir, "fifo");
	ck_assert_int_eq(symlinkat("links", dir, "to a directory"), 0);
	ck_assert_int_eq(symlinkat("loop", sub, "loop"), 0);
	copied_file(dir, "first name", 5000, 10);
	ck_assert_int_eq(linkat(dir, "first name", sub, "second name", 0), 0);
	ck_assert_int_eq(linkat(dir, "first name", sub, "third", 0), 0);
	if (linkat(dir, "dangling", sub, "dangling, too", 0) < 0)
		EXPECT(errno_now() == EPERM);
	close(sub);
	return has_xattrs;
}

bool copied_nasty(const char *path)
{
	int dir = copied_dir(AT_FDCWD, path, 0755);
	bool has_xattrs;

	names_make(dir);
	nodes_make(path, dir);
	rights_make(dir);
	has_xattrs = links_make(dir);
	sparse_make(dir, "sparse");
	copied_file(dir, "empty", 0, 0);
	copied_file(dir, "small", 4095, 11);
	copied_file(dir, "buffer", 128 << 10, 12);
	copied_file(dir, "large", (9 << 20) + 1, 13);
	close(copied_dir(dir, "empty directory", 0711));
	close(dir);
	return has_xattrs;
}

void copied_broad(const char *path, int dirs, int files)
{
	int top_fd = copied_dir(AT_FDCWD, path, 0755);

	for (int i = 0; i < dirs; i++) {
		char name[32];
		int dir;

		snprintf(name, sizeof(name), "dir-%d", i);
		dir = copied_dir(top_fd, name, 0755);
		for (int j = 0; j < files; j++) {
			snprintf(name, sizeof(name), "a file of number %d", j);
			copied_file(dir, name, (size_t)(i * 31 + j * 97) % 5000,
				    (unsigned)(i + j));
		}
		close(dir);
	}
	close(top_fd);
}

/* ---- Reading ------------------------------------------------------------- */

struct names {
	char **of;
	size_t count;
};

static int names_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct names names_read(int dir)
{
	struct names names = { NULL, 0 };
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fdopendir(fd);
	struct dirent *entry;

	EXPECT(stream);
	while ((entry = readdir(stream))) {
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if ((names.count & (names.count - 1)) == 0) {
			size_t room = names.count ? 2 * names.count : 1;

			names.of = realloc(names.of, room * sizeof(char *));
		}
		EXPECT(names.of);
		names.of[names.count++] = strdup(entry->d_name);
	}
	closedir(stream);
	if (names.count)
		qsort(names.of, names.count, sizeof(char *), names_compare);
	return names;
}

static void names_free(struct names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->of[i]);
	free(names->of);
}

static int dir_open(int dir, const char *name)
{
	return openat(dir, name,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool copied_is_there(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0;
}

/* ---- Removing, counting -------------------------------------------------- */

static void remove_below(int dir, const char *name)
{
	struct names names;
	int fd;

	if (unlinkat(dir, name, 0) == 0)
		return;
	(void)!fchmodat(dir, name, 0700, 0);
	fd = dir_open(dir, name);
	if (fd < 0)
		return;
	names = names_read(fd);
	for (size_t i = 0; i < names.count; i++)
		remove_below(fd, names.of[i]);
	names_free(&names);
	close(fd);
	ck_assert_int_eq(unlinkat(dir, name, AT_REMOVEDIR), 0);
}

void copied_remove(const char *path)
{
	remove_below(AT_FDCWD, path);
}

static unsigned count_below(int dir, const char *prefix)
{
	struct names names = names_read(dir);
	unsigned n = 0;

	for (size_t i = 0; i < names.count; i++) {
		int fd = dir_open(dir, names.of[i]);

		n += strncmp(names.of[i], prefix, strlen(prefix)) == 0;
		if (fd < 0)
			continue;
		n += count_below(fd, prefix);
		close(fd);
	}
	names_free(&names);
	return n;
}

unsigned copied_count_names(const char *path, const char *prefix)
{
	int fd = dir_open(AT_FDCWD, path);
	unsigned n;

	if (fd < 0)
		return 0;
	n = count_below(fd, prefix);
	close(fd);
	return n;
}

/* ---- Comparing ----------------------------------------------------------- */

/* Numbers of the files of both trees that are one. */
struct pairs {
	ino_t a[LINKS_MAX], b[LINKS_MAX];
	unsigned count;
};

struct comparing {
	unsigned what;
	struct pairs *pairs;
};

static bool pair_fits(struct pairs *pairs, ino_t a, ino_t b)
{
	for (unsigned i = 0; i < pairs->count; i++)
		if (pairs->a[i] == a || pairs->b[i] == b)
			return pairs->a[i] == a && pairs->b[i] == b;
	EXPECT(pairs->count < LINKS_MAX);
	pairs->a[pairs->count] = a;
	pairs->b[pairs->count++] = b;
	return true;
}

#define SAME(holds) ck_assert_msg((holds), "'%s' differs: %s", name, #holds)

static void contents_compare(int a, int b, const char *name)
{
	static __thread char left[64 << 10], right[64 << 10];
	ssize_t n, m;

	do {
		n = read(a, left, sizeof(left));
		m = read(b, right, sizeof(right));
		SAME(n >= 0 && n == m && memcmp(left, right, (size_t)n) == 0);
	} while (n > 0);
}

/* Of the file, link or FIFO itself. */
static __attribute__((noinline)) void xattrs_compare(int a, int b,
						     const char *name)
{
	char names[VALUE_BYTES], left[VALUE_BYTES], right[VALUE_BYTES];
	char one_path[NAME_MAX + 32], other_path[NAME_MAX + 32];
	ssize_t n, m;

	snprintf(one_path, sizeof(one_path), "/proc/self/fd/%d/%s", a, name);
	snprintf(other_path, sizeof(other_path), "/proc/self/fd/%d/%s", b,
		 name);
	n = llistxattr(one_path, names, sizeof(names));
	/* Both calls fail where there is no /proc, or not enough room. */
	SAME(n >= 0 || errno_now() == EOPNOTSUPP);
	SAME(n == llistxattr(other_path, right, sizeof(right)));
	for (const char *one = names; one < names + n; one += strlen(one) + 1) {
		m = lgetxattr(one_path, one, left, sizeof(left));
		SAME(m >= 0 &&
		     m == lgetxattr(other_path, one, right, sizeof(right)));
		SAME(memcmp(left, right, (size_t)m) == 0);
	}
}

static __attribute__((noinline)) void contents_of(int a, int b,
						  const char *name)
{
	int left = openat(a, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int right = openat(b, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	SAME((left < 0) == (right < 0));
	if (left < 0)
		return;
	contents_compare(left, right, name);
	close(left);
	close(right);
}

static __attribute__((noinline)) void symlinks_compare(int a, int b,
						       const char *name)
{
	char left[PATH_MAX], right[PATH_MAX];
	ssize_t n = readlinkat(a, name, left, sizeof(left));

	SAME(n > 0 && n == readlinkat(b, name, right, sizeof(right)));
	SAME(memcmp(left, right, (size_t)n) == 0);
}

/* On a file system with holes the copy has them, too. */
static bool as_sparse(const struct stat *a, const struct stat *b)
{
	return a->st_blocks * 512 >= a->st_size ||
	       b->st_blocks * 512 < b->st_size;
}

static __attribute__((noinline)) void status_compare(const struct comparing *c,
						     const struct stat *a,
						     const struct stat *b,
						     const char *name)
{
	SAME((a->st_mode & S_IFMT) == (b->st_mode & S_IFMT));
	if (!S_ISDIR(a->st_mode))
		SAME(a->st_size == b->st_size && as_sparse(a, b));
	if ((c->what & COPIED_MODES) && !S_ISLNK(a->st_mode))
		SAME(a->st_mode == b->st_mode);
	if (c->what & COPIED_OWNERS)
		SAME(a->st_uid == b->st_uid && a->st_gid == b->st_gid);
	if (c->what & COPIED_TIMES)
		SAME(a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
		     a->st_mtim.tv_nsec == b->st_mtim.tv_nsec);
	if (S_ISCHR(a->st_mode) || S_ISBLK(a->st_mode))
		SAME(a->st_rdev == b->st_rdev);
	if ((c->what & COPIED_LINKS) && !S_ISDIR(a->st_mode))
		SAME(a->st_nlink == b->st_nlink &&
		     (a->st_nlink == 1 ||
		      pair_fits(c->pairs, a->st_ino, b->st_ino)));
}

static void compare_below(const struct comparing *c, int a, int b,
			  const char *name)
{
	struct stat left, right;
	struct names names, others;
	int x, y;

	SAME(fstatat(a, name, &left, AT_SYMLINK_NOFOLLOW) == 0);
	SAME(fstatat(b, name, &right, AT_SYMLINK_NOFOLLOW) == 0);
	status_compare(c, &left, &right, name);
	if (S_ISREG(left.st_mode))
		contents_of(a, b, name);
	if (S_ISLNK(left.st_mode))
		symlinks_compare(a, b, name);
	if ((c->what & COPIED_XATTRS) && !S_ISDIR(left.st_mode))
		xattrs_compare(a, b, name);
	x = S_ISDIR(left.st_mode) ? dir_open(a, name) : -1;
	if (x < 0)
		return;
	y = dir_open(b, name);
	SAME(y >= 0);
	names = names_read(x);
	others = names_read(y);
	SAME((c->what & COPIED_PART) || names.count == others.count);
	for (size_t i = 0; i < others.count; i++) {
		bool unfinished = strncmp(others.of[i], ".weft-copy-", 11) == 0;

		if (!(c->what & COPIED_PART))
			SAME(strcmp(names.of[i], others.of[i]) == 0);
		else if (unfinished)
			continue;
		compare_below(c, x, y, others.of[i]);
	}
	names_free(&names);
	names_free(&others);
	close(x);
	close(y);
}

void copied_expect_same(const char *a, const char *b, unsigned what)
{
	struct comparing c = { what, calloc(1, sizeof(struct pairs)) };
	int x = dir_open(AT_FDCWD, a), y = dir_open(AT_FDCWD, b);

	ck_assert_int_ge(x, 0);
	ck_assert_int_ge(y, 0);
	EXPECT(c.pairs);
	compare_below(&c, x, y, ".");
	free(c.pairs);
	close(x);
	close(y);
}
