/* SPDX-License-Identifier: MIT */
/*
 * Litmus - the parts that the tests of the model checker itself share.
 */
#ifndef WEFT_TESTS_MODEL_LITMUS_H
#define WEFT_TESTS_MODEL_LITMUS_H

#include <check.h>
#include <string.h>

#include "runtime/base/atomic.h"
#include "tests/model/model.h"

#define THREAD(name, ...)                                                    \
	static void name(void *arg)                                          \
	{                                                                    \
		(void)arg;                                                   \
		__VA_ARGS__                                                  \
	}

/* The words that the threads of a litmus test share, and the results of their
 * loads. */
static struct {
	weft__atomic(uint32_t) x, y, z;
	int data;
	uint32_t r[6];
} m;

static void setup(void *arg)
{
	(void)arg;
	memset(&m, 0, sizeof(m));
	model_name(&m.x, "x");
	model_name(&m.y, "y");
	model_name(&m.z, "z");
	model_name(&m.data, "data");
}

static void add_tests(Suite *suite, const char *name,
		      const TTest *const tests[])
{
	TCase *group = tcase_create(name);

	tcase_set_timeout(group, 60);
	for (size_t i = 0; tests[i]; i++)
		tcase_add_test(group, tests[i]);
	suite_add_tcase(suite, group);
}

#endif
