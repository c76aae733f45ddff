/* SPDX-License-Identifier: MIT */
/*
 * One test of a program, or one turn of a test that runs in a loop:
 *
 *	WEFT_TEST_ONLY=name      all turns of the test
 *	WEFT_TEST_ONLY=name:n    its turn n, from 0
 *
 * Or all tests but some, which are left out where an emulator is known to be
 * wrong (tests/tools/emulated.py):
 *
 *	WEFT_TEST_WITHOUT=name,name
 *
 * CK_RUN_CASE chooses among test cases that have a test of that name each.  The
 * linker puts these functions in the place of Check's (--wrap).  A name that
 * no test has is a failure, so that no repetition passes without a test, and no
 * list outlives what it leaves out.
 */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void __wrap__tcase_add_test(TCase *tc, const TTest *test, int signal,
			    int exit_value, int start, int end);
void __real__tcase_add_test(TCase *tc, const TTest *test, int signal,
			    int exit_value, int start, int end);
int __wrap_srunner_ntests_failed(SRunner *runner);
int __real_srunner_ntests_failed(SRunner *runner);

static const char *only(void)
{
	return getenv("WEFT_TEST_ONLY");
}

/* Bits: the places in the list whose names a test has. */
static unsigned long long left_out;

static bool is_left_out(const char *name)
{
	const char *list = getenv("WEFT_TEST_WITHOUT");
	size_t length;

	for (int place = 0; list && *list; place++) {
		length = strcspn(list, ",");
		if (strlen(name) == length &&
		    strncmp(list, name, length) == 0) {
			left_out |= 1ull << place;
			return true;
		}
		list += length + (list[length] == ',');
	}
	return false;
}

static bool all_are_left_out(void)
{
	const char *list = getenv("WEFT_TEST_WITHOUT");
	unsigned long long all = 0;

	while (list && *list) {
		all = all << 1 | 1;
		list += strcspn(list, ",");
		list += *list == ',';
	}
	return left_out == all;
}

void __wrap__tcase_add_test(TCase *tc, const TTest *test, int signal,
			    int exit_value, int start, int end)
{
	const char *name = only();
	size_t length = name ? strcspn(name, ":") : 0;

	if (is_left_out(test->name))
		return;
	if (name) {
		if (strlen(test->name) != length ||
		    strncmp(test->name, name, length) != 0)
			return;
		if (name[length]) {
			start += atoi(name + length + 1);
			end = start < end ? start + 1 : start;
		}
	}
	__real__tcase_add_test(tc, test, signal, exit_value, start, end);
}

int __wrap_srunner_ntests_failed(SRunner *runner)
{
	if (only() && srunner_ntests_run(runner) == 0) {
		fprintf(stderr, "no test is called %s\n", only());
		return 1;
	}
	if (!only() && !all_are_left_out()) {
		fprintf(stderr, "no tests are called as some of %s\n",
			getenv("WEFT_TEST_WITHOUT"));
		return 1;
	}
	return __real_srunner_ntests_failed(runner);
}
