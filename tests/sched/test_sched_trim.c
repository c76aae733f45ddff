/* SPDX-License-Identifier: MIT */
/*
 * Suite sched/trim: stacks give their memory back after a peak.
 *
 * Many tasks sleep at the same time and end.  A few seconds later all but a few
 * of their stacks are emptied; those that are still used are not.  The next
 * peak runs on them again.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <sys/mman.h>
#include <weft/weft.h>

#include "runtime/sched/worker.h"
#include "tests/fake/fake_check.h"

/* KEPT: by the shared list, by the workers' caches, and one for main. */
enum { PEAK = 1500, CACHED = 4 * 129, KEPT = 256 + CACHED + 1 };
enum { DEEP_BYTES = 6000 };

static uint32_t emptied(void)
{
	uint32_t count = 0;

	for (int i = 0; i < WEFT__STACK_CLASSES; i++)
		count += fake_runtime()->stacks.emptied[i];
	return count;
}

/* Is a page of a stack that is said to be emptied in memory? */
static bool any_is_resident(void)
{
	struct weft__stack_slab *slab = fake_runtime()->stacks.slabs;

	for (; slab; slab = slab->next)
		for (uint32_t i = 0; i < slab->used; i++) {
			char *end = slab->base + (i + 1) * slab->stride;
			unsigned char page = 0;

			if (!(slab->emptied >> i & 1))
				continue;
			EXPECT(mincore(end - 4096, 4096, &page) == 0);
			if (page & 1)
				return true;
		}
	return false;
}

static int64_t sleep_deeply(void *arg)
{
	volatile unsigned char deep[DEEP_BYTES];
	unsigned sum = 0;
	int i = *(int *)arg;

	for (int k = 0; k < DEEP_BYTES; k++)
		deep[k] = (unsigned char)(i + k);
	EXPECT(weft_sleep(WEFT_MS(100)) == 0);
	for (int k = 0; k < DEEP_BYTES; k++)
		sum += deep[k] != (unsigned char)(i + k);
	return sum;
}

static void peak(void)
{
	int64_t result = 0;

	WEFT_SCOPE(all, &result)
		for (int i = 0; i < PEAK; i++)
			EXPECT(WEFT_GO(all, sleep_deeply, i) == 0);
	EXPECT(result == 0);
}

static int64_t peaks_come_and_go(void *arg)
{
	uint64_t carved;

	(void)arg;
	peak();
	carved = fake_runtime()->stacks.carved;
	EXPECT(carved > PEAK);
	EXPECT(emptied() == 0);
	EXPECT(weft_sleep(WEFT_SEC(5)) == 0);
	EXPECT(emptied() >= PEAK - KEPT);
	EXPECT(!any_is_resident());
	peak();
	/* Some of the free ones lie in the caches of other workers. */
	EXPECT(fake_runtime()->stacks.carved <= carved + CACHED);
	EXPECT(weft_sleep(WEFT_SEC(5)) == 0);
	EXPECT(emptied() >= PEAK - KEPT);
	return 0;
}

START_TEST(stacks_are_emptied_after_a_peak)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 4,
	};

	(void)must_run(&config, peaks_come_and_go, NULL);
}
END_TEST

/* Peaks that come again and again within a second keep their stacks. */
static int64_t peaks_come_often(void *arg)
{
	(void)arg;
	for (int i = 0; i < 30; i++) {
		peak();
		EXPECT(weft_sleep(WEFT_MS(200)) == 0);
	}
	EXPECT(emptied() == 0);
	return 0;
}

START_TEST(stacks_in_regular_use_are_kept)
{
	struct fake_config config = {
		.seed = seed_of(_i),
		.workers = 1 + (unsigned)_i % 4,
	};

	(void)must_run(&config, peaks_come_often, NULL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("sched/trim");
	TCase *tests = tcase_create("trim");

	tcase_set_timeout(tests, 60);
	tcase_add_loop_test(tests, stacks_are_emptied_after_a_peak, 0,
			    seeds(8));
	tcase_add_loop_test(tests, stacks_in_regular_use_are_kept, 0, seeds(8));
	suite_add_tcase(s, tests);
	return s;
}

int main(void)
{
	Suite *(*const make[])(void) = { suite };

	return run_suites(make, 1);
}
