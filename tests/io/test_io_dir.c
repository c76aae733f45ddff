/* SPDX-License-Identifier: MIT */
/*
 * Reading directories: the names, inodes and types that readdir(3) finds, in
 * as few jobs as the buffer allows; names of any bytes; errors, interruption,
 * and descriptors.
 */
#include <limits.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include "tests/support/blocking_scene.h"
#include "tests/support/dir_kit.h"

enum { MANY = 900 };

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

static void name_of(int number, char name[NAME_MAX + 1])
{
	/* From 5 bytes to 255. */
	int length = 5 + number % 251;

	memset(name, 'n', (size_t)length);
	name[length] = 0;
	name[snprintf(name, 6, "%05d", number)] = length > 5 ? 'n' : 0;
}

static void fill(int count)
{
	char name[NAME_MAX + 1];

	for (int i = 0; i < count; i++) {
		name_of(i, name);
		ck_assert_int_eq(mknodat(top_fd, name, S_IFREG | 0600, 0), 0);
	}
}

static uint64_t jobs_done(void)
{
	return pool_stats().done;
}

/* Reads all; counts each name of fill() in seen. */
static int read_all(struct weft_dir *dir, unsigned char *seen)
{
	struct weft_dir_entry entry;
	char name[NAME_MAX + 1];
	struct stat st;
	int r, count = 0;

	while ((r = weft_dir_next(dir, &entry)) == 1) {
		int number = atoi(entry.name);

		name_of(number, name);
		ck_assert_str_eq(entry.name, name);
		ck_assert_uint_eq(entry.name_bytes, strlen(name));
		if (count % 100 == 0) {
			ck_assert_int_eq(fstatat(top_fd, name, &st, 0), 0);
			ck_assert_uint_eq(entry.inode, st.st_ino);
		}
		ck_assert(entry.type == DT_REG || entry.type == DT_UNKNOWN);
		seen[number]++;
		count++;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(weft_dir_next(dir, &entry), 0);
	return count;
}

IO_TEST(all_names_come_once_in_few_jobs)
{
	for (int i = 0; i < DIR_PLACES; i++) {
		unsigned char seen[MANY] = { 0 };
		struct weft_dir dir;
		uint64_t before;

		if (access(dir_places[i], W_OK) < 0)
			continue;
		top_open(dir_places[i]);
		fill(MANY);
		ck_assert_int_eq(weft_dir_open(&dir, AT_FDCWD, top), 0);
		ck_assert_int_eq(fcntl(dir.fd, F_GETFD), FD_CLOEXEC);
		before = jobs_done();
		ck_assert_int_eq(read_all(&dir, seen), MANY);
		/* A name takes 24 bytes and 130 on average. */
		ck_assert_uint_le(jobs_done() - before, MANY * 160 / 30000 + 4);
		ck_assert_int_eq(weft_dir_close(&dir), 0);
		for (int n = 0; n < MANY; n++)
			ck_assert_uint_eq(seen[n], 1);
		top_end();
	}
	return 0;
}

/* As a file system that gives the names of a block, which are longer than any
 * file system's here. */
static bool names_are_long;
static int einvals;

long __real_weft__syscall_any(long number, const long words[6]);
long __wrap_weft__syscall_any(long number, const long words[6]);

long __wrap_weft__syscall_any(long number, const long words[6])
{
	enum { WHOLE = 32 << 10, BLOCK = 4096 };
	const long block[6] = { words[0], words[1], BLOCK };

	if (number != SYS_getdents64 || !names_are_long)
		return __real_weft__syscall_any(number, words);
	if (words[2] == WHOLE)
		return __real_weft__syscall_any(number, block);
	einvals++;
	return -EINVAL;
}

IO_TEST(name_that_has_no_room_behind_others_comes_next)
{
	unsigned char seen[MANY] = { 0 };
	struct weft_dir dir;

	top_open("/tmp");
	fill(MANY);
	names_are_long = true;
	einvals = 0;
	ck_assert_int_eq(weft_dir_open(&dir, AT_FDCWD, top), 0);
	ck_assert_int_eq(read_all(&dir, seen), MANY);
	ck_assert_int_eq(weft_dir_close(&dir), 0);
	ck_assert_int_gt(einvals, 0);
	names_are_long = false;
	top_end();
	return 0;
}

/* With its end. */
IO_TEST(small_directory_takes_one_job)
{
	unsigned char seen[20] = { 0 };
	struct weft_dir dir;
	uint64_t before;

	top_open("/tmp");
	fill(20);
	ck_assert_int_eq(weft_dir_open(&dir, AT_FDCWD, top), 0);
	before = jobs_done();
	ck_assert_int_eq(read_all(&dir, seen), 20);
	ck_assert_uint_eq(jobs_done() - before, 1);
	ck_assert_int_eq(weft_dir_close(&dir), 0);
	top_end();
	return 0;
}

static bool has(int dir_fd, const char *path, const char *name, int type)
{
	struct weft_dir_entry entry;
	struct weft_dir dir;
	bool found = false;
	int r;

	ck_assert_int_eq(weft_dir_open(&dir, dir_fd, path), 0);
	while ((r = weft_dir_next(&dir, &entry)) == 1)
		found |= strcmp(entry.name, name) == 0 &&
			 (entry.type == type || entry.type == DT_UNKNOWN);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(weft_dir_close(&dir), 0);
	return found;
}

IO_TEST(names_are_bytes_and_types_are_known)
{
	static const char *const names[] = { "new\nline", "\xff\xfe", "...",
					     "..x", ".", "a b" };
	struct { const char *name; mode_t mode; int type; } kinds[] = {
		{ "fifo", S_IFIFO, DT_FIFO },
		{ "socket", S_IFSOCK, DT_SOCK },
		{ "file", S_IFREG, DT_REG },
	};

	top_open("/tmp");
	for (int i = 0; i < 6; i++)
		if (strcmp(names[i], ".") != 0)
			ck_assert_int_eq(mknodat(top_fd, names[i],
						 S_IFREG | 0600, 0),
					 0);
	for (int i = 0; i < 6; i++)
		ck_assert(has(AT_FDCWD, top, names[i], DT_REG) ==
			  (strcmp(names[i], ".") != 0));
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(mknodat(top_fd, kinds[i].name,
					 kinds[i].mode | 0600, 0),
				 0);
		ck_assert(has(top_fd, ".", kinds[i].name, kinds[i].type));
	}
	ck_assert_int_eq(mkdirat(top_fd, "dir", 0700), 0);
	ck_assert_int_eq(symlinkat("dir", top_fd, "link"), 0);
	ck_assert(has(top_fd, ".", "dir", DT_DIR));
	ck_assert(has(top_fd, ".", "link", DT_LNK));
	ck_assert(!has(top_fd, "link", ".", DT_DIR));
	ck_assert(!has(top_fd, "dir", "..", DT_DIR));
	top_end();
	return 0;
}

IO_TEST(failures_are_those_of_the_kernel)
{
	struct weft_dir_entry entry;
	struct weft_dir dir;
	int fd;

	top_open("/tmp");
	fill(1);
	ck_assert_int_eq(weft_dir_open(&dir, top_fd, "no"), -ENOENT);
	ck_assert_int_eq(weft_dir_close(&dir), 0);
	ck_assert_int_eq(weft_dir_open(&dir, top_fd, "00000"), -ENOTDIR);
	ck_assert_int_eq(weft_dir_open(&dir, -1, "x"), -EBADF);
	ck_assert_int_eq(weft_dir_open(&dir, top_fd, NULL), -EFAULT);
	ck_assert_int_eq(weft_dir_next(&dir, &entry), -EBADF);

	/* Of a directory that is removed. */
	ck_assert_int_eq(mkdirat(top_fd, "gone", 0700), 0);
	ck_assert_int_eq(weft_dir_open(&dir, top_fd, "gone"), 0);
	ck_assert_int_eq(unlinkat(top_fd, "gone", AT_REMOVEDIR), 0);
	ck_assert_int_eq(weft_dir_next(&dir, NULL), -EFAULT);
	ck_assert_int_eq(weft_dir_next(&dir, &entry), -ENOENT);
	ck_assert_int_eq(weft_dir_close(&dir), 0);
	ck_assert_int_eq(weft_dir_close(&dir), 0);

	/* A descriptor that is no directory's. */
	fd = openat(top_fd, "00000", O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(weft_dir_init(&dir, fd), 0);
	ck_assert_int_eq(weft_dir_next(&dir, &entry), -ENOTDIR);
	ck_assert_int_eq(weft_dir_close(&dir), 0);
	ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
	top_end();
	return 0;
}

/* An interruption is noticed where the next batch would be read, and loses no
 * name. */
IO_TEST(interrupted_reading_goes_on)
{
	unsigned char seen[MANY] = { 0 };
	struct weft_dir_entry entry;
	struct weft_dir dir;
	int r = 1, count = 0;

	top_open("/tmp");
	fill(600);
	ck_assert_int_eq(weft_dir_open(&dir, AT_FDCWD, top), 0);
	WEFT_WITHIN (0) {
		deadline_pass();
		r = weft_dir_next(&dir, &entry);
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_eq(weft_dir_next(&dir, &entry), 1);
	seen[atoi(entry.name)]++;
	WEFT_WITHIN (0) {
		deadline_pass();
		while ((r = weft_dir_next(&dir, &entry)) == 1) {
			seen[atoi(entry.name)]++;
			count++;
		}
	}
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_gt(count, 10);
	ck_assert_int_lt(count, 600);
	read_all(&dir, seen);
	for (int i = 0; i < 600; i++)
		ck_assert_uint_eq(seen[i], 1);
	WEFT_WITHIN (0) {
		deadline_pass();
		r = weft_dir_close(&dir);
	}
	ck_assert_int_eq(r, 0);
	top_end();
	return 0;
}

START_TEST(outside_of_a_task_is_eperm)
{
	struct weft_dir dir = { .fd = 0 };

	ck_assert_int_eq(weft_dir_close(&dir), -EPERM);
	ck_assert_int_ge(fcntl(0, F_GETFD), 0);
	ck_assert_int_eq(weft_dir_init(&dir, 0), -EPERM);
	ck_assert_int_eq(weft_dir_open(&dir, AT_FDCWD, "/"), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/dir");
	TCase *reading = tcase_create("reading");

	tcase_set_timeout(reading, 60);
	io_add_test(reading, all_names_come_once_in_few_jobs);
	io_add_test(reading, name_that_has_no_room_behind_others_comes_next);
	io_add_test(reading, small_directory_takes_one_job);
	io_add_test(reading, names_are_bytes_and_types_are_known);
	io_add_test(reading, failures_are_those_of_the_kernel);
	io_add_test(reading, interrupted_reading_goes_on);
	tcase_add_test(reading, outside_of_a_task_is_eperm);
	suite_add_tcase(suite, reading);
	return io_tests_run(suite);
}
