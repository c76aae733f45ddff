/* SPDX-License-Identifier: MIT */
/*
 * A file that is replaced and is to keep its rights: in its mode those of the
 * group are the mask of its access control list, so the list has to come along;
 * and one that the directory gives must not come in addition.  No other user
 * can open the new file before it has those rights.
 */
#include <stdint.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "io/os/mask.h"
#include "io/os/syscall.h"
#include "tests/support/child_kit.h"
#include "tests/support/dir_kit.h"
#include "tests/support/needs.h"
#include "tests/support/refuse_calls.h"

#define ACL "system.posix_acl_access"
#define GIVEN "system.posix_acl_default"
#define NEEDS_ACLS "access control lists"

static char top[DIR_PATH_BYTES];

static const char *in_top(const char *name)
{
	static char path[2 * DIR_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

/* As xattr(7) and the kernel have it: rights of the owner, of another user, of
 * the group, which has none, of all that have some here, and of others. */
struct acl {
	uint32_t version;
	struct {
		uint16_t kind, rights;
		uint32_t id;
	} of[5];
};

static const struct acl LIST = {
	2,
	{ { 1, 6, UINT32_MAX },
	  { 2, 6, 12345 },
	  { 4, 0, UINT32_MAX },
	  { 16, 6, UINT32_MAX },
	  { 32, 0, UINT32_MAX } },
};

static bool acl_set(const char *path, const char *kind)
{
	return setxattr(path, kind, &LIST, sizeof(LIST), 0) == 0;
}

static bool has_list(const char *path)
{
	struct acl list;
	ssize_t n = getxattr(path, ACL, &list, sizeof(list));

	return n == (ssize_t)sizeof(LIST) &&
	       memcmp(&list, &LIST, sizeof(LIST)) == 0;
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_mode & 07777;
}

static int replace(const char *path)
{
	struct weft_replace_opts opts = WEFT_REPLACE_OPTS_INIT;

	opts.flags = WEFT_REPLACE_KEEP | WEFT_REPLACE_NO_SYNC;
	return weft_replace_file(AT_FDCWD, path, "new", 3, &opts);
}

static void file_make(const char *path, mode_t mode)
{
	ck_assert_int_eq(mknod(path, S_IFREG | 0600, 0), 0);
	ck_assert_int_eq(chmod(path, mode), 0);
}

/* Rights with which files were made. */
static long made;

long __real_weft__syscall_any(long number, const long words[6]);
long __wrap_weft__syscall_any(long number, const long words[6]);

long __wrap_weft__syscall_any(long number, const long words[6])
{
	const long makes = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);

	if (number == SYS_openat && (words[2] & makes))
		made |= words[3];
	return __real_weft__syscall_any(number, words);
}

/* WEFT_MASK stands for a file system where it has a name all the time. */
IO_TEST(new_file_is_private_until_it_has_its_rights)
{
	ck_assert(dir_new("/tmp", top));
	file_make(in_top("it"), 0604);
	for (int way = 0; way < 2; way++) {
		made = 0;
		setenv("WEFT_MASK", way ? "tmpfile" : "", 1);
		ck_assert_int_eq(weft__mask_read(), 0);
		ck_assert_int_eq(replace(in_top("it")), 0);
		ck_assert_int_eq(made, 0600);
		ck_assert_uint_eq(mode_of(in_top("it")), 0604);
	}
	dir_end(top);
	return 0;
}

IO_TEST(group_gets_no_rights_that_are_those_of_a_list)
{
	ck_assert(dir_new("/tmp", top));
	file_make(in_top("it"), 0600);
	if (test_needs(acl_set(in_top("it"), ACL),
		       "group_gets_no_rights_that_are_those_of_a_list",
		       NEEDS_ACLS)) {
		ck_assert_uint_eq(mode_of(in_top("it")), 0660);
		ck_assert_int_eq(replace(in_top("it")), 0);
		ck_assert(has_list(in_top("it")));
		ck_assert_uint_eq(mode_of(in_top("it")), 0660);
	}
	dir_end(top);
	return 0;
}

IO_TEST(list_that_the_directory_gives_is_not_kept)
{
	ck_assert(dir_new("/tmp", top));
	file_make(in_top("it"), 0640);
	if (test_needs(acl_set(top, GIVEN),
		       "list_that_the_directory_gives_is_not_kept",
		       NEEDS_ACLS)) {
		ck_assert_int_eq(replace(in_top("it")), 0);
		ck_assert_int_lt(getxattr(in_top("it"), ACL, NULL, 0), 0);
		ck_assert_uint_eq(mode_of(in_top("it")), 0640);
		/* A new file has it. */
		ck_assert_int_eq(replace(in_top("new")), 0);
		ck_assert_int_gt(getxattr(in_top("new"), ACL, NULL, 0), 0);
	}
	dir_end(top);
	return 0;
}

/* ---- Without /proc ------------------------------------------------------- */

static bool proc_hide(void)
{
	return become_mount_owner() &&
	       mount("weft", "/proc", "tmpfs", 0, "size=1m") == 0;
}

static bool proc_hide_and_refuse(void)
{
	const unsigned call = SYS_fgetxattr;

	return proc_hide() && refuse_calls(&call, 1, EPERM);
}

static int64_t replace_it(void *arg)
{
	return replace(arg);
}

static int64_t replace_without_proc(void *arg)
{
	NEED(proc_hide());
	return weft_run(replace_it, arg, NULL);
}

static int64_t replace_without_a_way(void *arg)
{
	NEED(proc_hide_and_refuse());
	return weft_run(replace_it, arg, NULL);
}

START_TEST(list_is_kept_without_proc)
{
	if (!test_needs(test_can(proc_hide), "list_is_kept_without_proc",
			NEEDS_MOUNTS))
		return;
	ck_assert(dir_new("/tmp", top));
	file_make(in_top("it"), 0600);
	if (test_needs(acl_set(in_top("it"), ACL), "list_is_kept_without_proc",
		       NEEDS_ACLS)) {
		child_run(replace_without_proc, (void *)in_top("it"));
		ck_assert(has_list(in_top("it")));
		ck_assert_uint_eq(mode_of(in_top("it")), 0660);
	}
	dir_end(top);
}
END_TEST

/* Nor is the one that the directory gives. */
START_TEST(group_gets_no_rights_of_a_list_that_is_not_seen)
{
	if (!test_needs(test_can(proc_hide_and_refuse),
			"group_gets_no_rights_of_a_list_that_is_not_seen",
			NEEDS_MOUNTS ", and " NEEDS_REFUSED_CALLS))
		return;
	ck_assert(dir_new("/tmp", top));
	file_make(in_top("it"), 0600);
	if (test_needs(acl_set(in_top("it"), ACL) && acl_set(top, GIVEN),
		       "group_gets_no_rights_of_a_list_that_is_not_seen",
		       NEEDS_ACLS)) {
		child_run(replace_without_a_way, (void *)in_top("it"));
		ck_assert_int_lt(getxattr(in_top("it"), ACL, NULL, 0), 0);
		ck_assert_uint_eq(mode_of(in_top("it")), 0600);
	}
	dir_end(top);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("io/replace_acl");
	TCase *tc = tcase_create("acl");

	io_add_test(tc, new_file_is_private_until_it_has_its_rights);
	io_add_test(tc, group_gets_no_rights_that_are_those_of_a_list);
	io_add_test(tc, list_that_the_directory_gives_is_not_kept);
	tcase_add_test(tc, list_is_kept_without_proc);
	tcase_add_test(tc, group_gets_no_rights_of_a_list_that_is_not_seen);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
