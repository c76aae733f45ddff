/* SPDX-License-Identifier: MIT */
/*
 * One test of a program, or one turn of a test that runs in a loop:
 *
 *	WEFT_TEST_ONLY=name      all turns of the test
 *	WEFT_TEST_ONLY=name:n    its turn n, from 0
 *
 * CK_RUN_CASE chooses among test cases that have a test of that name each.  The
 * linker puts these functions in the place of Check's (--wrap).  A name that
 * no test has is a failure, so that no repetition passes without a test.
 */
#include <check.h>
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

void __wrap__tcase_add_test(TCase *tc, const TTest *test, int signal,
			    int exit_value, int start, int end)
{
	const char *name = only();
	size_t length = name ? strcspn(name, ":") : 0;

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
	return __real_srunner_ntests_failed(runner);
}
