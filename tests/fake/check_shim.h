/* SPDX-License-Identifier: MIT */
/*
 * The part of Check that weft's tests use, where there is no Check: other
 * architectures under emulation.  No fork; the first failure ends the program.
 */
#ifndef WEFT_TESTS_FAKE_CHECK_SHIM_H
#define WEFT_TESTS_FAKE_CHECK_SHIM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_TEST(name) static void name(int _i __attribute__((unused)))
#define END_TEST

struct shim_test {
	const char *name;
	void (*fn)(int i);
	int first, end;
	struct shim_test *next;
};

typedef struct TCase {
	const char *name;
	struct shim_test *tests, **tail;
	struct TCase *next;
} TCase;

typedef struct Suite {
	const char *name;
	TCase *cases, **tail;
} Suite;

typedef struct SRunner {
	Suite *suites[16];
	int count;
} SRunner;

enum print_output { CK_SILENT, CK_MINIMAL, CK_NORMAL, CK_VERBOSE, CK_ENV };

static inline void *shim_new(size_t bytes)
{
	void *memory = calloc(1, bytes);

	if (!memory)
		abort();
	return memory;
}

static inline Suite *suite_create(const char *name)
{
	Suite *suite = shim_new(sizeof(*suite));

	suite->name = name;
	suite->tail = &suite->cases;
	return suite;
}

static inline TCase *tcase_create(const char *name)
{
	TCase *tc = shim_new(sizeof(*tc));

	tc->name = name;
	tc->tail = &tc->tests;
	return tc;
}

static inline void suite_add_tcase(Suite *suite, TCase *tc)
{
	*suite->tail = tc;
	suite->tail = &tc->next;
}

static inline void tcase_set_timeout(TCase *tc, double seconds)
{
	(void)tc, (void)seconds;
}

static inline void tcase_set_tags(TCase *tc, const char *tags)
{
	(void)tc, (void)tags;
}

static inline void shim_add(TCase *tc, const char *name, void (*fn)(int i),
			    int first, int end)
{
	struct shim_test *test = shim_new(sizeof(*test));

	*test = (struct shim_test){ name, fn, first, end, NULL };
	*tc->tail = test;
	tc->tail = &test->next;
}

#define tcase_add_test(tc, fn) shim_add((tc), #fn, (fn), 0, 1)
#define tcase_add_loop_test(tc, fn, first, end) \
	shim_add((tc), #fn, (fn), (first), (end))

static inline SRunner *srunner_create(Suite *suite)
{
	SRunner *runner = shim_new(sizeof(*runner));

	runner->suites[runner->count++] = suite;
	return runner;
}

static inline void srunner_add_suite(SRunner *runner, Suite *suite)
{
	if (runner->count == 16)
		abort();
	runner->suites[runner->count++] = suite;
}

static inline void shim_run_case(const Suite *suite, const TCase *tc)
{
	for (struct shim_test *test = tc->tests; test; test = test->next) {
		printf("%s:%s:%s\n", suite->name, tc->name, test->name);
		fflush(stdout);
		for (int i = test->first; i < test->end; i++)
			test->fn(i);
	}
}

static inline void srunner_run_all(SRunner *runner, enum print_output mode)
{
	(void)mode;
	for (int i = 0; i < runner->count; i++)
		for (TCase *tc = runner->suites[i]->cases; tc; tc = tc->next)
			shim_run_case(runner->suites[i], tc);
}

/* A program that gets here has passed. */
static inline int srunner_ntests_failed(SRunner *runner)
{
	(void)runner;
	return 0;
}

static inline void srunner_free(SRunner *runner)
{
	for (int i = 0; i < runner->count; i++) {
		Suite *suite = runner->suites[i];

		while (suite->cases) {
			TCase *tc = suite->cases;

			suite->cases = tc->next;
			while (tc->tests) {
				struct shim_test *test = tc->tests;

				tc->tests = test->next;
				free(test);
			}
			free(tc);
		}
		free(suite);
	}
	free(runner);
}

#define ck_abort_msg(...)                                       \
	do {                                                    \
		fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
		fprintf(stderr, __VA_ARGS__);                   \
		fputc('\n', stderr);                            \
		exit(EXIT_FAILURE);                             \
	} while (0)

#define ck_assert_msg(holds, ...)                  \
	do {                                       \
		if (!(holds))                      \
			ck_abort_msg(__VA_ARGS__); \
	} while (0)

#define ck_assert(holds) ck_assert_msg((holds), "%s", #holds)

#define SHIM_COMPARE(type, format, x, op, y)                              \
	do {                                                              \
		type shim_x = (x), shim_y = (y);                          \
		ck_assert_msg(shim_x op shim_y,                           \
			      "%s " #op " %s: %" format " and %" format,  \
			      #x, #y, shim_x, shim_y);                    \
	} while (0)

#define ck_assert_int_eq(x, y) SHIM_COMPARE(intmax_t, PRIdMAX, x, ==, y)
#define ck_assert_int_ne(x, y) SHIM_COMPARE(intmax_t, PRIdMAX, x, !=, y)
#define ck_assert_int_lt(x, y) SHIM_COMPARE(intmax_t, PRIdMAX, x, <, y)
#define ck_assert_int_le(x, y) SHIM_COMPARE(intmax_t, PRIdMAX, x, <=, y)
#define ck_assert_int_gt(x, y) SHIM_COMPARE(intmax_t, PRIdMAX, x, >, y)
#define ck_assert_int_ge(x, y) SHIM_COMPARE(intmax_t, PRIdMAX, x, >=, y)
#define ck_assert_uint_eq(x, y) SHIM_COMPARE(uintmax_t, PRIuMAX, x, ==, y)
#define ck_assert_uint_ne(x, y) SHIM_COMPARE(uintmax_t, PRIuMAX, x, !=, y)
#define ck_assert_uint_lt(x, y) SHIM_COMPARE(uintmax_t, PRIuMAX, x, <, y)
#define ck_assert_uint_le(x, y) SHIM_COMPARE(uintmax_t, PRIuMAX, x, <=, y)
#define ck_assert_uint_gt(x, y) SHIM_COMPARE(uintmax_t, PRIuMAX, x, >, y)
#define ck_assert_uint_ge(x, y) SHIM_COMPARE(uintmax_t, PRIuMAX, x, >=, y)
#define ck_assert_ptr_eq(x, y) ck_assert((const void *)(x) == (const void *)(y))
#define ck_assert_ptr_ne(x, y) ck_assert((const void *)(x) != (const void *)(y))
#define ck_assert_ptr_null(x) ck_assert((x) == NULL)
#define ck_assert_ptr_nonnull(x) ck_assert((x) != NULL)
#define ck_assert_str_eq(x, y)                                          \
	do {                                                            \
		const char *shim_x = (x), *shim_y = (y);                \
		ck_assert_msg(strcmp(shim_x, shim_y) == 0,              \
			      "%s == %s: \"%s\" and \"%s\"", #x, #y,    \
			      shim_x, shim_y);                          \
	} while (0)

#endif
