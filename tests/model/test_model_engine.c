/* SPDX-License-Identifier: MIT */
/*
 * Tests of the checker's search: it must find one planted error of each kind,
 * and nothing in the correct twin of each.
 */
#include <stdlib.h>
#include <stdio.h>

#include "tests/model/litmus.h"

/* Runs the model and returns what was violated, or "". */
static const char *violation(const struct model_opts *given,
			     model_fn *const threads[], size_t n)
{
	static struct model_result result;
	struct model_opts opts = *given;

	opts.quiet = true;
	result = model_run(&opts, setup, threads, n, NULL);
	ck_assert(result.violated == (result.text[0] != '\0'));
	return result.text;
}

#define VIOLATION(...)                                                       \
	violation(&(struct model_opts){ .name = "engine" },                  \
		  (model_fn *const[]){ __VA_ARGS__ },                        \
		  sizeof((model_fn *const[]){ __VA_ARGS__ }) /               \
			  sizeof(model_fn *))

#define ck_assert_found(text, what) ck_assert_msg(strstr((text), (what)),    \
						  "found \"%s\"", (text))

/* --- Violations --------------------------------------------------------- */

THREAD(write_and_release, model_data_write(&m.data); m.data = 1;
       weft__store(&m.y, 1, release);)
THREAD(write_and_relax, model_data_write(&m.data); m.data = 1;
       weft__store(&m.y, 1, relaxed);)
THREAD(acquire_and_read, if (weft__load(&m.y, acquire)) {
	model_data_read(&m.data);
	model_assert(m.data == 1, "the data was published");
})
THREAD(read_data, model_data_read(&m.data);)
THREAD(write_data, model_data_write(&m.data);)

START_TEST(publishing_without_release_is_a_data_race)
{
	ck_assert_str_eq(VIOLATION(write_and_release, acquire_and_read), "");
	ck_assert_found(VIOLATION(write_and_relax, acquire_and_read),
			"data race: T1 reads data while T0 writes it");
	ck_assert_found(VIOLATION(read_data, write_data), "data race");
	ck_assert_found(VIOLATION(write_data, write_data), "data race");
	ck_assert_str_eq(VIOLATION(read_data, read_data), "");
}
END_TEST

static void lock_release(bool relaxed)
{
	uint32_t zero = 0;

	while (!weft__cas(&m.x, &zero, 1, acquire)) {
		zero = 0;
		weft__spin_hint();
	}
	model_data_write(&m.data);
	m.data++;
	if (relaxed)
		weft__store(&m.x, 0, relaxed);
	else
		weft__store(&m.x, 0, release);
}

THREAD(locked, lock_release(false);)
THREAD(locked_badly, lock_release(true);)

START_TEST(cas_lock_excludes_and_its_spinning_ends)
{
	ck_assert_str_eq(VIOLATION(locked, locked, locked), "");
	ck_assert_found(VIOLATION(locked_badly, locked), "data race");
}
END_TEST

THREAD(swap_locked, for (int i = 0; i < 2; i++) {
	while (weft__swap(&m.x, 1, acquire))
		weft__spin_hint();
	model_data_write(&m.data);
	weft__store(&m.x, 0, release);
})

START_TEST(swap_lock_excludes_and_its_spinning_ends)
{
	ck_assert_str_eq(VIOLATION(swap_locked, swap_locked), "");
}
END_TEST

/* x: work, y: sleepers, z: the futex word. */
static void sleeper(bool recheck)
{
	if (weft__load(&m.x, acquire))
		return;
	weft__store(&m.y, 1, seq_cst);
	if (recheck && weft__load(&m.x, seq_cst))
		return;
	while (weft__load(&m.z, acquire) == 0)
		model_park(&m.z, 0);
}

THREAD(sleep_rechecked, sleeper(true);)
THREAD(sleep_unchecked, sleeper(false);)
THREAD(waker, weft__store(&m.x, 1, seq_cst);
       if (weft__load(&m.y, seq_cst)) {
	       weft__store(&m.z, 1, release);
	       model_unpark(&m.z, 1);
       })
THREAD(waker_release, weft__store(&m.x, 1, release);
       if (weft__load(&m.y, seq_cst)) {
	       weft__store(&m.z, 1, release);
	       model_unpark(&m.z, 1);
       })

START_TEST(lost_wakeup_is_a_deadlock)
{
	ck_assert_str_eq(VIOLATION(sleep_rechecked, waker), "");
	ck_assert_found(VIOLATION(sleep_unchecked, waker),
			"deadlock: T0 is parked on z");
	ck_assert_found(VIOLATION(sleep_rechecked, waker_release), "deadlock");
}
END_TEST

static struct model_event event;
static struct model_mutex mutexes[2];

THREAD(post, weft__store(&m.x, 1, relaxed); model_post(&event);)
THREAD(wait, model_wait(&event);
       model_assert(weft__load(&m.x, relaxed) == 1, "a post carries all");)
THREAD(serve, model_daemon(); for (;;) model_wait(&event);)

START_TEST(event_wakes_and_synchronises)
{
	event.count = 0;
	ck_assert_str_eq(VIOLATION(wait, post), "");
	ck_assert_found(VIOLATION(wait), "deadlock: T0 is waiting for");
	ck_assert_str_eq(VIOLATION(serve, post), "");
}
END_TEST

static void lock_both(struct model_mutex *a, struct model_mutex *b)
{
	model_lock(a);
	model_lock(b);
	model_data_write(&m.data);
	model_unlock(b);
	model_unlock(a);
}

THREAD(lock_01, lock_both(&mutexes[0], &mutexes[1]);)
THREAD(lock_10, lock_both(&mutexes[1], &mutexes[0]);)

static void setup_mutexes(void *arg)
{
	setup(arg);
	memset(mutexes, 0, sizeof(mutexes));
}

START_TEST(mutexes_exclude_and_their_deadlocks_are_found)
{
	const struct model_opts opts = { .name = "mutex", .quiet = true };
	model_fn *const same[] = { lock_01, lock_01, lock_01 };
	model_fn *const crossed[] = { lock_01, lock_10 };
	struct model_result result;

	result = model_run(&opts, setup_mutexes, same, 3, NULL);
	ck_assert_str_eq(result.text, "");
	result = model_run(&opts, setup_mutexes, crossed, 2, NULL);
	ck_assert_found(result.text, "deadlock");
}
END_TEST

THREAD(use, if (weft__load(&m.x, relaxed) == 0) weft__load(&m.y, relaxed);)
THREAD(use_and_tell, weft__load(&m.y, relaxed); weft__store(&m.x, 1, release);)
THREAD(free_y, weft__store(&m.x, 1, relaxed); model_free(&m.y, 4);)
THREAD(free_when_told, if (weft__load(&m.x, acquire)) {
	model_free(&m.y, 4);
	model_renew(&m.y, 4);
	weft__store(&m.y, 5, relaxed);
})

START_TEST(use_of_freed_memory_is_found)
{
	ck_assert_found(VIOLATION(use, free_y), "use after free");
	ck_assert_found(VIOLATION(free_y, use), "use after free");
	ck_assert_str_eq(VIOLATION(use_and_tell, free_when_told), "");
}
END_TEST

THREAD(crash, if (weft__add(&m.x, 1, relaxed) == 1) abort();)
THREAD(store_plainly, weft__store(&m.x, 1, relaxed); m.x = 2;
       weft__load(&m.x, relaxed);)
THREAD(turn_for_ever, for (;;) weft__add(&m.x, 1, relaxed);)
THREAD(spin_for_ever, while (!weft__load(&m.x, relaxed)) weft__spin_hint();)

START_TEST(crashes_livelocks_and_plain_stores_are_violations)
{
	model_fn *const threads[] = { turn_for_ever };
	struct model_result result;

	ck_assert_found(VIOLATION(crash, crash), "crashed: Aborted");
	ck_assert_found(VIOLATION(store_plainly), "x: changed by a plain");
	ck_assert_found(VIOLATION(spin_for_ever),
			"deadlock: T0 is spinning for ever");
	ck_assert_found(violation(&(struct model_opts){ .steps = 20 }, threads,
				  1), "livelock");
	result = model_run(&(struct model_opts){ .quiet = true, .steps = 20,
						 .prune = true },
			   setup, threads, 1, NULL);
	ck_assert(!result.violated && result.pruned == 1);
}
END_TEST

static unsigned executions_so_far;

THREAD(change_mind, if (executions_so_far++ == 0) model_choose(3);
       else model_choose(2);)

START_TEST(model_that_depends_on_its_past_is_reported)
{
	executions_so_far = 0;
	ck_assert_found(VIOLATION(change_mind), "not deterministic");
}
END_TEST

/* --- Search ------------------------------------------------------------- */

THREAD(alternate, for (unsigned i = 0; i < 3; i++)
       m.r[i] = weft__add(&m.x, 1, relaxed);
       model_assert(m.r[0] != 0 || m.r[1] != 2 || m.r[2] != 4,
		    "they never alternate");)
THREAD(add_twice, weft__add(&m.x, 1, relaxed); weft__add(&m.x, 1, relaxed);)

/* 0 1 0 1 0 takes three preemptions: the last switch is free, T1 is done. */
START_TEST(preemption_bound_is_respected)
{
	model_fn *const threads[] = { alternate, add_twice };
	struct model_opts opts = { .preemptions = 2 };

	ck_assert_str_eq(violation(&opts, threads, 2), "");
	opts.preemptions = 3;
	ck_assert_str_ne(violation(&opts, threads, 2), "");
}
END_TEST

START_TEST(violation_is_replayed_from_its_string)
{
	const struct model_opts opts = { .name = "replay", .quiet = true };
	model_fn *const threads[] = { sleep_rechecked, waker_release };
	struct model_result first, again;
	char replay[4200];

	first = model_run(&opts, setup, threads, 2, NULL);
	ck_assert(first.violated);
	snprintf(replay, sizeof(replay), "replay:%s", first.replay);
	setenv("MODEL_REPLAY", replay, 1);
	again = model_run(&opts, setup, threads, 2, NULL);
	unsetenv("MODEL_REPLAY");
	ck_assert_uint_eq(again.executions, 1);
	ck_assert_str_eq(again.text, first.text);
}
END_TEST

static unsigned chosen[3];

THREAD(choose_two, unsigned a = model_choose(3); chosen[a]++;
       chosen[model_choose(2)]++;)

START_TEST(every_choice_is_tried)
{
	ck_assert_str_eq(VIOLATION(choose_two), "");
	ck_assert_uint_eq(chosen[0], 2 + 3);
	ck_assert_uint_eq(chosen[1], 2 + 3);
	ck_assert_uint_eq(chosen[2], 2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model/engine");
	SRunner *runner = srunner_create(suite);
	int failed;

	add_tests(suite, "violations", (const TTest *const[]){
		publishing_without_release_is_a_data_race,
		cas_lock_excludes_and_its_spinning_ends,
		swap_lock_excludes_and_its_spinning_ends,
		lost_wakeup_is_a_deadlock, event_wakes_and_synchronises,
		mutexes_exclude_and_their_deadlocks_are_found,
		use_of_freed_memory_is_found,
		crashes_livelocks_and_plain_stores_are_violations,
		model_that_depends_on_its_past_is_reported, NULL });
	add_tests(suite, "search", (const TTest *const[]){
		preemption_bound_is_respected,
		violation_is_replayed_from_its_string, every_choice_is_tried,
		NULL });
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
