/* SPDX-License-Identifier: MIT */
/*
 * Attributes of copies of links and nodes, which are not opened: those of the
 * original, also behind a link that is followed; and none where no way leads to
 * them.
 */
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "tests/support/child_kit.h"
#include "tests/support/copied_kit.h"
#include "tests/support/io_kit.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_calls.h"

#define ACL "system.posix_acl_access"
#define GIVEN "system.posix_acl_default"
#define TRUSTED "trusted.weft"
#define NEEDS_ACLS "access control lists of FIFOs"

static int copy(const char *from, const char *to, uint32_t flags)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = flags;
	return weft_copy_file(from, to, &opts, NULL);
}

static int copy_tree(const char *from, const char *to, uint32_t flags)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	opts.flags = flags;
	return weft_copy_tree(from, to, &opts, NULL);
}

static bool trusted_set(const char *path)
{
	return lsetxattr(path, TRUSTED, path, strlen(path), 0) == 0;
}

static ssize_t trusted_get(const char *path, char value[16])
{
	memset(value, 0, 16);
	return lgetxattr(path, TRUSTED, value, 15);
}

/* As xattr(7) and the kernel have it: rights of the owner, of the user itself,
 * of the group, of all that have some here, and of others. */
static bool acl_set(const char *path)
{
	enum { NONE = -1 };
	const struct {
		uint32_t version;
		struct {
			uint16_t kind, rights;
			uint32_t id;
		} of[5];
	} acl = { 2,
		  { { 1, 6, (uint32_t)NONE },
		    { 2, 6, geteuid() },
		    { 4, 4, (uint32_t)NONE },
		    { 16, 6, (uint32_t)NONE },
		    { 32, 0, (uint32_t)NONE } } };

	return setxattr(path, ACL, &acl, sizeof(acl), 0) == 0;
}

static void expect_acl(const char *path)
{
	char value[128];

	ck_assert_int_eq(lgetxattr(path, ACL, value, sizeof(value)), 44);
	ck_assert_int_eq(value[12], 2);
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	ck_assert_int_eq(lstat(path, &status), 0);
	return status.st_mode;
}

/* ---- Lists that a directory gives --------------------------------------- */

static bool given_set(const char *path)
{
	char list[64];
	ssize_t n;

	if (mkfifo("list", 0600) < 0 || !acl_set("list"))
		return false;
	n = getxattr("list", ACL, list, sizeof(list));
	return n > 0 && setxattr(path, GIVEN, list, (size_t)n, 0) == 0;
}

/* As with cp -a; without attributes they are those of any new file. */
IO_TEST(copy_has_no_list_but_the_originals)
{
	ck_assert_int_eq(mkdir("in", 0755), 0);
	if (!test_needs(given_set("in"), "copy_has_no_list_but_the_originals",
			NEEDS_ACLS))
		return 0;
	ck_assert_int_eq(mkdir("from", 0755), 0);
	copied_file(AT_FDCWD, "from/file", 10, 1);
	ck_assert_int_eq(chmod("from/file", 0640), 0);
	ck_assert_int_eq(copy("from/file", "in/file", WEFT_COPY_XATTRS), 0);
	ck_assert_int_lt(getxattr("in/file", ACL, NULL, 0), 0);
	ck_assert_uint_eq(mode_of("in/file"), S_IFREG | 0640);
	ck_assert_int_eq(copy_tree("from", "in/to", WEFT_COPY_XATTRS), 0);
	ck_assert_int_lt(getxattr("in/to", ACL, NULL, 0), 0);
	ck_assert_int_lt(getxattr("in/to", GIVEN, NULL, 0), 0);
	ck_assert_int_lt(getxattr("in/to/file", ACL, NULL, 0), 0);
	ck_assert_int_eq(copy("from/file", "in/plain", 0), 0);
	ck_assert_int_gt(getxattr("in/plain", ACL, NULL, 0), 0);
	/* Its own it keeps. */
	ck_assert(acl_set("from/file"));
	ck_assert_int_eq(copy("from/file", "in/own", WEFT_COPY_XATTRS), 0);
	expect_acl("in/own");
	return 0;
}

/* ---- Attributes of the user --------------------------------------------- */

static bool user_set(const char *path)
{
	return setxattr(path, "user.weft", path, strlen(path), 0) == 0;
}

static int64_t copy_both_masked(void *arg)
{
	(void)arg;
	umask(0300);
	NEED(copy("plain", "plain copy", WEFT_COPY_ARCHIVE) == 0);
	umask(022);
	NEED(copy("listed", "listed copy", WEFT_COPY_ARCHIVE) == 0);
	return 0;
}

/* Such an attribute is set by those who may write to the file. */
static int64_t copy_both_unprivileged(void *arg)
{
	NEED(become_unprivileged());
	copied_file(AT_FDCWD, "plain", 10, 1);
	copied_file(AT_FDCWD, "listed", 10, 1);
	/* The first comes first in a list of them. */
	if (!acl_set("listed") || !user_set("listed") || !user_set("plain"))
		_exit(EXIT_SUCCESS);
	NEED(chmod("listed", 0440) == 0);
	return weft_run(copy_both_masked, arg, NULL);
}

START_TEST(attribute_needs_no_right_of_the_owner)
{
	char value[16];

	child_run(copy_both_unprivileged, NULL);
	if (!test_needs(copied_is_there("listed copy"),
			"attribute_needs_no_right_of_the_owner",
			"attributes of the user, and " NEEDS_ACLS))
		return;
	ck_assert_int_eq(getxattr("plain copy", "user.weft", value, 16), 5);
	ck_assert_int_eq(getxattr("listed copy", "user.weft", value, 16), 6);
	ck_assert_uint_eq(mode_of("listed copy"), S_IFREG | 0440);
	expect_acl("listed copy");
}
END_TEST

/* In the mode the rights of the group are the mask of the list. */
IO_TEST(mode_is_copied_with_the_list_that_it_belongs_to)
{
	const uint32_t flags = WEFT_COPY_MODE | WEFT_COPY_NODES;

	ck_assert_int_eq(mkdir("in", 0755), 0);
	ck_assert_int_eq(mkdir("from", 0755), 0);
	copied_file(AT_FDCWD, "from/file", 10, 1);
	ck_assert_int_eq(mkfifo("from/fifo", 0600), 0);
	if (!test_needs(given_set("in") && acl_set("from/file") &&
				acl_set("from/fifo") && acl_set("from"),
			"mode_is_copied_with_the_list_that_it_belongs_to",
			NEEDS_ACLS))
		return 0;
	ck_assert_int_eq(copy("from/file", "file", flags), 0);
	expect_acl("file");
	ck_assert_int_eq(copy("from/fifo", "fifo", flags), 0);
	expect_acl("fifo");
	ck_assert_int_eq(copy_tree("from", "to", flags), 0);
	expect_acl("to");
	expect_acl("to/file");
	/* Nor is there another one. */
	ck_assert_int_eq(removexattr("file", ACL), 0);
	ck_assert_int_eq(removexattr("fifo", ACL), 0);
	ck_assert_int_eq(copy("file", "in/file", flags), 0);
	ck_assert_int_lt(getxattr("in/file", ACL, NULL, 0), 0);
	ck_assert_int_eq(copy("fifo", "in/fifo", flags), 0);
	ck_assert_int_lt(getxattr("in/fifo", ACL, NULL, 0), 0);
	return 0;
}

static bool may_refuse_lists(void)
{
	const unsigned calls[] = { SYS_fsetxattr, SYS_lsetxattr };

	return refuse_calls(calls, 2, EOPNOTSUPP);
}

static int64_t copy_without_lists(void *arg)
{
	(void)arg;
	NEED(copy("file", "file copy", WEFT_COPY_MODE) == 0);
	NEED(copy("fifo", "fifo copy", WEFT_COPY_MODE | WEFT_COPY_NODES) == 0);
	return 0;
}

static int64_t refuse_lists_and_copy(void *arg)
{
	NEED(may_refuse_lists());
	return weft_run(copy_without_lists, arg, NULL);
}

/* As a file system that has no lists. */
START_TEST(group_gets_no_rights_of_a_list_that_is_lost)
{
	copied_file(AT_FDCWD, "file", 10, 1);
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	if (!test_needs(acl_set("file") && acl_set("fifo"),
			"group_gets_no_rights_of_a_list_that_is_lost",
			NEEDS_ACLS) ||
	    !test_needs(test_can(may_refuse_lists),
			"group_gets_no_rights_of_a_list_that_is_lost",
			NEEDS_REFUSED_CALLS))
		return;
	ck_assert_int_eq(chmod("file", 0664), 0);
	ck_assert_int_eq(chmod("fifo", 0660), 0);
	child_run(refuse_lists_and_copy, NULL);
	ck_assert_uint_eq(mode_of("file copy"), S_IFREG | 0604);
	ck_assert_uint_eq(mode_of("fifo copy"), S_IFIFO | 0600);
}
END_TEST

static bool lists_set(const char *path)
{
	return given_set(path) && acl_set(path);
}

/* Before its mode is copied, which would be rights of those in the lists. */
IO_TEST(directory_that_is_added_to_has_the_lists_of_the_original)
{
	ck_assert_int_eq(mkdir("to", 0700), 0);
	ck_assert_int_eq(mkdir("from", 0750), 0);
	if (!test_needs(lists_set("to"),
			"directory_that_is_added_to_has_the_lists_of_the_"
			"original",
			NEEDS_ACLS))
		return 0;
	ck_assert_int_eq(copy_tree("from", "to", WEFT_COPY_MODE), 0);
	ck_assert_int_gt(getxattr("to", GIVEN, NULL, 0), 0);
	ck_assert_int_eq(copy_tree("from", "to", WEFT_COPY_ARCHIVE), 0);
	ck_assert_int_lt(getxattr("to", ACL, NULL, 0), 0);
	ck_assert_int_lt(getxattr("to", GIVEN, NULL, 0), 0);
	ck_assert_uint_eq(mode_of("to"), S_IFDIR | 0750);
	ck_assert_int_eq(unlink("list"), 0);
	ck_assert(lists_set("from"));
	ck_assert_int_eq(copy_tree("from", "to", WEFT_COPY_ARCHIVE), 0);
	expect_acl("to");
	ck_assert_int_gt(getxattr("to", GIVEN, NULL, 0), 0);
	return 0;
}

IO_TEST(copy_of_a_node_has_no_list_but_the_originals)
{
	const uint32_t flags = WEFT_COPY_NODES | WEFT_COPY_XATTRS;

	ck_assert_int_eq(mkdir("in", 0755), 0);
	if (!test_needs(given_set("in"),
			"copy_of_a_node_has_no_list_but_the_originals",
			NEEDS_ACLS))
		return 0;
	ck_assert_int_eq(mkfifo("fifo", 0640), 0);
	ck_assert_int_eq(copy("fifo", "in/fifo", flags), 0);
	ck_assert_int_lt(getxattr("in/fifo", ACL, NULL, 0), 0);
	ck_assert_uint_eq(mode_of("in/fifo"), S_IFIFO | 0640);
	ck_assert_int_eq(copy("fifo", "in/plain", WEFT_COPY_NODES), 0);
	ck_assert_int_gt(getxattr("in/plain", ACL, NULL, 0), 0);
	ck_assert_int_eq(copy("list", "in/list", flags), 0);
	expect_acl("in/list");
	return 0;
}

/* ---- A link that is followed --------------------------------------------- */

IO_TEST(node_behind_a_link_keeps_its_acl)
{
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(symlink("fifo", "link"), 0);
	if (!test_needs(acl_set("fifo"), "node_behind_a_link_keeps_its_acl",
			NEEDS_ACLS))
		return 0;
	ck_assert_int_eq(copy("link", "to",
			      WEFT_COPY_FOLLOW | WEFT_COPY_NODES |
				      WEFT_COPY_XATTRS),
			 0);
	ck_assert_uint_eq(mode_of("to"), S_IFIFO | 0660);
	expect_acl("to");
	return 0;
}

/* The copy of a link that is not followed has those of the link. */
IO_TEST(node_behind_a_link_has_no_attributes_of_the_link)
{
	char value[16];

	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(symlink("fifo", "link"), 0);
	if (!test_needs(trusted_set("link") && trusted_set("fifo"),
			"node_behind_a_link_has_no_attributes_of_the_link",
			NEEDS_XATTRS_OF_LINKS))
		return 0;
	ck_assert_int_eq(copy("link", "to",
			      WEFT_COPY_FOLLOW | WEFT_COPY_NODES |
				      WEFT_COPY_XATTRS),
			 0);
	ck_assert(S_ISFIFO(mode_of("to")));
	ck_assert_int_eq(trusted_get("to", value), 4);
	ck_assert_str_eq(value, "fifo");
	ck_assert_int_eq(copy("link", "other", WEFT_COPY_XATTRS), 0);
	ck_assert(S_ISLNK(mode_of("other")));
	ck_assert_int_eq(trusted_get("other", value), 4);
	ck_assert_str_eq(value, "link");
	return 0;
}

/* ---- Without /proc ------------------------------------------------------- */

static bool proc_hide(void)
{
	return become_mount_owner() &&
	       mount("weft", "/proc", "tmpfs", 0, "size=1m") == 0;
}

/* As such, and in a tree. */
static int64_t copy_without_proc(void *arg)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;

	(void)arg;
	opts.flags = WEFT_COPY_NODES | WEFT_COPY_XATTRS;
	NEED(weft_copy_file("from/name", "to", &opts, NULL) == 0);
	NEED(weft_copy_tree("from", "tree", &opts, NULL) == 0);
	return 0;
}

static int64_t hide_and_copy(void *arg)
{
	NEED(proc_hide());
	return weft_run(copy_without_proc, arg, NULL);
}

START_TEST(link_has_no_attributes_without_proc)
{
	char value[16];

	if (!test_needs(test_can(proc_hide),
			"link_has_no_attributes_without_proc", NEEDS_MOUNTS))
		return;
	ck_assert_int_eq(mkdir("from", 0755), 0);
	ck_assert_int_eq(symlink("gone", "from/name"), 0);
	if (!test_needs(trusted_set("from/name"),
			"link_has_no_attributes_without_proc",
			NEEDS_XATTRS_OF_LINKS))
		return;
	child_run(hide_and_copy, NULL);
	ck_assert(S_ISLNK(mode_of("to")) && S_ISLNK(mode_of("tree/name")));
	ck_assert_int_lt(trusted_get("to", value), 0);
	ck_assert_int_lt(trusted_get("tree/name", value), 0);
}
END_TEST

static bool proc_hide_and_have_fchmodat2(void)
{
	enum { FCHMODAT2 = 452 };

	return proc_hide() &&
	       (syscall(FCHMODAT2, AT_FDCWD, "", 0, 0) == 0 || errno == ENOENT);
}

START_TEST(node_has_its_rights_without_proc)
{
	if (!test_needs(test_can(proc_hide_and_have_fchmodat2),
			"node_has_its_rights_without_proc",
			NEEDS_MOUNTS ", and Linux 6.6"))
		return;
	ck_assert_int_eq(mkdir("from", 0755), 0);
	ck_assert_int_eq(mkfifo("from/name", 0600), 0);
	if (!test_needs(acl_set("from/name"),
			"node_has_its_rights_without_proc", NEEDS_ACLS))
		return;
	child_run(hide_and_copy, NULL);
	ck_assert_uint_eq(mode_of("to"), S_IFIFO | 0660);
	ck_assert_uint_eq(mode_of("tree/name"), S_IFIFO | 0660);
	ck_assert_int_lt(lgetxattr("to", ACL, NULL, 0), 0);
	ck_assert_int_lt(lgetxattr("tree/name", ACL, NULL, 0), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("fs/copy_attributes");
	TCase *tc = tcase_create("attributes"), *disk = tcase_create("disk");

	tcase_add_checked_fixture(tc, copied_setup_quick, copied_teardown);
	io_add_test(tc, copy_has_no_list_but_the_originals);
	io_add_test(tc,
		    directory_that_is_added_to_has_the_lists_of_the_original);
	io_add_test(tc, mode_is_copied_with_the_list_that_it_belongs_to);
	tcase_add_test(tc, group_gets_no_rights_of_a_list_that_is_lost);
	io_add_test(tc, copy_of_a_node_has_no_list_but_the_originals);
	io_add_test(tc, node_behind_a_link_keeps_its_acl);
	io_add_test(tc, node_behind_a_link_has_no_attributes_of_the_link);
	tcase_add_test(tc, link_has_no_attributes_without_proc);
	tcase_add_test(tc, node_has_its_rights_without_proc);
	suite_add_tcase(suite, tc);
	/* Files in memory may have no attributes of the user. */
	tcase_add_checked_fixture(disk, copied_setup, copied_teardown);
	tcase_add_test(disk, attribute_needs_no_right_of_the_owner);
	suite_add_tcase(suite, disk);
	return io_tests_run(suite);
}
