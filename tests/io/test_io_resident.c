/* SPDX-License-Identifier: MIT */
/*
 * Pages that are in the page cache are believed to stay there for a moment, and
 * the kernel is asked anew after it.  The linker puts a function of the test in
 * the way of the look, so that looks can be counted.
 */
#include "io/resident.h"
#include "tests/support/page_cache.h"

enum { FILE_BYTES = 32 * PAGE + 100 };

static unsigned looks;

size_t __real_weft__look_resident(int fd, off_t offset, size_t bytes,
				  off_t file_bytes);
size_t __wrap_weft__look_resident(int fd, off_t offset, size_t bytes,
				  off_t file_bytes);

size_t __wrap_weft__look_resident(int fd, off_t offset, size_t bytes,
				  off_t file_bytes)
{
	looks++;
	return __real_weft__look_resident(fd, offset, bytes, file_bytes);
}

/* ---- A file on a disk, all of it in memory ------------------------------- */

static int fd;
static struct statx status;

static void file_new(void)
{
	static char bytes[FILE_BYTES];
	char name[] = "/var/tmp/weft-resident-XXXXXX";

	fd = mkostemp(name, O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	unlink(name);
	ck_assert_int_eq(write(fd, bytes, FILE_BYTES), FILE_BYTES);
	ck_assert_int_eq(fsync(fd), 0);
	ck_assert_int_eq(weft__look_fd(fd, WEFT__RESIDENT_MASK, &status), 0);
}

static void file_end(void)
{
	close(fd);
}

static size_t found(off_t offset, size_t bytes)
{
	return weft__resident(fd, &status, offset, bytes);
}

/* Is an answer given without a look? */
static bool is_believed(size_t bytes)
{
	unsigned before = looks;

	ck_assert_uint_eq(found(0, bytes), bytes);
	return looks == before;
}

/* Until then the machine may be slower than the belief is old. */
static void until_believed(size_t bytes)
{
	weft_nsec by_ns = weft_now() + WEFT_SEC(20);

	while (!is_believed(bytes))
		ck_assert_uint_lt(weft_now(), by_ns);
}

/* ---- Tests --------------------------------------------------------------- */

START_TEST(bytes_in_memory_are_found)
{
	ck_assert_uint_eq(found(0, FILE_BYTES), FILE_BYTES);
	ck_assert_uint_eq(found(0, SIZE_MAX), FILE_BYTES);
	ck_assert_uint_eq(found(PAGE - 1, 2), 2);
	ck_assert_uint_eq(found(FILE_BYTES - 3, 10), 3);
	ck_assert_uint_eq(found(FILE_BYTES, 1), 0);
	ck_assert_uint_eq(found(-1, 1), 0);
}
END_TEST

START_TEST(range_that_was_found_is_believed)
{
	until_believed(1);
	until_believed(FILE_BYTES);
	until_believed(1);
}
END_TEST

/* Else a task would hold its worker for each read of the disk. */
START_TEST(belief_ends)
{
	weft_nsec by_ns = weft_now() + WEFT_SEC(20);

	until_believed(2 * PAGE);
	evict(fd);
	while (found(0, 2 * PAGE) != 0)
		ck_assert_uint_lt(weft_now(), by_ns);
}
END_TEST

/* Each time the kernel is asked, however soon. */
START_TEST(other_range_is_not_believed)
{
	struct statx same = status;
	unsigned before;

	until_believed(100);
	before = looks;
	found(0, 101);
	found(1, 100);
	found(PAGE, 100);
	ck_assert_uint_eq(looks, before + 3);
	status.stx_ino++;
	found(0, 100);
	status = same;
	status.stx_mnt_id++;
	found(0, 100);
	status = same;
	status.stx_dev_minor++;
	found(0, 100);
	status = same;
	status.stx_size--;
	found(0, 100);
	ck_assert_uint_eq(looks, before + 7);
}
END_TEST

START_TEST(range_that_was_not_whole_is_not_believed)
{
	char page[PAGE];

	evict(fd);
	ck_assert_uint_eq(found(0, 2 * PAGE), 0);
	ck_assert_int_eq(pread(fd, page, PAGE, 0), PAGE);
	for (unsigned before = looks, i = 1; i < 20; i++) {
		ck_assert_uint_eq(found(0, 2 * PAGE), PAGE);
		ck_assert_uint_eq(looks, before + i);
	}
	ck_assert_int_eq(pread(fd, page, PAGE, PAGE), PAGE);
	ck_assert_uint_eq(found(0, 2 * PAGE), 2 * PAGE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/resident");
	TCase *ranges = tcase_create("ranges");

	tcase_add_checked_fixture(ranges, file_new, file_end);
	tcase_add_test(ranges, bytes_in_memory_are_found);
	tcase_add_test(ranges, range_that_was_found_is_believed);
	tcase_add_test(ranges, belief_ends);
	tcase_add_test(ranges, other_range_is_not_believed);
	tcase_add_test(ranges, range_that_was_not_whole_is_not_believed);
	suite_add_tcase(suite, ranges);
	return io_tests_run(suite);
}
