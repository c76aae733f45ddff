/* SPDX-License-Identifier: MIT */
/*
 * Suite fault/allocator: what a runtime allocates comes from the program's
 * functions, and goes back to them.
 *
 * The scenes of the sweep (tests/fault/fault_scene.c), in which nothing fails
 * here, go through all that weft allocates.  The allocator checks each block
 * that it gets back (counting_allocator.h), and no call of malloc() remains
 * (heap_watch.h).
 */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "runtime/base/lock.h"
#include "tests/fault/counting_allocator.h"
#include "tests/fault/fault_scene.h"
#include "tests/support/engine.h"
#include "tests/support/features.h"
#include "tests/support/needs.h"

/* Sanitizers make frames larger, and a crowd of tasks slow. */
#ifdef WEFT_TEST_INSTRUMENTED
enum { HAS_SMALL_FRAMES = 0 };
#else
enum { HAS_SMALL_FRAMES = 1 };
#endif

static bool is_too_slow(const struct fault_scene *scene)
{
	return !HAS_SMALL_FRAMES && strcmp(scene->name, "crowd") == 0;
}

/* Nothing fails here. */
bool fault_fired(void)
{
	return false;
}

bool fault_forbids(void)
{
	return false;
}

/* The frames of tasks are libdw's memory, which its caller frees. */
static bool uses_libdw(const struct fault_scene *scene)
{
	return scene->run == scene_dump || scene->run == scene_lookout;
}

/* The calls of malloc() that pthread_atfork() makes, which the first runtime
 * calls: in a static program those of musl are seen, and its memory stays. */
static uint64_t calls_of_atfork(void)
{
	uint64_t before = heap_calls().taken;

	ck_assert_int_eq(pthread_atfork(NULL, NULL, NULL), 0);
	return heap_calls().taken - before;
}

static void run_counted(const struct fault_scene *scene, unsigned workers,
			size_t allocator_stack_bytes)
{
	uint64_t of_atfork = calls_of_atfork();
	struct heap_calls before = heap_calls(), after;
	struct counting counting;

	counting_init(&counting);
	counting.stack_bytes = allocator_stack_bytes;
	scene_allocator = &counting.allocator;
	scene->run(workers);
	after = heap_calls();
	ck_assert_msg(after.taken - before.taken <= of_atfork,
		      "'%s': weft called malloc() %llu times, at last from %p",
		      scene->name,
		      (unsigned long long)(after.taken - before.taken),
		      after.caller);
	if (!uses_libdw(scene))
		ck_assert_msg(after.given_back == before.given_back,
			      "'%s': weft called free()", scene->name);
	ck_assert_msg(counting_taken(&counting) > 0,
		      "'%s': the allocator was not asked", scene->name);
	ck_assert_msg(counting_bytes(&counting) == 0,
		      "'%s': %llu bytes were not given back", scene->name,
		      (unsigned long long)counting_bytes(&counting));
}

static void run_on(const char *engine, int i)
{
	const struct fault_scene *scene = &fault_scenes[i / 2];
	unsigned workers = i % 2 ? 2 : 1;

	/* With the other engine and one worker its memory is the same. */
	if (is_too_slow(scene) && (workers == 1 || strcmp(engine, "epoll")))
		return;
	ck_assert_int_eq(setenv("WEFT_ENGINE", engine, 1), 0);
	run_counted(scene, workers, 0);
}

START_TEST(all_is_given_back_on_io_uring)
{
	run_on("uring", _i);
}
END_TEST

START_TEST(all_is_given_back_on_epoll)
{
	run_on("epoll", _i);
}
END_TEST

/* As much as is promised to the functions, on the smallest stacks. */
START_TEST(a_small_stack_has_room_for_the_allocator)
{
	scene_stack_bytes = 16 << 10;
	run_counted(&fault_scenes[_i], 2, 4 << 10);
}
END_TEST

/* Without this the counts above would show nothing. */
START_TEST(the_default_is_malloc)
{
	/* In a static program those of the C library are seen, and not all of
	 * those by which it gives memory back. */
	bool sees_all = calls_of_atfork() > 0;
	struct heap_calls before = heap_calls(), after;

	if (is_too_slow(&fault_scenes[_i]))
		return;
	scene_allocator = NULL;
	fault_scenes[_i].run(2);
	after = heap_calls();
	ck_assert_uint_gt(after.taken, before.taken);
	if (!uses_libdw(&fault_scenes[_i]) && !sees_all)
		ck_assert_uint_eq(after.given_back - before.given_back,
				  after.taken - before.taken);
}
END_TEST

/* ---- Objects and runtimes ------------------------------------------------ */

static struct weft_oneshot *oneshot;

static int64_t make_oneshot(void *arg)
{
	const uint64_t value = 7;

	(void)arg;
	EXPECT(weft_oneshot_new(sizeof(value), &oneshot) == 0);
	EXPECT(weft_oneshot_send(oneshot, &value) == 0);
	return 0;
}

static int run_with(const struct weft_allocator *allocator, weft_fn fn,
		    void *arg)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	opts.allocator = allocator;
	return (int)weft_run(fn, arg, &opts);
}

/* The runtime has a copy of the struct, and the oneshot another. */
START_TEST(a_oneshot_may_outlive_its_runtime)
{
	struct counting counting;
	struct weft_allocator moved;
	uint64_t value = 0;

	counting_init(&counting);
	moved = counting.allocator;
	ck_assert_int_eq(run_with(&moved, make_oneshot, NULL), 0);
	memset(&moved, 0, sizeof(moved));
	ck_assert_uint_gt(counting_bytes(&counting), 0);
	ck_assert_int_eq(weft_oneshot_try_recv(oneshot, &value), 0);
	ck_assert_uint_eq(value, 7);
	ck_assert_uint_eq(counting_bytes(&counting), 0);
}
END_TEST

START_TEST(a_oneshot_outside_of_tasks_is_from_malloc)
{
	/* Without an assertion between them, which allocates. */
	struct heap_calls before = heap_calls(), after;
	int r = weft_oneshot_new(1, &oneshot);

	if (r == 0) {
		weft_oneshot_drop(oneshot);
		weft_oneshot_abandon(oneshot);
	}
	after = heap_calls();
	ck_assert_int_eq(r, 0);
	ck_assert_uint_eq(after.taken, before.taken + 1);
	ck_assert_uint_eq(after.given_back, before.given_back + 1);
}
END_TEST

static int64_t nothing(void *arg)
{
	(void)arg;
	return 0;
}

/* Each has memory of its own alone; the allocators check that. */
START_TEST(runtimes_have_their_own)
{
	struct counting counting[2];
	struct weft_runtime *runtimes[2];
	char big[300] = { 0 };

	for (int i = 0; i < 2; i++) {
		struct weft_opts opts = WEFT_OPTS_INIT;

		counting_init(&counting[i]);
		opts.workers = 2;
		opts.allocator = &counting[i].allocator;
		ck_assert_int_eq(weft_start(&opts, &runtimes[i]), 0);
	}
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(weft_submit(runtimes[i % 2], nothing, big,
					     sizeof(big), NULL),
				 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_gt(counting_taken(&counting[i]), 0);
		ck_assert_int_eq(weft_stop(runtimes[i]), 0);
		ck_assert_uint_eq(counting_bytes(&counting[i]), 0);
	}
}
END_TEST

START_TEST(both_functions_are_needed)
{
	struct counting counting;
	struct weft_allocator half;

	counting_init(&counting);
	half = counting.allocator;
	half.dealloc = NULL;
	ck_assert_int_eq(run_with(&half, nothing, NULL), -EINVAL);
	half = counting.allocator;
	half.alloc = NULL;
	ck_assert_int_eq(run_with(&half, nothing, NULL), -EINVAL);
	ck_assert_uint_eq(counting_taken(&counting), 0);
}
END_TEST

/* ---- A stream that is left open ------------------------------------------ */

static struct weft_stream left_open;

static int64_t peek_once(void *arg)
{
	int *fds = arg;
	const void *data;

	weft_stream_init(&left_open, fds[0]);
	EXPECT(write(fds[1], "a", 1) == 1);
	EXPECT(weft_stream_peek(&left_open, &data) == 1);
	return 0;
}

/* So that LeakSanitizer finds it. */
static void *kept;

static void *alloc_and_keep(size_t bytes, size_t align, void *arg)
{
	void *memory = counting_alloc(bytes, align, arg);

	if (bytes > 1 << 20)
		kept = memory;
	return memory;
}

/* Its request may receive at any time: the memory is not used again. */
START_TEST(a_stream_left_open_keeps_its_buffers)
{
	struct counting counting;
	int fds[2];

	if (!test_needs(test_is_unmasked(WEFT__FEATURE_MULTISHOT_RECV),
			"a_stream_left_open_keeps_its_buffers",
			NEEDS_MULTISHOT))
		return;
	scene_socket_pair(fds);
	counting_init(&counting);
	counting.allocator.alloc = alloc_and_keep;
	ck_assert_int_eq(run_with(&counting.allocator, peek_once, fds), 0);
	ck_assert_uint_gt(counting_bytes(&counting), 0);
	ck_assert_ptr_nonnull(kept);
	ck_assert_int_eq(write(fds[1], "b", 1), 1);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

/* Memory that ends when the test wants it to. */
struct purse {
	struct counting counting;
	weft__atomic(bool) is_empty;
};

static void *purse_alloc(size_t bytes, size_t align, void *arg)
{
	struct purse *purse = arg;

	/* relaxed: the only worker has set it. */
	return weft__load(&purse->is_empty, relaxed) ?
		       NULL :
		       counting_alloc(bytes, align, &purse->counting);
}

static void purse_dealloc(void *memory, size_t bytes, size_t align, void *arg)
{
	struct purse *purse = arg;

	counting_dealloc(memory, bytes, align, &purse->counting);
}

static int64_t end_at_once(void *arg)
{
	(void)arg;
	return 0;
}

static int64_t select_without_memory(void *arg)
{
	struct purse *purse = arg;
	int fds[2], error = 0;

	scene_socket_pair(fds);
	WEFT_SUPERVISE (scope) {
		struct weft_case one = WEFT_READY(fds[0], POLLIN);

		/* relaxed: both are this worker's. */
		weft__store(&purse->is_empty, true, relaxed);
		while (error == 0)
			error = weft_go(scope, end_at_once, NULL, 0);
		EXPECT(error == -ENOMEM);
		EXPECT(weft_select(&one, 1) == -ENOMEM);
		weft__store(&purse->is_empty, false, relaxed);
	}
	EXPECT(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	return 0;
}

START_TEST(a_select_that_needs_a_task_needs_memory)
{
	struct purse purse = { .is_empty = false };
	struct weft_allocator allocator = { purse_alloc, purse_dealloc,
					    &purse };
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	opts.allocator = &allocator;
	ck_assert_int_eq(weft_run(select_without_memory, &purse, &opts), 0);
	ck_assert_uint_eq(counting_bytes(&purse.counting), 0);
}
END_TEST

static Suite *fault_suite(void)
{
	Suite *suite = suite_create("fault/allocator");
	TCase *scenes = tcase_create("scenes");
	TCase *objects = tcase_create("objects");

	tcase_set_timeout(scenes, 300);
	if (test_needs(test_has_uring_at_all(),
		       "all_is_given_back_on_io_uring", NEEDS_URING))
		tcase_add_loop_test(scenes, all_is_given_back_on_io_uring, 0,
				    2 * fault_scenes_count);
	tcase_add_loop_test(scenes, all_is_given_back_on_epoll, 0,
			    2 * fault_scenes_count);
	tcase_add_loop_test(scenes, the_default_is_malloc, 0,
			    fault_scenes_count);
	if (test_needs(HAS_SMALL_FRAMES,
		       "a_small_stack_has_room_for_the_allocator",
		       "frames of their usual size"))
		tcase_add_loop_test(scenes,
				    a_small_stack_has_room_for_the_allocator, 0,
				    fault_scenes_count);
	suite_add_tcase(suite, scenes);

	tcase_add_test(objects, a_oneshot_may_outlive_its_runtime);
	tcase_add_test(objects, a_oneshot_outside_of_tasks_is_from_malloc);
	tcase_add_test(objects, runtimes_have_their_own);
	tcase_add_test(objects, both_functions_are_needed);
	tcase_add_test(objects, a_stream_left_open_keeps_its_buffers);
	tcase_add_test(objects, a_select_that_needs_a_task_needs_memory);
	suite_add_tcase(suite, objects);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(fault_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
