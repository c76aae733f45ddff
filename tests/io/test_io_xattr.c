/* SPDX-License-Identifier: MIT */
/*
 * Extended attributes: of files, of open files, and of symbolic links
 * themselves.  Which a file system or a user may set differs, so each call is
 * compared with that of the C library.
 */
#include <sys/mman.h>
#include <sys/xattr.h>

#include "tests/support/same_kit.h"

/* Where the file system has no attributes of users, the errors are the same. */
static void attributes(void)
{
	char buf[100], other[100];
	int our, their;

	file_make("it");
	SAME(weft_setxattr(OURS("it"), "user.a", "value", 5, 0),
	     setxattr(THEIRS("it"), "user.a", "value", 5, 0));
	SAME(weft_setxattr(OURS("it"), "user.a", "value", 5, XATTR_CREATE),
	     setxattr(THEIRS("it"), "user.a", "value", 5, XATTR_CREATE));
	SAME(weft_getxattr(OURS("it"), "user.a", buf, sizeof(buf)),
	     getxattr(THEIRS("it"), "user.a", other, sizeof(other)));
	SAME(weft_getxattr(OURS("it"), "user.a", buf, 2),
	     getxattr(THEIRS("it"), "user.a", other, 2));
	SAME(weft_getxattr(OURS("it"), "user.b", buf, sizeof(buf)),
	     getxattr(THEIRS("it"), "user.b", other, sizeof(other)));
	SAME(weft_listxattr(OURS("it"), NULL, 0),
	     listxattr(THEIRS("it"), NULL, 0));
	our = openat(ours, "it", O_RDWR | O_CLOEXEC);
	their = openat(theirs, "it", O_RDWR | O_CLOEXEC);
	SAME(weft_fsetxattr(our, "user.f", "f", 1, 0),
	     fsetxattr(their, "user.f", "f", 1, 0));
	SAME(weft_fgetxattr(our, "user.f", buf, sizeof(buf)),
	     fgetxattr(their, "user.f", other, sizeof(other)));
	SAME(weft_flistxattr(our, buf, sizeof(buf)),
	     flistxattr(their, other, sizeof(other)));
	SAME(weft_fremovexattr(our, "user.f"), fremovexattr(their, "user.f"));
	SAME(weft_fremovexattr(our, "user.f"), fremovexattr(their, "user.f"));
	SAME(weft_removexattr(OURS("it"), "user.a"),
	     removexattr(THEIRS("it"), "user.a"));
	SAME(weft_removexattr(OURS("no"), "user.a"),
	     removexattr(THEIRS("no"), "user.a"));
	ck_assert_int_eq(weft_fgetxattr(-1, "user.f", buf, 1), -EBADF);
	close(our);
	close(their);
}

static void links_make(const char *name, const char *target)
{
	ck_assert_int_eq(symlinkat(target, ours, name), 0);
	ck_assert_int_eq(symlinkat(target, theirs, name), 0);
}

/* Of `user.` attributes a link has none, so each call shows which of both it
 * means.  Only some processes may set the others. */
static void attributes_of_link(const char *link, const char *attribute)
{
	char buf[100], other[100];

	SAME(weft_lsetxattr(OURS(link), attribute, "of link", 7, 0),
	     lsetxattr(THEIRS(link), attribute, "of link", 7, 0));
	SAME(weft_lsetxattr(OURS(link), attribute, "x", 1, XATTR_CREATE),
	     lsetxattr(THEIRS(link), attribute, "x", 1, XATTR_CREATE));
	SAME(weft_lgetxattr(OURS(link), attribute, buf, sizeof(buf)),
	     lgetxattr(THEIRS(link), attribute, other, sizeof(other)));
	SAME(weft_lgetxattr(OURS(link), attribute, buf, 2),
	     lgetxattr(THEIRS(link), attribute, other, 2));
	SAME(weft_llistxattr(OURS(link), buf, sizeof(buf)),
	     llistxattr(THEIRS(link), other, sizeof(other)));
	SAME(weft_getxattr(OURS(link), attribute, buf, sizeof(buf)),
	     getxattr(THEIRS(link), attribute, other, sizeof(other)));
	SAME(weft_lremovexattr(OURS(link), attribute),
	     lremovexattr(THEIRS(link), attribute));
	SAME(weft_lremovexattr(OURS(link), attribute),
	     lremovexattr(THEIRS(link), attribute));
}

static void attributes_of_links(void)
{
	file_make("target");
	SAME(weft_setxattr(OURS("target"), "user.a", "value", 5, 0),
	     setxattr(THEIRS("target"), "user.a", "value", 5, 0));
	links_make("to target", "target");
	links_make("dangling", "nowhere");
	attributes_of_link("to target", "user.a");
	attributes_of_link("to target", "trusted.a");
	attributes_of_link("dangling", "user.a");
	attributes_of_link("dangling", "trusted.a");
	attributes_of_link("no", "trusted.a");
	attributes_of_link("target", "user.a");
}

IO_TEST(attributes_are_those_of_the_c_library)
{
	for (int i = 0; i < DIR_PLACES; i++) {
		if (!same_begin(dir_places[i]))
			continue;
		attributes();
		attributes_of_links();
		same_end();
	}
	return 0;
}

/* A kernel may be without attributes of files in memory; proc has none. */
IO_TEST(attribute_that_is_not_there_is_enodata)
{
	int file = memfd_create("file", MFD_CLOEXEC);
	char buf[8];
	long r;

	ck_assert_int_ge(file, 0);
	r = result_of(fgetxattr(file, "trusted.weft", buf, sizeof(buf)));
	ck_assert(r == -ENODATA || r == -EOPNOTSUPP);
	ck_assert_int_eq(weft_fgetxattr(file, "trusted.weft", buf, 8), r);
	ck_assert_int_eq(weft_getxattr("/proc/self/stat", "user.a", buf, 8),
			 -EOPNOTSUPP);
	return weft_close(file);
}

int main(void)
{
	Suite *suite = suite_create("io/xattr");
	TCase *calls = tcase_create("calls");

	tcase_set_timeout(calls, 60);
	io_add_test(calls, attributes_are_those_of_the_c_library);
	io_add_test(calls, attribute_that_is_not_there_is_enodata);
	suite_add_tcase(suite, calls);
	return io_tests_run(suite);
}
