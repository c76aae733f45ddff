/* SPDX-License-Identifier: MIT */
/*
 * Kit - what the models share: how one is declared and run, and the futex.
 *
 * A model includes the real sources, .c files too where functions are static.
 * All of them are compiled with -fsanitize=thread and linked without, so that
 * every access to plain data is checked (data.c).  A function of the model
 * itself is MODEL_UNSEEN if it touches data that its threads share outside of
 * the protocol.
 */
#ifndef WEFT_TESTS_MODEL_KIT_H
#define WEFT_TESTS_MODEL_KIT_H

/* Only the instrumentation is used, for data.c: there is no ThreadSanitizer
 * that must be informed of switches. */
#undef __SANITIZE_THREAD__

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"
#include "runtime/base/memory.h"
#include "tests/model/model.h"

#ifndef KIT_FUTEX
static inline void weft__futex_wait(weft__atomic(uint32_t) *word,
				    uint32_t value)
{
	model_park(word, value);
}

static inline void weft__futex_wake(weft__atomic(uint32_t) *word, int threads)
{
	model_unpark(word, (unsigned)threads);
}
#endif

#ifdef KIT_HINTS
/*
 * Words for which any value is right, such as those that are compared with a
 * clock; and words that one thread alone uses in the model.  The search leaves
 * them out.
 */
static bool is_hint(const volatile void *p);
MODEL_UNSEEN static uint64_t hint_load(const volatile void *p, size_t size)
{
	return size == 4 ? *(const volatile uint32_t *)p :
			   *(const volatile uint64_t *)p;
}

MODEL_UNSEEN static void hint_store(volatile void *p, size_t size,
				    uint64_t value)
{
	if (size == 4)
		*(volatile uint32_t *)p = (uint32_t)value;
	else
		*(volatile uint64_t *)p = value;
}

MODEL_UNSEEN static uint64_t hint_swap(volatile void *p, size_t size,
				       uint64_t value)
{
	uint64_t old = hint_load(p, size);

	hint_store(p, size, value);
	return old;
}

#undef weft__load
#undef weft__store
#undef weft__swap
#define weft__load(p, order)                                                 \
	MODEL__VALUE(p, is_hint(p) ? hint_load((p), sizeof(*(p))) :          \
				     model_load((p), sizeof(*(p)),           \
						MODEL__LOAD_##order,         \
						MODEL__WHERE))
#define weft__store(p, v, order)                                             \
	(is_hint(p) ? hint_store((p), sizeof(*(p)), MODEL__BITS(p, v)) :     \
		      model_store((p), sizeof(*(p)), MODEL__BITS(p, v),      \
				  MODEL__STORE_##order, MODEL__WHERE))
#define weft__swap(p, v, order)                                              \
	MODEL__VALUE(p, is_hint(p) ?                                         \
				hint_swap((p), sizeof(*(p)),                 \
					  MODEL__BITS(p, v)) :               \
				model_rmw(MODEL_SWAP, (p), sizeof(*(p)),     \
					  MODEL__BITS(p, v),                 \
					  MODEL__RMW_##order, MODEL__WHERE))
#endif

#define THREAD(name, ...)                                                    \
	static void name(void *arg)                                          \
	{                                                                    \
		(void)arg;                                                   \
		__VA_ARGS__                                                  \
	}

struct kit_model {
	struct model_opts opts;
	model_fn *setup, *check_end;
	model_fn *threads[MODEL_THREADS];
};

/*
 * A test case that explores one model in full (with MODEL_ONLY=text in the
 * environment, only a model whose name contains the text):
 *	MODEL(name, setup, check_end, OPTIONS(.preemptions = 2), thread, ...)
 */
#define OPTIONS(...) __VA_ARGS__
#define MODEL(test, set_up, at_end, options, ...)                            \
	START_TEST(test)                                                     \
	{                                                                    \
		static const struct kit_model model = {                      \
			.opts = { .name = #test, options },                  \
			.setup = (set_up),                                   \
			.check_end = (at_end),                               \
			.threads = { __VA_ARGS__ },                          \
		};                                                           \
		kit_run(&model);                                             \
	}                                                                    \
	END_TEST

static void kit_run(const struct kit_model *model)
{
	static struct model_result result;
	const char *only = getenv("MODEL_ONLY");
	size_t n = 0;

	if (only && !strstr(model->opts.name, only))
		return;
	while (n < MODEL_THREADS && model->threads[n])
		n++;
	result = model_run(&model->opts, model->setup, model->threads, n,
			   model->check_end);
	/* For mutate.py: one violation is enough. */
	if (result.violated && getenv("MODEL_STOP"))
		exit(EXIT_FAILURE);
	ck_assert_msg(!result.violated, "%s", result.text);
	ck_assert_msg(result.complete || getenv("MODEL_REPLAY"),
		      "the search was given up");
}

static int kit_main(const char *name, const TTest *const tests[])
{
	Suite *suite = suite_create(name);
	TCase *group = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_set_timeout(group, 0);
	for (size_t i = 0; tests[i]; i++)
		tcase_add_test(group, tests[i]);
	suite_add_tcase(suite, group);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
