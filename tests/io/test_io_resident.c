/* SPDX-License-Identifier: MIT */
/*
 * Pages that are in the page cache are believed to stay there for a moment, and
 * the kernel is asked anew after it.  The linker puts functions of the test in
 * the way of the look, so that looks can be counted, and of the clock.
 */
#include <time.h>

#include "io/resident.h"
#include "tests/support/needs.h"
#include "tests/support/page_cache.h"

enum { FILE_BYTES = 40 * PAGE + 100, BELIEVED_MAX = 128 << 10 };

/* ---- Looks, and the clock ------------------------------------------------ */

static unsigned looks;
static uint64_t now_ms;

size_t __real_weft__look_resident(int fd, off_t offset, size_t bytes,
				  off_t file_bytes);
size_t __wrap_weft__look_resident(int fd, off_t offset, size_t bytes,
				  off_t file_bytes);
int __real_clock_gettime(clockid_t clock, struct timespec *ret_now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now);

size_t __wrap_weft__look_resident(int fd, off_t offset, size_t bytes,
				  off_t file_bytes)
{
	looks++;
	return __real_weft__look_resident(fd, offset, bytes, file_bytes);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	if (clock != CLOCK_MONOTONIC_COARSE)
		return __real_clock_gettime(clock, ret_now);
	ret_now->tv_sec = (time_t)(now_ms / 1000);
	ret_now->tv_nsec = (long)(now_ms % 1000 * 1000000);
	return 0;
}

/* ---- A file, all of it in memory ----------------------------------------- */

static int fd;
static struct statx status;

static void file_new(void)
{
	static char bytes[FILE_BYTES];
	char name[] = "/var/tmp/weft-resident-XXXXXX";

	now_ms = 12345678;
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

/* How many looks does it take to find them? */
static unsigned looks_for(off_t offset, size_t bytes)
{
	unsigned before = looks;

	ck_assert_uint_eq(found(offset, bytes), bytes);
	return looks - before;
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
	static const struct {
		off_t offset;
		size_t bytes;
	} ranges[] = {
		{ 0, 1 }, { PAGE - 1, 2 }, { 100, 8 * PAGE },
		{ 0, BELIEVED_MAX }, { FILE_BYTES - 100, 100 },
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		ck_assert_uint_eq(looks_for(ranges[i].offset, ranges[i].bytes),
				  1);
		ck_assert_uint_eq(looks_for(ranges[i].offset, ranges[i].bytes),
				  0);
	}
	/* The look takes little beside the read. */
	ck_assert_uint_eq(looks_for(0, BELIEVED_MAX + 1), 1);
	ck_assert_uint_eq(looks_for(0, BELIEVED_MAX + 1), 1);
}
END_TEST

/* Else a task would hold its worker for each read of the disk. */
START_TEST(belief_ends)
{
	/* Before and after 24 bits of milliseconds come round. */
	static const uint64_t times[] = { 1000, (1 << 24) - 5, 1ull << 42 };

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		now_ms = times[i];
		ck_assert_uint_eq(looks_for(0, 100), 1);
		now_ms = times[i] + 9;
		ck_assert_uint_eq(looks_for(0, 100), 0);
		now_ms = times[i] + 10;
		ck_assert_uint_eq(looks_for(0, 100), 1);
		now_ms = times[i];
		ck_assert_uint_eq(looks_for(0, 100), 1);
		now_ms = times[i] + 5000;
		ck_assert_uint_eq(looks_for(0, 100), 1);
	}
	if (!test_needs(!is_on_tmpfs(fd), "belief_ends", NEEDS_EVICTION))
		return;
	evict(fd);
	ck_assert_uint_eq(found(0, 100), 100);
	now_ms += 10;
	ck_assert_uint_eq(found(0, 100), 0);
}
END_TEST

/* Each time the kernel is asked, however soon. */
START_TEST(other_range_is_not_believed)
{
	struct statx same = status;

	ck_assert_uint_eq(looks_for(0, 100), 1);
	ck_assert_uint_eq(looks_for(0, 101), 1);
	ck_assert_uint_eq(looks_for(1, 100), 1);
	ck_assert_uint_eq(looks_for(PAGE, 100), 1);
	status.stx_ino++;
	ck_assert_uint_eq(looks_for(0, 100), 1);
	status = same;
	((char *)&status)[WEFT__STATX_MOUNT_AT]++;
	ck_assert_uint_eq(looks_for(0, 100), 1);
	status = same;
	status.stx_dev_minor++;
	ck_assert_uint_eq(looks_for(0, 100), 1);
	status = same;
	status.stx_size--;
	ck_assert_uint_eq(looks_for(0, 100), 1);
	status = same;
	ck_assert_uint_eq(looks_for(0, 100), 0);
}
END_TEST

START_TEST(range_that_was_not_whole_is_not_believed)
{
	char page[PAGE];

	if (!test_needs(!is_on_tmpfs(fd),
			"range_that_was_not_whole_is_not_believed",
			NEEDS_EVICTION))
		return;
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
