/* SPDX-License-Identifier: MIT */
/*
 * Temporary files, and files that are replaced as a whole: a process that is
 * killed at any of their system calls, or at any moment, leaves the old file or
 * the new one; each call that fails leaves the old one, and nothing else.
 * WEFT_MASK=tmpfile stands for a file system without O_TMPFILE.
 */
#include <limits.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "io/os/mask.h"
#include "io/os/syscall.h"
#include "tests/support/child_kit.h"
#include "tests/support/dir_kit.h"
#include "tests/support/needs.h"

static char top[DIR_PATH_BYTES];
static int top_fd;

static void top_open(const char *place)
{
	ck_assert(dir_new(place, top));
	top_fd = dir_open(top);
}

static void top_end(void)
{
	close(top_fd);
	dir_end(top);
}

static const char *in_top(const char *name)
{
	static char path[2 * DIR_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

/* How the library makes temporary files: the second way has names. */
static void way_set(int way)
{
	setenv("WEFT_MASK", way ? "tmpfile" : "", 1);
	ck_assert_int_eq(weft__mask_read(), 0);
}

/* ---- System calls that fail, or are the last ----------------------------- */

/* The first is 1; 0: none. */
static int kill_at, fail_at, calls;

long __real_weft__syscall_any(long number, const long words[6]);
long __wrap_weft__syscall_any(long number, const long words[6]);

long __wrap_weft__syscall_any(long number, const long words[6])
{
	calls++;
	if (calls == kill_at)
		raise(SIGKILL);
	/* A name whose removal fails stays, of course. */
	if (calls == fail_at && number != SYS_unlinkat)
		return -EIO;
	return __real_weft__syscall_any(number, words);
}

/* ---- Temporary files ----------------------------------------------------- */

static void content_is(const char *name, const char *text)
{
	char buf[100] = { 0 };
	int fd = openat(top_fd, name, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(read(fd, buf, sizeof(buf) - 1), 0);
	ck_assert_str_eq(buf, text);
	close(fd);
}

/* Are there files without names, where they are not masked? */
static bool has_unnamed(void)
{
	int fd = open(top, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void temp_lives(int way)
{
	struct weft_temp temp, other;
	struct stat st;
	int names;

	way_set(way);
	top_open("/var/tmp");
	ck_assert_int_eq(weft_temp_open(&temp, AT_FDCWD, top, 0640), 0);
	ck_assert_int_eq(fcntl(temp.fd, F_GETFD), FD_CLOEXEC);
	ck_assert_int_eq(weft_write_all(temp.fd, "text", 4, NULL), 0);
	names = way || !has_unnamed();
	ck_assert_int_eq(dir_names(top, ""), names);
	ck_assert_int_eq(dir_names(top, ".weft-"), dir_names(top, ""));
	ck_assert_int_eq(weft_temp_open(&other, top_fd, ".", 0600), 0);
	ck_assert_int_eq(weft_temp_close(&other), 0);
	ck_assert_int_eq(weft_temp_close(&other), 0);

	ck_assert_int_eq(mknodat(top_fd, "there", S_IFREG | 0600, 0), 0);
	ck_assert_int_eq(weft_temp_link(&temp, top_fd, NULL), -EFAULT);
	ck_assert_int_eq(weft_temp_link(&temp, top_fd, "there"), -EEXIST);
	ck_assert_int_eq(weft_temp_link(&temp, top_fd, "no/x"), -ENOENT);
	ck_assert_int_eq(weft_temp_link(&temp, top_fd, "new"), 0);
	ck_assert_int_eq(weft_temp_link(&temp, top_fd, "newer"), -EINVAL);
	content_is("new", "text");
	ck_assert_int_eq(fstatat(top_fd, "new", &st, 0), 0);
	ck_assert_uint_eq(st.st_nlink, 1);
	ck_assert_int_eq(weft_temp_close(&temp), 0);
	ck_assert_int_eq(weft_temp_link(&temp, top_fd, "newer"), -EINVAL);
	content_is("new", "text");
	ck_assert_int_eq(dir_names(top, ""), 2);
	top_end();
}

IO_TEST(temporary_file_is_gone_or_has_the_name_it_got)
{
	temp_lives(0);
	temp_lives(1);
	return 0;
}

IO_TEST(temporary_file_that_cannot_be_made_is_an_error)
{
	struct weft_temp temp;
	int r = 1;

	top_open("/tmp");
	ck_assert_int_eq(mknodat(top_fd, "file", S_IFREG | 0600, 0), 0);
	ck_assert_int_eq(weft_temp_open(&temp, top_fd, "file", 0600), -ENOTDIR);
	ck_assert_int_eq(weft_temp_open(&temp, top_fd, "no", 0600), -ENOENT);
	ck_assert_int_eq(weft_temp_open(&temp, top_fd, NULL, 0600), -EFAULT);
	ck_assert_int_eq(weft_temp_open(&temp, -1, ".", 0600), -EBADF);
	WEFT_WITHIN (0) {
		deadline_pass();
		r = weft_temp_open(&temp, top_fd, ".", 0600);
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_eq(weft_temp_close(&temp), 0);
	for (int way = 0; way < 2; way++) {
		way_set(way);
		ck_assert_int_eq(weft_temp_open(&temp, top_fd, ".", 0600), 0);
		WEFT_WITHIN (0) {
			deadline_pass();
			r = weft_temp_link(&temp, top_fd, "late");
			ck_assert_int_eq(weft_temp_close(&temp), 0);
		}
		ck_assert_int_eq(r, -ETIMEDOUT);
		ck_assert_int_eq(dir_names(top, ""), 1);
	}
	top_end();
	return 0;
}

/* ---- Replacing ----------------------------------------------------------- */

/* By one call, or by three. */
static int replace(int dir_fd, const char *path, const char *text,
		   const struct weft_replace_opts *opts, bool by_steps)
{
	struct weft_replace new_file;
	int r;

	if (!by_steps)
		return weft_replace_file(dir_fd, path, text, strlen(text),
					 opts);
	r = weft_replace_begin(&new_file, dir_fd, path, opts);
	if (r < 0)
		return r;
	r = weft_write_all(new_file.fd, text, strlen(text), NULL);
	if (r == 0)
		r = weft_replace_commit(&new_file);
	ck_assert_int_eq(weft_replace_abort(&new_file), 0);
	return r;
}

static mode_t mode_of(const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(top_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode;
}

static void replaces(bool by_steps)
{
	struct weft_replace_opts opts = WEFT_REPLACE_OPTS_INIT;
	struct weft_replace aborted;
	mode_t mask = umask(022);

	umask(mask);
	top_open("/var/tmp");
	ck_assert_int_eq(replace(top_fd, "it", "one", NULL, by_steps), 0);
	content_is("it", "one");
	ck_assert_uint_eq(mode_of("it"), S_IFREG | (0666 & ~mask));
	opts.mode = 0600;
	ck_assert_int_eq(replace(AT_FDCWD, in_top("it"), "two", &opts,
				 by_steps),
			 0);
	content_is("it", "two");
	ck_assert_uint_eq(mode_of("it"), S_IFREG | 0600);
	ck_assert_int_eq(fchmodat(top_fd, "it", 04751, 0), 0);
	opts.flags = WEFT_REPLACE_KEEP | WEFT_REPLACE_NO_SYNC;
	ck_assert_int_eq(replace(top_fd, "it", "three", &opts, by_steps), 0);
	content_is("it", "three");
	ck_assert_uint_eq(mode_of("it"), S_IFREG | 04751);
	/* A link is replaced itself. */
	ck_assert_int_eq(symlinkat("it", top_fd, "link"), 0);
	ck_assert_int_eq(replace(top_fd, "link", "four", &opts, by_steps), 0);
	content_is("it", "three");
	ck_assert_uint_eq(mode_of("link"), S_IFREG | 0600);
	ck_assert_int_eq(weft_replace_begin(&aborted, top_fd, "it", NULL), 0);
	ck_assert_int_eq(weft_replace_abort(&aborted), 0);
	ck_assert_int_eq(weft_replace_abort(&aborted), 0);
	ck_assert_int_eq(weft_replace_commit(&aborted), -EINVAL);
	content_is("it", "three");
	ck_assert_int_eq(dir_names(top, ""), 2);
	top_end();
}

IO_TEST(file_is_replaced)
{
	for (int i = 0; i < 4; i++) {
		way_set(i & 1);
		replaces(i & 2);
	}
	return 0;
}

/* By a user who is not root: root's writes clear no bits. */
static int64_t keep_modes(void *arg)
{
	struct weft_replace_opts opts = WEFT_REPLACE_OPTS_INIT;

	opts.flags = WEFT_REPLACE_KEEP | WEFT_REPLACE_NO_SYNC;
	NEED(mknodat(top_fd, "own", S_IFREG | 0600, 0) == 0);
	for (int i = 0; i < 4; i++) {
		way_set(i & 1);
		NEED(fchmodat(top_fd, "own", 06751, 0) == 0);
		NEED(replace(top_fd, "own", "new", &opts, i & 2) == 0);
		NEED(mode_of("own") == (S_IFREG | 06751));
	}
	if (*(bool *)arg) {
		NEED(replace(top_fd, "other", "new", &opts, false) == 0);
		NEED(mode_of("other") == (S_IFREG | 0604));
	}
	return 0;
}

static bool other_make(void)
{
	return geteuid() == 0 && fchmod(top_fd, 0777) == 0 &&
	       mknodat(top_fd, "other", S_IFREG | 0600, 0) == 0 &&
	       fchownat(top_fd, "other", 0, 23456, 0) == 0 &&
	       fchmodat(top_fd, "other", 06674, 0) == 0;
}

static int64_t keep_modes_unprivileged(void *arg)
{
	NEED(become_unprivileged());
	return weft_run(keep_modes, arg, NULL);
}

START_TEST(kept_mode_is_that_of_the_owner_and_group)
{
	static const char name[] = "kept_mode_is_that_of_the_owner_and_group";
	bool has_group;

	if (!test_needs(test_can(become_unprivileged), name,
			NEEDS_ANOTHER_USER))
		return;
	top_open("/tmp");
	has_group = test_needs(other_make(), name, "a file of another group");
	child_run(keep_modes_unprivileged, &has_group);
	top_end();
}
END_TEST

static void is_refused(bool by_steps)
{
	struct weft_replace_opts opts = { 0 };
	char name[NAME_MAX + 2] = { 0 };

	top_open("/tmp");
	ck_assert_int_eq(mkdirat(top_fd, "dir", 0700), 0);
	ck_assert_int_eq(replace(top_fd, "it", "", &opts, by_steps), -EINVAL);
	opts = (struct weft_replace_opts)WEFT_REPLACE_OPTS_INIT;
	opts.flags = 1u << 9;
	ck_assert_int_eq(replace(top_fd, "it", "", &opts, by_steps), -EINVAL);
	ck_assert_int_eq(replace(top_fd, NULL, "", NULL, by_steps), -EFAULT);
	ck_assert_int_eq(replace(top_fd, "", "", NULL, by_steps), -ENOENT);
	ck_assert_int_eq(replace(top_fd, "dir/", "", NULL, by_steps), -EINVAL);
	ck_assert_int_eq(replace(top_fd, "..", "", NULL, by_steps), -EINVAL);
	ck_assert_int_eq(replace(top_fd, "no/it", "", NULL, by_steps),
			 -ENOENT);
	ck_assert_int_eq(replace(top_fd, "dir", "", NULL, by_steps), -EISDIR);
	memset(name, 'n', NAME_MAX + 1);
	ck_assert_int_eq(replace(top_fd, name, "", NULL, by_steps),
			 -ENAMETOOLONG);
	name[NAME_MAX] = 0;
	ck_assert_int_eq(replace(top_fd, name, "x", NULL, by_steps), 0);
	content_is(name, "x");
	ck_assert_int_eq(dir_names(top, ""), 2);
	top_end();
}

IO_TEST(wrong_replacement_is_refused)
{
	for (int i = 0; i < 4; i++) {
		way_set(i & 1);
		is_refused(i & 2);
	}
	ck_assert_int_eq(weft_replace_file(AT_FDCWD, "x", NULL, 1, NULL),
			 -EFAULT);
	return 0;
}

/* The old file stays, and can be replaced later. */
IO_TEST(interrupted_commit_can_be_made_again)
{
	struct weft_replace new_file;
	int r = 1;

	top_open("/tmp");
	ck_assert_int_eq(replace(top_fd, "it", "old", NULL, false), 0);
	ck_assert_int_eq(weft_replace_begin(&new_file, top_fd, "it", NULL), 0);
	ck_assert_int_eq(weft_write_all(new_file.fd, "new", 3, NULL), 0);
	WEFT_WITHIN (0) {
		deadline_pass();
		r = weft_replace_commit(&new_file);
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	content_is("it", "old");
	ck_assert_int_eq(weft_replace_commit(&new_file), 0);
	content_is("it", "new");
	ck_assert_int_eq(weft_replace_commit(&new_file), -EINVAL);
	top_end();
	return 0;
}

static bool has_content(const char *text)
{
	char buf[100] = { 0 };
	int fd = openat(top_fd, "it", O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_ge(read(fd, buf, sizeof(buf) - 1), 0);
	close(fd);
	return strcmp(buf, text) == 0;
}

/* Each system call in turn. */
IO_TEST(failed_step_leaves_the_old_file_and_nothing_else)
{
	struct weft_replace_opts opts = WEFT_REPLACE_OPTS_INIT;
	int r, failures = 0;

	opts.flags = WEFT_REPLACE_KEEP;
	top_open("/tmp");
	for (int i = 0; i < 4; i++) {
		way_set(i & 1);
		for (int at = 1; at < 30; at++) {
			ck_assert_int_eq(replace(top_fd, "it", "old", NULL,
						 false),
					 0);
			calls = 0, fail_at = at;
			r = replace(top_fd, "it", "new", &opts, i & 2);
			fail_at = 0;
			failures += r < 0;
			/* The sync of the directory comes last. */
			if (r < 0 && has_content("new"))
				ck_assert_int_eq(at, calls);
			else
				ck_assert(has_content(r < 0 ? "old" : "new"));
			ck_assert_int_eq(dir_names(top, ""), 1);
			if (calls < at)
				break;
		}
	}
	ck_assert_int_gt(failures, 20);
	top_end();
	return 0;
}

/* ---- Killed -------------------------------------------------------------- */

/* A file of version n: its bytes are all n, and their number depends on it.
 * Returns the version. */
static int version_of(const char *name)
{
	static unsigned char buf[1 << 17];
	int fd = openat(top_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	ck_assert_int_ge(fd, 0);
	n = read(fd, buf, sizeof(buf));
	close(fd);
	ck_assert_int_gt(n, 0);
	ck_assert_int_eq(n, 1000 + buf[0] * 300);
	for (ssize_t i = 1; i < n; i++)
		if (buf[i] != buf[0])
			ck_abort_msg("a mixture of %d and %d", buf[0], buf[i]);
	return buf[0];
}

struct killing {
	bool by_steps, syncs;
	int way, kill_at, first, count;
	weft__atomic(int) *done; /* the last version that is in its place */
};

static int version_write(const struct killing *killing, int version)
{
	static char data[1 << 17];
	struct weft_replace_opts opts = WEFT_REPLACE_OPTS_INIT;
	struct weft_replace new_file;
	size_t bytes = 1000 + (size_t)version * 300;
	int r;

	memset(data, version, bytes);
	if (!killing->syncs)
		opts.flags = WEFT_REPLACE_NO_SYNC;
	if (!killing->by_steps)
		return weft_replace_file(top_fd, "it", data, bytes, &opts);
	r = weft_replace_begin(&new_file, top_fd, "it", &opts);
	if (r < 0)
		return r;
	r = weft_write_all(new_file.fd, data, bytes, NULL);
	if (r == 0)
		r = weft_replace_commit(&new_file);
	(void)weft_replace_abort(&new_file);
	return r;
}

static int64_t write_versions(void *arg)
{
	const struct killing *killing = arg;

	calls = 0, kill_at = killing->kill_at;
	for (int i = 0; i < killing->count; i++) {
		int version = (killing->first + i) & 0xff;

		NEED(version_write(killing, version) == 0);
		weft__store(killing->done, version, release);
	}
	return 0;
}

static pid_t killing_start(struct killing *killing)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child > 0)
		return child;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	opts.workers = 1;
	way_set(killing->way);
	NEED(weft_run(write_versions, killing, &opts) == 0);
	_exit(0);
}

/* The file is whole, and beside it are only names that one knows. */
static int left_is_whole(const struct killing *killing)
{
	int version = version_of("it"), done = weft__load(killing->done,
							  acquire);

	ck_assert(version == done || version == ((done + 1) & 0xff));
	ck_assert_int_eq(dir_names(top, ".weft-") + 1, dir_names(top, ""));
	ck_assert_int_le(dir_names(top, ".weft-"), 1);
	dir_empty(dup(top_fd));
	return version;
}

static void killing_open(struct killing *killing, const char *place)
{
	top_open(place);
	killing->done = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(killing->done != MAP_FAILED);
}

/* Version 1 is there when version 2 is written. */
static void version_first(const struct killing *killing)
{
	static char data[1300];
	int fd = openat(top_fd, "it", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	memset(data, 1, sizeof(data));
	ck_assert_int_eq(write(fd, data, sizeof(data)), sizeof(data));
	close(fd);
	weft__store(killing->done, 1, release);
}

START_TEST(killed_at_any_system_call_it_leaves_a_whole_file)
{
	struct killing killing = {
		.way = _i & 1, .by_steps = _i & 2, .syncs = true,
		.first = 2, .count = 1,
	};
	int old = 0, status;

	killing_open(&killing, "/tmp");
	for (killing.kill_at = 1; killing.kill_at < 30; killing.kill_at++) {
		version_first(&killing);
		ck_assert_int_eq(waitpid(killing_start(&killing), &status, 0) >
					 0,
				 1);
		old += left_is_whole(&killing) == 1;
		if (!WIFSIGNALED(status))
			break;
		ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	}
	ck_assert_int_eq(status, 0);
	ck_assert_int_gt(killing.kill_at, 5);
	ck_assert_int_gt(old, 3);
	munmap((void *)killing.done, 4096);
	top_end();
}
END_TEST

START_TEST(killed_at_any_moment_it_leaves_a_whole_file)
{
	struct killing killing = { .first = 2, .count = 1 << 30 };
	unsigned random = 1;
	int status;

	killing_open(&killing, "/tmp");
	for (int i = 0; i < 24; i++) {
		pid_t child;

		killing.way = i & 1, killing.by_steps = i & 2;
		version_first(&killing);
		child = killing_start(&killing);
		while (weft__load(killing.done, acquire) == 1)
			thread_pause_ns(100000);
		random = random * 1103515245 + 12345;
		thread_pause_ns(random >> 8 & 0x3fffff);
		ck_assert_int_eq(kill(child, SIGKILL), 0);
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		ck_assert(WIFSIGNALED(status));
		left_is_whole(&killing);
	}
	munmap((void *)killing.done, 4096);
	top_end();
}
END_TEST

START_TEST(outside_of_a_task_is_eperm)
{
	struct weft_replace new_file;
	struct weft_temp temp;

	ck_assert_int_eq(weft_temp_open(&temp, AT_FDCWD, "/tmp", 0600), -EPERM);
	ck_assert_int_eq(weft_temp_close(&temp), -EPERM);
	ck_assert_int_eq(weft_replace_begin(&new_file, AT_FDCWD, "/x", NULL),
			 -EPERM);
	ck_assert_int_eq(weft_replace_commit(&new_file), -EPERM);
	ck_assert_int_eq(weft_replace_abort(&new_file), -EPERM);
	ck_assert_int_eq(weft_replace_file(AT_FDCWD, "/x", "", 0, NULL),
			 -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/replace");
	TCase *temp = tcase_create("temp"), *killed = tcase_create("killed");

	tcase_set_timeout(temp, 60);
	tcase_set_timeout(killed, 60);
	io_add_test(temp, temporary_file_is_gone_or_has_the_name_it_got);
	io_add_test(temp, temporary_file_that_cannot_be_made_is_an_error);
	io_add_test(temp, file_is_replaced);
	tcase_add_test(temp, kept_mode_is_that_of_the_owner_and_group);
	io_add_test(temp, wrong_replacement_is_refused);
	io_add_test(temp, interrupted_commit_can_be_made_again);
	io_add_test(temp, failed_step_leaves_the_old_file_and_nothing_else);
	tcase_add_test(temp, outside_of_a_task_is_eperm);
	tcase_add_loop_test(killed,
			    killed_at_any_system_call_it_leaves_a_whole_file, 0,
			    4);
	tcase_add_test(killed, killed_at_any_moment_it_leaves_a_whole_file);
	suite_add_tcase(suite, temp);
	suite_add_tcase(suite, killed);
	return io_tests_run(suite);
}
