/* SPDX-License-Identifier: MIT */
/*
 * The directories that a copy of a tree makes, under any umask, and the one
 * that it is added to, by the name of a link.
 */
#include "tests/support/child_kit.h"
#include "tests/support/copied_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"

static int copy(const char *from, const char *to, uint32_t flags)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = flags;
	return weft_copy_tree(from, to, &opts, NULL);
}

/* ---- The umask ----------------------------------------------------------- */

static bool has_rights(const char *path, mode_t rights)
{
	struct stat status;

	return stat(path, &status) == 0 &&
	       (status.st_mode & 0777) == rights && chmod(path, 0700) == 0;
}

static int64_t copy_under_masks(void *arg)
{
	static const mode_t masks[] = { 0222, 0300, 0400, 0777 };

	for (unsigned i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		char to[16], below[32];
		uint32_t flags = *(const uint32_t *)arg;
		mode_t rights = flags ? 0755 : 0755 & ~masks[i];

		snprintf(to, sizeof(to), "to-%u", i);
		snprintf(below, sizeof(below), "%s/below", to);
		umask(masks[i]);
		NEED(copy("from", to, flags) == 0);
		umask(022);
		NEED(has_rights(to, rights) && has_rights(below, rights));
	}
	return 0;
}

/* The umask leaves the owner of a new directory no right to enter it. */
static int64_t mask_unprivileged(void *arg)
{
	NEED(become_unprivileged());
	umask(022);
	NEED(mkdir("from", 0755) == 0 && mkdir("from/below", 0755) == 0);
	copied_file(AT_FDCWD, "from/below/file", 10, 1);
	return weft_run(copy_under_masks, arg, NULL);
}

START_TEST(tree_is_copied_under_any_umask)
{
	uint32_t flags = _i ? WEFT_COPY_ARCHIVE : 0;
	char to[16], file[32];

	child_run(mask_unprivileged, &flags);
	for (int i = 0; i < 4; i++) {
		snprintf(to, sizeof(to), "to-%d", i);
		snprintf(file, sizeof(file), "%s/below/file", to);
		ck_assert_int_eq(chmod(file, 0644), 0);
		copied_expect_same("from", to, 0);
	}
}
END_TEST

/* ---- Links --------------------------------------------------------------- */

/* With a slash behind it a link is what it refers to; below, it never is. */
IO_TEST(link_to_a_directory_is_one_with_a_slash)
{
	copied_broad("from", 1, 2);
	ck_assert_int_eq(mkdir("real", 0755), 0);
	ck_assert_int_eq(symlink("real", "to"), 0);
	ck_assert_int_eq(copy("from", "to", 0), -ENOTDIR);
	ck_assert_uint_eq(copied_count_names("real", ""), 0);
	ck_assert_int_eq(copy("from", "to/", 0), 0);
	copied_expect_same("from", "real", COPIED_MODES);
	ck_assert_int_eq(copy("from", "new/", 0), 0);
	copied_expect_same("from", "new", COPIED_MODES);
	/* It has no directory, and is none that is to be made. */
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	ck_assert_int_eq(copy("from", "loop/", 0), -ELOOP);
	ck_assert_int_eq(symlink("../../from", "from/dir-0/up"), 0);
	ck_assert_int_eq(symlink("from/dir-0/up", "within"), 0);
	ck_assert_int_eq(copy("from", "within/", 0), -EINVAL);
	ck_assert_int_eq(mkdir("other", 0755), 0);
	ck_assert_int_eq(symlink("../real", "other/dir-0"), 0);
	ck_assert_int_eq(copy("from", "other", WEFT_COPY_OVERWRITE), -ENOTDIR);
	return 0;
}

IO_TEST(root_directory_is_no_place_for_a_file)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	copied_file(AT_FDCWD, "from", 10, 1);
	opts.flags = WEFT_COPY_OVERWRITE;
	ck_assert_int_eq(weft_copy_file("from", "/", &opts, NULL), -EISDIR);
	ck_assert_int_eq(weft_copy_file("from", ".", &opts, NULL), -EISDIR);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("fs/copy_target");
	TCase *tc = tcase_create("target");

	tcase_add_checked_fixture(tc, copied_setup_quick, copied_teardown);
	tcase_add_loop_test(tc, tree_is_copied_under_any_umask, 0, 2);
	io_add_test(tc, link_to_a_directory_is_one_with_a_slash);
	io_add_test(tc, root_directory_is_no_place_for_a_file);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
