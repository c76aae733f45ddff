/* SPDX-License-Identifier: MIT */
/*
 * Suite fs/pipeline: the order of items, how many there are at a time, and that
 * each is dropped exactly once, whatever ends the pipeline.  On virtual time,
 * over seeds and numbers of workers; the steps take random times.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <weft/weft.h>

#include "tests/support/sync_scene.h"

enum { NEXT, WORK, DELIVER, STEPS, NONE };
enum { COUNT_MAX = 64, ERROR = -EXDEV };

struct item {
	unsigned number;
	size_t bytes;
	bool admitted;
	uint64_t unused[3];
};

/* The work of the steps. */
static struct plan {
	unsigned count;	  /* of items */
	int fails;	  /* the step that fails */
	unsigned fails_at; /* for this item */
	size_t bytes;	  /* of an item, at most; random */
	bool quick;	  /* no step takes time */
	bool computes;	  /* work() does not suspend */
	weft_nsec slow_ns[STEPS];
	unsigned slow_item; /* the only one of which work() is slow, if that
			       is slow */
} plan;

/* Their traces. */
static struct seen {
	unsigned made, in_flight, delivered, working;
	unsigned in_flight_most, working_most, done_before_first;
	unsigned dropped[COUNT_MAX], order[COUNT_MAX], reports;
	uint64_t items_reported, bytes_reported;
	size_t bytes, bytes_delivered;
	int in_step[STEPS];
	bool failed;
} seen;

static struct weft_pipeline pipeline;

/* A moment that can be interrupted. */
static int take_time(int step, unsigned number)
{
	weft_nsec slow_ns = plan.slow_ns[step];

	if (step == WORK && number != plan.slow_item)
		slow_ns = 0;
	if (slow_ns)
		return weft_sleep(slow_ns);
	if (plan.quick)
		return 0;
	if (step == WORK && plan.computes) {
		fake_compute(WEFT_US(50));
		return 0;
	}
	switch (fake_random(4)) {
	case 0:
		return weft_yield();
	case 1:
		fake_compute(fake_random(20000));
		return 0;
	case 2:
		return weft_sleep(1 + fake_random(50000));
	default:
		return 0;
	}
}

/* After an error no step begins. */
static int step_run(int step, unsigned number)
{
	int r;

	EXPECT(!seen.failed);
	seen.in_step[step]++;
	EXPECT(step == WORK || seen.in_step[step] == 1);
	r = take_time(step, number);
	seen.in_step[step]--;
	if (r == 0 && step == plan.fails && number == plan.fails_at &&
	    !seen.failed)
		r = ERROR;
	seen.failed |= r < 0;
	return r;
}

static int next_item(void *arg, void *of, size_t *ret_bytes)
{
	static const struct item blank;
	struct item *item = of;
	int r;

	EXPECT(arg == &plan && *ret_bytes == 0);
	EXPECT(memcmp(item, &blank, sizeof(blank)) == 0);
	EXPECT(seen.in_flight < pipeline.items_max);
	r = step_run(NEXT, seen.made);
	if (r < 0)
		return r;
	if (seen.made == plan.count)
		return 0;
	item->number = seen.made++;
	item->bytes = plan.bytes ? fake_random(plan.bytes + 1) : 0;
	*ret_bytes = item->bytes;
	if (++seen.in_flight > seen.in_flight_most)
		seen.in_flight_most = seen.in_flight;
	return 1;
}

static int work_item(void *arg, void *of)
{
	struct item *item = of;
	int r;

	EXPECT(arg == &plan);
	item->admitted = true;
	EXPECT(seen.bytes == 0 || !pipeline.bytes_max ||
	       seen.bytes + item->bytes <= pipeline.bytes_max);
	seen.bytes += item->bytes;
	if (++seen.working > seen.working_most)
		seen.working_most = seen.working;
	EXPECT(seen.working <= pipeline.tasks);
	r = step_run(WORK, item->number);
	seen.working--;
	if (item->number > 0 && seen.delivered == 0)
		seen.done_before_first++;
	return r;
}

static int deliver_item(void *arg, void *of)
{
	struct item *item = of;
	int r;

	EXPECT(arg == &plan && item->admitted);
	if (!(pipeline.flags & WEFT_PIPELINE_UNORDERED))
		EXPECT(item->number == seen.delivered);
	r = step_run(DELIVER, item->number);
	if (r < 0)
		return r;
	seen.order[seen.delivered++] = item->number;
	seen.bytes_delivered += item->bytes;
	return 0;
}

static void drop_item(void *arg, void *of)
{
	struct item *item = of;

	EXPECT(arg == &plan);
	EXPECT(weft_yield() == 0);
	if (item->admitted)
		seen.bytes -= item->bytes;
	seen.in_flight--;
	EXPECT(++seen.dropped[item->number] == 1);
}

static void note_progress(void *arg, uint64_t items, uint64_t bytes)
{
	EXPECT(arg == &plan && items >= seen.items_reported);
	EXPECT(items == seen.delivered && bytes == seen.bytes_delivered);
	seen.items_reported = items;
	seen.bytes_reported = bytes;
	seen.reports++;
}

static void plan_begin(unsigned count)
{
	plan = (struct plan){ .count = count, .fails = NONE };
	pipeline = (struct weft_pipeline)WEFT_PIPELINE_INIT(struct item);
	pipeline.next = next_item;
	pipeline.work = work_item;
	pipeline.deliver = deliver_item;
	pipeline.drop = drop_item;
	pipeline.progress = note_progress;
	pipeline.arg = &plan;
	pipeline.items_max = 1 + (unsigned)fake_random(9);
	pipeline.tasks = 1 + (unsigned)fake_random(pipeline.items_max);
}

static int plan_run(void)
{
	int r;

	seen = (struct seen){ 0 };
	r = weft_pipeline_run(&pipeline);
	EXPECT(seen.in_flight == 0 && seen.bytes == 0 && seen.working == 0);
	for (unsigned i = 0; i < COUNT_MAX; i++)
		EXPECT(seen.dropped[i] == (i < seen.made));
	EXPECT(seen.in_step[NEXT] + seen.in_step[WORK] == 0);
	if (r == 0)
		EXPECT(seen.delivered == plan.count &&
		       seen.items_reported == plan.count &&
		       seen.bytes_reported == seen.bytes_delivered);
	return r;
}

/* ---- Order, bounds ------------------------------------------------------- */

static int64_t run_some(void *arg)
{
	(void)arg;
	for (unsigned count = 0; count <= 40; count = count * 3 + 1) {
		plan_begin(count);
		EXPECT(plan_run() == 0);
		plan_begin(count);
		plan.bytes = 1000;
		pipeline.bytes_max = 1 + fake_random(3000);
		EXPECT(plan_run() == 0);
	}
	return 0;
}

/* And never more of them, nor of their bytes, than allowed. */
START_TEST(items_are_delivered_in_order)
{
	(void)run_main(_i, run_some);
}
END_TEST

static int64_t run_unordered(void *arg)
{
	unsigned sum = 0;

	(void)arg;
	plan_begin(40);
	pipeline.flags = WEFT_PIPELINE_UNORDERED;
	pipeline.items_max = 4;
	pipeline.tasks = 2;
	plan.slow_ns[WORK] = WEFT_SEC(1);
	EXPECT(plan_run() == 0);
	for (unsigned i = 0; i < 40; i++)
		sum += seen.order[i];
	EXPECT(sum == 40 * 39 / 2);
	/* The slow one held up none. */
	EXPECT(seen.order[39] == 0);
	return 0;
}

START_TEST(order_may_be_of_no_interest)
{
	(void)run_main(_i, run_unordered);
}
END_TEST

/* The oldest item is slow: the others are done up to the bound, by the tasks
 * that do not work on it. */
static int64_t run_slow_first(void *arg)
{
	(void)arg;
	plan_begin(40);
	pipeline.items_max = 10;
	pipeline.tasks = 2;
	plan.slow_ns[WORK] = WEFT_SEC(1);
	EXPECT(plan_run() == 0);
	EXPECT(seen.done_before_first == 9 && seen.in_flight_most == 10);
	return 0;
}

START_TEST(slow_item_lets_others_be_done)
{
	(void)run_main(_i, run_slow_first);
}
END_TEST

/* Each item takes a second: so many at a time, so many seconds. */
static int64_t run_slow_step(void *arg)
{
	(void)arg;
	for (int step = 0; step < STEPS; step++) {
		weft_nsec from_ns = weft_now();

		plan_begin(8);
		pipeline.items_max = pipeline.tasks = 4;
		plan.quick = true;
		plan.slow_ns[step] = WEFT_SEC(1);
		EXPECT(plan_run() == 0);
		/* next() is also called for the end, and work() is slow for
		 * one item. */
		EXPECT((weft_now() - from_ns) / WEFT_SEC(1) ==
		       (step == NEXT ? 9 : step == WORK ? 1 : 8));
		EXPECT(step != DELIVER || seen.in_flight_most == 4);
	}
	return 0;
}

START_TEST(slow_step_delays_no_other)
{
	(void)run_main(_i, run_slow_step);
}
END_TEST

static int count_down(void *arg, void *of, size_t *ret_bytes)
{
	unsigned *left = arg;

	(void)ret_bytes;
	*(unsigned *)of = *left;
	return *left && (*left)--;
}

static int sleep_long(void *arg, void *of)
{
	(void)arg;
	(void)of;
	return weft_sleep(WEFT_SEC(1));
}

static int64_t run_parallel(void *arg)
{
	struct weft_pipeline all = WEFT_PIPELINE_INIT(unsigned);
	unsigned left = 40;
	weft_nsec from_ns = weft_now();

	(void)arg;
	all.next = count_down;
	all.work = sleep_long;
	all.arg = &left;
	EXPECT(weft_pipeline_run(&all) == 0);
	/* Four tasks for each of two workers. */
	EXPECT((weft_now() - from_ns) / WEFT_SEC(1) == 5);
	return 0;
}

START_TEST(work_is_done_in_parallel)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 2 };

	(void)must_run(&config, run_parallel, NULL);
}
END_TEST

static int64_t run_huge(void *arg)
{
	(void)arg;
	plan_begin(40);
	plan.bytes = SIZE_MAX - 1;
	pipeline.bytes_max = 10;
	pipeline.progress = NULL;
	seen = (struct seen){ 0 };
	EXPECT(weft_pipeline_run(&pipeline) == 0);
	EXPECT(seen.delivered == 40 && seen.working_most == 1);
	return 0;
}

START_TEST(item_larger_than_the_bound_is_alone)
{
	(void)run_main(_i, run_huge);
}
END_TEST

/* ---- Ends ---------------------------------------------------------------- */

static int64_t run_failing(void *arg)
{
	(void)arg;
	for (int step = 0; step < STEPS; step++)
		for (unsigned at = 0; at < 7; at++) {
			plan_begin(7);
			plan.fails = step;
			plan.fails_at = at;
			EXPECT(plan_run() == ERROR);
			EXPECT(seen.delivered <= at && seen.failed);
		}
	/* For the end, too. */
	plan_begin(7);
	plan.fails = NEXT;
	plan.fails_at = 7;
	EXPECT(plan_run() == ERROR);
	return 0;
}

START_TEST(first_error_of_a_step_ends_the_pipeline)
{
	(void)run_main(_i, run_failing);
}
END_TEST

static int64_t run_as_child(void *arg)
{
	(void)arg;
	return plan_run();
}

static int64_t run_cancelled(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		struct weft_task task;
		int64_t r = 0;

		plan_begin(40);
		plan.bytes = 1000;
		pipeline.bytes_max = 2000;
		WEFT_SUPERVISE (tasks) {
			task = start(tasks, run_as_child, NULL, 0);
			EXPECT(weft_sleep(fake_random(WEFT_US(500))) == 0);
			(void)weft_cancel(task);
			EXPECT(weft_join(task, &r) == 0);
		}
		EXPECT(r == -ECANCELED || (r == 0 && seen.delivered == 40));
	}
	return 0;
}

START_TEST(cancelled_pipeline_drops_what_it_has)
{
	(void)run_main(_i, run_cancelled);
}
END_TEST

/* Also where no step suspends. */
static int64_t run_late(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20; i++) {
		weft_nsec until_ns = fake_random(WEFT_MS(2)), from_ns;
		int r = 0;

		plan_begin(40);
		plan.computes = i % 2;
		from_ns = weft_now();
		WEFT_WITHIN (until_ns)
			r = plan_run();
		EXPECT(r == -ETIMEDOUT || (r == 0 && seen.delivered == 40));
		EXPECT(weft_now() - from_ns <= until_ns + WEFT_MS(1));
	}
	return 0;
}

START_TEST(deadline_ends_a_pipeline)
{
	(void)run_main(_i, run_late);
}
END_TEST

/* ---- Beside others ------------------------------------------------------- */

static weft_nsec longest_ns;
static bool is_done;

static int64_t look_often(void *arg)
{
	weft_nsec at_ns = weft_now();

	(void)arg;
	while (!is_done) {
		EXPECT(weft_yield() == 0);
		if (weft_now() - at_ns > longest_ns)
			longest_ns = weft_now() - at_ns;
		at_ns = weft_now();
	}
	return 0;
}

static int compute(void *arg, void *of)
{
	(void)arg;
	(void)of;
	fake_compute(WEFT_US(50));
	return 0;
}

/* Each of two tasks computes for 50 us with an item, and no step suspends: the
 * others wait for a few items at most. */
static int64_t run_beside(void *arg)
{
	struct weft_pipeline all = WEFT_PIPELINE_INIT(unsigned);
	unsigned left = 100;

	(void)arg;
	all.next = count_down;
	all.work = compute;
	all.arg = &left;
	all.tasks = 2;
	longest_ns = 0;
	is_done = false;
	WEFT_SUPERVISE (tasks) {
		EXPECT(weft_go(tasks, look_often, NULL, 0) == 0);
		EXPECT(weft_pipeline_run(&all) == 0);
		is_done = true;
	}
	EXPECT(longest_ns > 0 && longest_ns < WEFT_US(700));
	return 0;
}

START_TEST(other_tasks_run_between_items)
{
	struct fake_config config = { .seed = seed_of(_i), .workers = 1 };

	(void)must_run(&config, run_beside, NULL);
}
END_TEST

static int inner_work(void *arg, void *of)
{
	(void)arg;
	return weft_sleep(*(unsigned *)of + 1);
}
static int outer_work(void *arg, void *of)
{
	struct weft_pipeline inner = WEFT_PIPELINE_INIT(unsigned);
	unsigned left = 10;

	(void)arg;
	(void)of;
	inner.next = count_down;
	inner.work = inner_work;
	inner.arg = &left;
	return weft_pipeline_run(&inner);
}

static int64_t run_nested(void *arg)
{
	struct weft_pipeline outer = WEFT_PIPELINE_INIT(unsigned);
	unsigned left = 10;

	(void)arg;
	outer.next = count_down;
	outer.work = outer_work;
	outer.arg = &left;
	EXPECT(weft_pipeline_run(&outer) == 0);
	return 0;
}

START_TEST(work_may_be_a_pipeline)
{
	(void)run_main(_i, run_nested);
}
END_TEST

/* A runtime with room for two more tasks. */
static int64_t run_crowded(void *arg)
{
	(void)arg;
	plan_begin(20);
	pipeline.items_max = pipeline.tasks = 8;
	EXPECT(plan_run() == 0);
	EXPECT(seen.working_most <= 2);
	WEFT_SUPERVISE (tasks) {
		struct answer answer = { 0, 0, WEFT_SEC(1) };

		EXPECT(weft_go(tasks, give, &answer, sizeof(answer)) == 0);
		EXPECT(weft_go(tasks, give, &answer, sizeof(answer)) == 0);
		EXPECT(plan_run() == -EAGAIN && seen.made == 0);
	}
	return 0;
}

START_TEST(fewer_tasks_will_do)
{
	struct fake_config config = {
		.seed = seed_of(_i), .workers = 2, .tasks_max = 3,
	};

	(void)must_run(&config, run_crowded, NULL);
}
END_TEST

static Suite *pipeline_suite(void)
{
	Suite *suite = suite_create("fs/pipeline");
	TCase *order = tcase_create("order");
	TCase *ends = tcase_create("ends");
	TCase *beside = tcase_create("beside");

	tcase_add_loop_test(order, items_are_delivered_in_order, 0, SEEDS);
	tcase_add_loop_test(order, order_may_be_of_no_interest, 0, SEEDS);
	tcase_add_loop_test(order, slow_item_lets_others_be_done, 0, SEEDS);
	tcase_add_loop_test(order, slow_step_delays_no_other, 0, SEEDS);
	tcase_add_loop_test(order, work_is_done_in_parallel, 0, SEEDS);
	tcase_add_loop_test(order, item_larger_than_the_bound_is_alone, 0,
			    SEEDS);
	tcase_add_loop_test(ends, first_error_of_a_step_ends_the_pipeline, 0,
			    SEEDS);
	tcase_add_loop_test(ends, cancelled_pipeline_drops_what_it_has, 0,
			    SEEDS);
	tcase_add_loop_test(ends, deadline_ends_a_pipeline, 0, SEEDS);
	tcase_add_loop_test(beside, other_tasks_run_between_items, 0, SEEDS);
	tcase_add_loop_test(beside, work_may_be_a_pipeline, 0, SEEDS);
	tcase_add_loop_test(beside, fewer_tasks_will_do, 0, SEEDS);
	suite_add_tcase(suite, order);
	suite_add_tcase(suite, ends);
	suite_add_tcase(suite, beside);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { pipeline_suite };

	return run_suites(make, 1);
}
