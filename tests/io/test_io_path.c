/* SPDX-License-Identifier: MIT */
/*
 * Calls on names.  Each call is made by weft in one directory, and by the C
 * library in another: the results and the directories are the same.  The rest
 * is about what weft adds: chains of directories, names beneath a directory,
 * cancellation.
 */
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/syscall.h>

#include "io/os/statx.h"
#include "io/os/syscall.h"
#include "tests/support/blocking_scene.h"
#include "tests/support/expect.h"
#include "tests/support/refuse_threads.h"
#include "tests/support/same_kit.h"

/* ---- The same as the C library ------------------------------------------- */

/* musl has neither. */
static long their_rename(const char *from, const char *to, unsigned flags)
{
	return syscall(SYS_renameat2, theirs, from, theirs, to, flags);
}

static long their_statx(const char *path, int flags, unsigned mask,
			struct statx *ret_status)
{
	return syscall(SYS_statx, theirs, path, flags, mask, ret_status);
}

static void names_are_the_same(const char *names, ...)
{
	va_list list;

	va_start(list, names);
	for (; names; names = va_arg(list, const char *)) {
		struct stat our, their;
		int r = fstatat(ours, names, &our, AT_SYMLINK_NOFOLLOW);

		ck_assert_int_eq(
			r, fstatat(theirs, names, &their, AT_SYMLINK_NOFOLLOW));
		if (r < 0)
			continue;
		ck_assert_uint_eq(our.st_mode, their.st_mode);
		ck_assert_uint_eq(our.st_nlink, their.st_nlink);
		ck_assert_uint_eq(our.st_uid, their.st_uid);
		ck_assert_uint_eq(our.st_gid, their.st_gid);
		ck_assert_int_eq(S_ISDIR(our.st_mode) ? 0 : our.st_size,
				 S_ISDIR(our.st_mode) ? 0 : their.st_size);
	}
	va_end(list);
}

static void makes_and_removes(void)
{
	char buf[100], other[100];

	SAME(weft_mkdirat(ours, "dir", 0750), mkdirat(theirs, "dir", 0750));
	SAME(weft_mkdir(OURS("two"), 0700), mkdir(THEIRS("two"), 0700));
	SAME(weft_mkdirat(ours, "dir", 0750), mkdirat(theirs, "dir", 0750));
	SAME(weft_mkdirat(ours, "no/dir", 0), mkdirat(theirs, "no/dir", 0));
	file_make("file");
	SAME(weft_linkat(ours, "file", ours, "hard", 0),
	     linkat(theirs, "file", theirs, "hard", 0));
	SAME(weft_linkat(ours, "file", ours, "hard", 0),
	     linkat(theirs, "file", theirs, "hard", 0));
	SAME(weft_linkat(ours, "dir", ours, "hard2", 0),
	     linkat(theirs, "dir", theirs, "hard2", 0));
	SAME(weft_symlinkat("file", ours, "soft"),
	     symlinkat("file", theirs, "soft"));
	SAME(weft_symlinkat("file", ours, "soft"),
	     symlinkat("file", theirs, "soft"));
	SAME(weft_readlinkat(ours, "soft", buf, sizeof(buf)),
	     readlinkat(theirs, "soft", other, sizeof(other)));
	ck_assert_mem_eq(buf, "file", 4);
	SAME(weft_readlinkat(ours, "soft", buf, 2),
	     readlinkat(theirs, "soft", other, 2));
	ck_assert_int_eq(weft_readlinkat(ours, "soft", buf, 0), -EINVAL);
	SAME(weft_readlinkat(ours, "file", buf, 9),
	     readlinkat(theirs, "file", other, 9));
	names_are_the_same("dir", "two", "file", "hard", "soft", "hard2", NULL);

	SAME(weft_rename(OURS("file"), OURS("moved")),
	     rename(THEIRS("file"), THEIRS("moved")));
	SAME(weft_rename(OURS("file"), OURS("moved")),
	     rename(THEIRS("file"), THEIRS("moved")));
	SAME(weft_renameat2(ours, "moved", ours, "hard", RENAME_NOREPLACE),
	     their_rename("moved", "hard", RENAME_NOREPLACE));
	SAME(weft_renameat2(ours, "moved", ours, "dir", RENAME_EXCHANGE),
	     their_rename("moved", "dir", RENAME_EXCHANGE));
	SAME(weft_renameat2(ours, "moved", ours, "dir", 1u << 20),
	     their_rename("moved", "dir", 1u << 20));
	names_are_the_same("file", "moved", "hard", "dir", NULL);
	SAME(weft_unlink(OURS("moved")), unlink(THEIRS("moved")));
	SAME(weft_rmdir(OURS("dir")), rmdir(THEIRS("dir")));
	SAME(weft_unlink(OURS("dir")), unlink(THEIRS("dir")));
	SAME(weft_unlink(OURS("dir")), unlink(THEIRS("dir")));
	SAME(weft_unlinkat(ours, "moved", AT_REMOVEDIR),
	     unlinkat(theirs, "moved", AT_REMOVEDIR));
	SAME(weft_unlinkat(ours, "two", 77), unlinkat(theirs, "two", 77));
	SAME(weft_rmdir(our_path), rmdir(their_path));
	SAME(weft_unlinkat(-1, "two", 0), unlinkat(-1, "two", 0));
	names_are_the_same("moved", "dir", "two", "hard", "soft", NULL);
}

static void changes(void)
{
	struct timespec times[] = { { 1000, 5000 }, { .tv_nsec = UTIME_OMIT } };
	struct timespec wrong[] = { { 0, -5 }, { 0, -5 } };
	struct statx status, other;
	struct stat st;

	file_make("it");
	SAME(weft_fchmodat(ours, "it", 04711, 0),
	     fchmodat(theirs, "it", 04711, 0));
	SAME(weft_fchmodat(ours, "no", 0, 0), fchmodat(theirs, "no", 0, 0));
	SAME(weft_fchmodat(ours, "it", 0, 1 << 20),
	     fchmodat(theirs, "it", 0, 1 << 20));
	SAME(weft_fchownat(ours, "it", (uid_t)-1, getgid(), 0),
	     fchownat(theirs, "it", (uid_t)-1, getgid(), 0));
	SAME(weft_fchownat(ours, "soft", getuid(), (gid_t)-1,
			   AT_SYMLINK_NOFOLLOW),
	     fchownat(theirs, "soft", getuid(), (gid_t)-1,
		      AT_SYMLINK_NOFOLLOW));
	SAME(weft_utimensat(ours, "it", times, 0),
	     utimensat(theirs, "it", times, 0));
	SAME(weft_utimensat(ours, "it", wrong, 0),
	     utimensat(theirs, "it", wrong, 0));
	ck_assert_int_eq(fstatat(ours, "it", &st, 0), 0);
	ck_assert_int_eq(st.st_atim.tv_sec, 1000);
	ck_assert_int_eq(st.st_atim.tv_nsec, 5000);
	SAME(weft_truncate(OURS("it"), 3), truncate(THEIRS("it"), 3));
	SAME(weft_truncate(OURS("it"), -3), truncate(THEIRS("it"), -3));
	SAME(weft_truncate(OURS("two"), 3), truncate(THEIRS("two"), 3));
	SAME(weft_faccessat(ours, "it", R_OK, 0),
	     faccessat(theirs, "it", R_OK, 0));
	SAME(weft_faccessat(ours, "no", F_OK, AT_EACCESS),
	     faccessat(theirs, "no", F_OK, AT_EACCESS));
	SAME(weft_faccessat(ours, "it", 77, 0), faccessat(theirs, "it", 77, 0));
	for (int flags = 0; flags <= AT_STATX_FORCE_SYNC;
	     flags += AT_STATX_FORCE_SYNC) {
		SAME(weft_statx(ours, "soft", flags | AT_SYMLINK_NOFOLLOW,
				STATX_SIZE, &status),
		     their_statx("soft", flags | AT_SYMLINK_NOFOLLOW,
				 STATX_SIZE, &other));
		ck_assert_uint_eq(status.stx_size, 4);
		SAME(weft_statx(ours, "it", flags, STATX_BASIC_STATS, &status),
		     their_statx("it", flags, STATX_BASIC_STATS, &other));
		ck_assert_uint_eq(status.stx_size, 3);
		ck_assert_uint_eq(status.stx_mode, other.stx_mode);
		SAME(weft_statx(ours, "", flags | AT_EMPTY_PATH, STATX_TYPE,
				&status),
		     their_statx("", flags | AT_EMPTY_PATH, STATX_TYPE,
				 &other));
		ck_assert(S_ISDIR(status.stx_mode));
		SAME(weft_statx(ours, "no", flags, STATX_TYPE, &status),
		     their_statx("no", flags, STATX_TYPE, &other));
	}
	SAME(weft_statx(ours, "it", 1 << 30, STATX_TYPE, &status),
	     their_statx("it", 1 << 30, STATX_TYPE, &other));
	names_are_the_same("it", "soft", NULL);
}

static void real_paths(void)
{
	char real[DIR_PATH_BYTES * 2], *should;
	ssize_t n = weft_realpath(OURS("two/../soft"), real, sizeof(real));

	should = realpath(OURS("two/../soft"), NULL);
	if (!should) {
		ck_assert_int_eq(n, result_of(-1));
		return;
	}
	ck_assert_int_eq(n, (ssize_t)strlen(should));
	ck_assert_str_eq(real, should);
	ck_assert_int_eq(weft_realpath(OURS("soft"), real, (size_t)n),
			 -ERANGE);
	ck_assert_str_eq(real, should);
	ck_assert_int_eq(weft_realpath(OURS("no"), real, sizeof(real)),
			 -ENOENT);
	free(should);
}

IO_TEST(calls_do_what_the_c_library_does)
{
	for (int i = 0; i < DIR_PLACES; i++) {
		if (!same_begin(dir_places[i]))
			continue;
		makes_and_removes();
		changes();
		file_make("file");
		real_paths();
		same_end();
	}
	return 0;
}

/* ---- A directory of a test's own ----------------------------------------- */

static char top[DIR_PATH_BYTES];
static int top_fd;

static void top_open(void)
{
	ck_assert(dir_new("/tmp", top));
	top_fd = dir_open(top);
}

static void top_end(void)
{
	close(top_fd);
	dir_end(top);
}

/* The manual promises these, whatever the C library does. */
IO_TEST(mistakes_have_the_errors_of_the_manual)
{
	top_open();
	ck_assert_int_eq(mknodat(top_fd, "file", S_IFREG | 0600, 0), 0);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "dir/in", 0700, 0), 0);
	ck_assert_int_eq(weft_mkdirat(top_fd, "dir", 0700), -EEXIST);
	ck_assert_int_eq(weft_mkdir(in(top, "file"), 0700), -EEXIST);
	ck_assert_int_eq(weft_linkat(top_fd, "file", top_fd, "dir", 0),
			 -EEXIST);
	ck_assert_int_eq(weft_symlinkat("x", top_fd, "file"), -EEXIST);
	ck_assert_int_eq(weft_renameat2(top_fd, "file", top_fd, "dir",
					RENAME_NOREPLACE),
			 -EEXIST);
	ck_assert_int_eq(weft_unlink(in(top, "dir")), -EISDIR);
	ck_assert_int_eq(weft_unlinkat(top_fd, "dir", 0), -EISDIR);
	ck_assert_int_eq(weft_rmdir(in(top, "dir")), -ENOTEMPTY);
	ck_assert_int_eq(weft_unlinkat(top_fd, "dir", AT_REMOVEDIR),
			 -ENOTEMPTY);
	ck_assert_int_eq(weft_rmdir(in(top, "file")), -ENOTDIR);
	ck_assert_int_eq(weft_mkdirat(top_fd, "file/x", 0700), -ENOTDIR);
	top_end();
	return 0;
}

IO_TEST(null_is_efault)
{
	const char *name;
	struct statx status;
	char buf[8];

	ck_assert_int_eq(weft_unlink(NULL), -EFAULT);
	ck_assert_int_eq(weft_rename(NULL, "x"), -EFAULT);
	ck_assert_int_eq(weft_mkdir(NULL, 0), -EFAULT);
	ck_assert_int_eq(weft_mkdir_all(AT_FDCWD, NULL, 0, 0), -EFAULT);
	ck_assert_int_eq(weft_open_parent(AT_FDCWD, NULL, 0, &name), -EFAULT);
	ck_assert_int_eq(weft_open_parent(AT_FDCWD, "/x", 0, NULL), -EFAULT);
	ck_assert_int_eq(weft_statx(AT_FDCWD, NULL, 0, 0, &status), -EFAULT);
	ck_assert_int_eq(weft_statx(AT_FDCWD, "/", 0, 0, NULL), -EFAULT);
	ck_assert_int_eq(weft_faccessat(AT_FDCWD, NULL, 0, 0), -EFAULT);
	ck_assert_int_eq(weft_fchmodat(AT_FDCWD, NULL, 0, 0), -EFAULT);
	ck_assert_int_eq(weft_fchownat(AT_FDCWD, NULL, 0, 0, 0), -EFAULT);
	ck_assert_int_eq(weft_utimensat(0, NULL, NULL, 0), -EFAULT);
	ck_assert_int_eq(weft_truncate(NULL, 0), -EFAULT);
	ck_assert_int_eq(weft_realpath(NULL, buf, 8), -EFAULT);
	ck_assert_int_eq(weft_realpath("/", NULL, 8), -EFAULT);
	ck_assert_int_eq(weft_readlinkat(AT_FDCWD, NULL, buf, 8), -EFAULT);
	ck_assert_int_eq(weft_getxattr(NULL, "user.a", buf, 8), -EFAULT);
	ck_assert_int_eq(weft_lgetxattr(NULL, "user.a", buf, 8), -EFAULT);
	return 0;
}

/* ---- Chains of directories ----------------------------------------------- */

static bool is_dir(const char *path)
{
	struct stat st;

	return fstatat(top_fd, path, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

IO_TEST(chain_is_made_as_by_mkdir_p)
{
	char name[NAME_MAX + 2];

	top_open();
	ck_assert_int_eq(weft_mkdir_all(top_fd, "a/b//./c/", 0700, 0), 0);
	ck_assert(is_dir("a/b/c"));
	ck_assert_int_eq(weft_mkdir_all(top_fd, "a/b/c", 0700, 0), 0);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "a/../d", 0700, 0), 0);
	ck_assert(is_dir("d"));
	ck_assert_int_eq(weft_mkdir_all(AT_FDCWD, in(top, "e/f"), 0700, 0), 0);
	ck_assert(is_dir("e/f"));
	ck_assert_int_eq(weft_mkdir_all(AT_FDCWD, "/", 0700, 0), 0);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "", 0700, 0), -ENOENT);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "g", 0700, RESOLVE_IN_ROOT),
			 -EINVAL);
	memset(name, 'n', sizeof(name) - 1);
	name[NAME_MAX + 1] = 0;
	ck_assert_int_eq(weft_mkdir_all(top_fd, name, 0700, 0), -ENAMETOOLONG);
	name[NAME_MAX] = 0;
	ck_assert_int_eq(weft_mkdir_all(top_fd, name, 0700, 0), 0);
	ck_assert_int_eq(weft_mkdir_all(-1, "h", 0700, 0), -EBADF);

	ck_assert_int_eq(mknodat(top_fd, "file", S_IFREG | 0600, 0), 0);
	ck_assert_int_eq(symlinkat("d", top_fd, "link"), 0);
	ck_assert_int_eq(symlinkat("nowhere", top_fd, "loose"), 0);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "file", 0700, 0), -ENOTDIR);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "file/x", 0700, 0), -ENOTDIR);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "loose/x", 0700, 0), -ENOENT);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "link/x", 0700, 0), 0);
	ck_assert(is_dir("d/x"));
	top_end();
	return 0;
}

IO_TEST(chain_stays_beneath)
{
	top_open();
	ck_assert_int_eq(symlinkat("/", top_fd, "root"), 0);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "a/b", 0700, RESOLVE_BENEATH),
			 0);
	ck_assert(is_dir("a/b"));
	ck_assert_int_eq(weft_mkdir_all(top_fd, "a/../b", 0700,
					RESOLVE_BENEATH),
			 -EXDEV);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "/tmp", 0700, RESOLVE_BENEATH),
			 -EXDEV);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "root/tmp", 0700,
					RESOLVE_BENEATH),
			 -EXDEV);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "root/tmp", 0700,
					RESOLVE_NO_SYMLINKS),
			 -ELOOP);
	top_end();
	return 0;
}

/* All of them make the same chains, in the same order. */
static int64_t make_chains(void *arg)
{
	char path[64];

	(void)arg;
	for (int i = 0; i < 30; i++) {
		snprintf(path, sizeof(path), "%d/a/b/c/d/e", i);
		ck_assert_int_eq(weft_mkdir_all(top_fd, path, 0700, 0), 0);
	}
	return 0;
}

IO_TEST(makers_of_one_chain_all_succeed)
{
	top_open();
	WEFT_SCOPE (scope, NULL)
		for (int i = 0; i < 8; i++)
			ck_assert_int_eq(weft_go(scope, make_chains, NULL, 0),
					 0);
	ck_assert(is_dir("29/a/b/c/d/e"));
	top_end();
	return 0;
}

/* Directly after the directory is made it makes way for a link. */
static bool swaps;

long __real_weft__syscall_any(long number, const long words[6]);
long __wrap_weft__syscall_any(long number, const long words[6]);

long __wrap_weft__syscall_any(long number, const long words[6])
{
	long r = __real_weft__syscall_any(number, words);

	if (swaps && number == SYS_mkdirat && r == 0 &&
	    strcmp((const char *)(uintptr_t)words[1], "a") == 0) {
		EXPECT(unlinkat(top_fd, "a", AT_REMOVEDIR) == 0);
		EXPECT(symlinkat("other", top_fd, "a") == 0);
	}
	return r;
}

IO_TEST(chain_does_not_follow_a_link_that_is_swapped_in)
{
	top_open();
	ck_assert_int_eq(mkdirat(top_fd, "other", 0700), 0);
	swaps = true;
	ck_assert_int_eq(weft_mkdir_all(top_fd, "a/b", 0700, 0), -ENOTDIR);
	ck_assert(!is_dir("other/b"));
	/* A link that was there before is followed. */
	ck_assert_int_eq(weft_mkdir_all(top_fd, "a/b", 0700, 0), 0);
	ck_assert(is_dir("other/b"));
	swaps = false;
	top_end();
	return 0;
}

/* ---- Names beneath a directory ------------------------------------------- */

static int parent_of(const char *path, const char *last)
{
	const char *name = NULL;
	int fd = weft_open_parent(top_fd, path, RESOLVE_BENEATH, &name);

	if (fd < 0) {
		ck_assert_ptr_null(name);
		return fd;
	}
	ck_assert_str_eq(name, last);
	ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(weft_unlinkat(fd, name, AT_REMOVEDIR), 0);
	return weft_close(fd);
}

static weft__atomic(bool) renames_end;

static void *rename_for_ever(void *arg)
{
	(void)arg;
	/* relaxed: nothing else is read. */
	while (!weft__load(&renames_end, relaxed)) {
		EXPECT(renameat(top_fd, "x", top_fd, "y") == 0);
		EXPECT(renameat(top_fd, "y", top_fd, "x") == 0);
	}
	return NULL;
}

/* The kernel's own call, which may fail so. */
static int open_beneath(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH };

	return (int)syscall(SYS_openat2, top_fd, "a/../a", &how, sizeof(how));
}

static int open_beneath_by_weft(int way)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY,
				.resolve = RESOLVE_BENEATH };
	const char *name;

	return way ? weft_open_parent(top_fd, "a/../a/b", RESOLVE_BENEATH,
				      &name) :
		     weft_openat2(top_fd, "a/../a", &how, sizeof(how));
}

/* It gives up when any file is renamed meanwhile.  As many opens of weft's
 * are made as it takes until that has happened often, or a number of them. */
IO_TEST(renames_elsewhere_fail_no_open_beneath)
{
	pthread_t thread;
	int failed = 0;

	top_open();
	ck_assert_int_eq(mkdirat(top_fd, "a", 0700), 0);
	ck_assert_int_eq(mknodat(top_fd, "x", S_IFREG | 0600, 0), 0);
	/* relaxed: before the thread is started. */
	weft__store(&renames_end, false, relaxed);
	ck_assert_int_eq(
		pthread_create(&thread, NULL, rename_for_ever, NULL), 0);
	for (int i = 0; i < 20000 && failed < 40; i++) {
		int theirs_fd = open_beneath();
		int fd = open_beneath_by_weft(i & 1);

		failed += theirs_fd < 0;
		close(theirs_fd);
		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(weft_close(fd), 0);
	}
	/* relaxed: nothing else is read. */
	weft__store(&renames_end, true, relaxed);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	top_end();
	return 0;
}

IO_TEST(parent_is_beneath)
{
	top_open();
	ck_assert_int_eq(weft_mkdir_all(top_fd, "a/b/c", 0700, 0), 0);
	ck_assert_int_eq(symlinkat("/tmp", top_fd, "a/tmp"), 0);
	ck_assert_int_eq(parent_of("a/tmp/x", NULL), -EXDEV);
	ck_assert_int_eq(parent_of("../x", NULL), -EXDEV);
	ck_assert_int_eq(parent_of("/tmp", NULL), -EXDEV);
	ck_assert_int_eq(parent_of("a/no/x", NULL), -ENOENT);
	ck_assert_int_eq(parent_of("", NULL), -ENOENT);
	ck_assert_int_eq(parent_of("a/b/", NULL), -EINVAL);
	ck_assert_int_eq(parent_of("a/.", NULL), -EINVAL);
	ck_assert_int_eq(parent_of("a/..", NULL), -EINVAL);
	ck_assert_int_eq(parent_of("a/b/c", "c"), 0);
	ck_assert_int_eq(parent_of("a/../a/b", "b"), 0);
	ck_assert_int_eq(unlinkat(top_fd, "a/tmp", 0), 0);
	ck_assert_int_eq(parent_of("a", "a"), 0);
	top_end();
	return 0;
}

/* ---- Interruption, and no thread ----------------------------------------- */

static int64_t make_late(void *arg)
{
	struct weft_replace replace;
	struct weft_temp temp;
	int r = weft_mkdir_all(top_fd, "late", 0700, 0);

	(void)arg;
	ck_assert_int_eq(weft_temp_open(&temp, top_fd, ".", 0600), -ECANCELED);
	ck_assert_int_eq(weft_replace_begin(&replace, top_fd, "late", NULL),
			 -ECANCELED);
	ck_assert_int_eq(weft_replace_file(top_fd, "late", "x", 1, NULL),
			 -ECANCELED);
	return r;
}

/* The pool's only thread is taken. */
POOL_TEST(call_that_waits_for_a_thread_is_interrupted, 1, 0)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct gate gate = { .open = 0 };
	struct weft_task task;
	int64_t result = 0, passed;
	int r = 1;

	top_open();
	opts.ret_task = &task;
	WEFT_SCOPE (scope, NULL) {
		pass_start(scope, &gate, NULL, &passed);
		wait_until(weft__load(&gate.inside, acquire) == 1);
		WEFT_WITHIN (WEFT_MS(1))
			r = weft_mkdir_all(top_fd, "late", 0700, 0);
		ck_assert_int_eq(r, -ETIMEDOUT);
		WEFT_SUPERVISE (inner) {
			ck_assert_int_eq(weft_go_opts(inner, make_late, NULL, 0,
						      &opts),
					 0);
			wait_until(pool_stats().queued == 1);
			weft_cancel(task);
			ck_assert_int_eq(weft_join(task, &result), 0);
		}
		ck_assert_int_eq(result, -ECANCELED);
		gate_open(&gate);
	}
	ck_assert_int_eq(passed, 7);
	ck_assert(!is_dir("late"));
	top_end();
	return 0;
}

IO_TEST(without_a_thread_the_worker_makes_the_call)
{
	top_open();
	refuse_threads();
	ck_assert_int_eq(weft_mkdirat(top_fd, "a", 0700), 0);
	ck_assert_int_eq(weft_mkdir_all(top_fd, "b/c/d", 0700, 0), 0);
	ck_assert(is_dir("a") && is_dir("b/c/d"));
	top_end();
	return 0;
}

START_TEST(outside_of_a_task_is_eperm)
{
	const char *name;

	ck_assert_int_eq(weft_unlink("/no/such"), -EPERM);
	ck_assert_int_eq(weft_mkdir_all(AT_FDCWD, "/", 0, 0), -EPERM);
	ck_assert_int_eq(weft_open_parent(AT_FDCWD, "/x", 0, &name), -EPERM);
	ck_assert_int_eq(weft_statx(AT_FDCWD, NULL, 0, 0, NULL), -EPERM);
	ck_assert_int_eq(weft_realpath(NULL, NULL, 0), -EPERM);
	ck_assert_int_eq(weft_fgetxattr(0, "user.a", NULL, 0), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/path");
	TCase *calls = tcase_create("calls");

	tcase_set_timeout(calls, 60);
	io_add_test(calls, calls_do_what_the_c_library_does);
	io_add_test(calls, mistakes_have_the_errors_of_the_manual);
	io_add_test(calls, null_is_efault);
	io_add_test(calls, chain_is_made_as_by_mkdir_p);
	io_add_test(calls, chain_stays_beneath);
	io_add_test(calls, makers_of_one_chain_all_succeed);
	io_add_test(calls, chain_does_not_follow_a_link_that_is_swapped_in);
	io_add_test(calls, parent_is_beneath);
	io_add_test(calls, renames_elsewhere_fail_no_open_beneath);
	io_add_test(calls, call_that_waits_for_a_thread_is_interrupted);
	if (HAS_FILTERS)
		io_add_test(calls, without_a_thread_the_worker_makes_the_call);
	tcase_add_test(calls, outside_of_a_task_is_eperm);
	suite_add_tcase(suite, calls);
	return io_tests_run(suite);
}
