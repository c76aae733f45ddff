/* SPDX-License-Identifier: MIT */
/*
 * Suite runtime/lanes: lanes of blocking jobs.
 *
 * A lane is a queue of blocking jobs with a limit on how many of them run at a
 * time.  The pool's threads serve the lanes in turn.  Covered: the limit, the
 * order of lanes and of jobs within a lane, jobs that leave a queue because
 * they were cancelled or ran out of time, and a lane that two runtimes use.
 */
#include "tests/support/blocking_scene.h"
#include "tests/support/death.h"

/* ---- Limits ------------------------------------------------------------- */

POOL_TEST(lane_has_no_more_than_its_limit, 0, 0)
{
	struct weft_lane lane = WEFT_LANE_INIT("two", 2);
	struct gate gate = { 0 };

	WEFT_SUPERVISE(all) {
		pass_start_many(all, 100, &gate, &lane);
		wait_until(pool_stats().queued == 98 &&
			   weft__load(&gate.came, acquire) == 2);
		/* No thread is made for jobs that the lane's limit keeps
		 * waiting. */
		ck_assert_uint_eq(pool_stats().threads, 2);
		gate_open(&gate);
	}
	ck_assert_uint_eq(weft__load(&gate.max_inside, relaxed), 2);
	ck_assert_uint_eq(weft__load(&gate.done, relaxed), 100);
	ck_assert_uint_eq(pool_stats().done, 100);
	return 0;
}

/* F18: name lookups that never end do not delay work on files. */
POOL_TEST(full_lane_delays_no_other, 40, 0)
{
	struct weft_lane slow = WEFT_LANE_INIT("slow", 32);
	struct weft_lane quick = WEFT_LANE_INIT("quick", 0);
	struct gate gate = { 0 };

	WEFT_SUPERVISE(all) {
		pass_start_many(all, 512, &gate, &slow);
		wait_until(pool_stats().queued == 480 &&
			   weft__load(&gate.came, acquire) == 32);
		for (int i = 0; i < 100; i++) {
			ck_assert_int_eq(weft_blocking_lane(
						 &quick, nothing_to_do, NULL),
					 0);
			ck_assert_int_eq(weft_blocking(nothing_to_do, NULL), 0);
		}
		ck_assert_uint_eq(weft__load(&gate.done, relaxed), 0);
		gate_open(&gate);
	}
	ck_assert_uint_eq(weft__load(&gate.max_inside, relaxed), 32);
	ck_assert_uint_eq(weft__load(&gate.done, relaxed), 512);
	return 0;
}

POOL_TEST(zeroed_lane_is_limited_by_the_pool, 5, 0)
{
	struct weft_lane lane = { 0 };
	struct gate gate = { 0 };

	WEFT_SUPERVISE(all) {
		pass_start_many(all, 20, &gate, &lane);
		wait_until(pool_stats().queued == 15 &&
			   weft__load(&gate.came, acquire) == 5);
		gate_open(&gate);
	}
	ck_assert_uint_eq(weft__load(&gate.max_inside, relaxed), 5);
	return 0;
}

/* ---- Turns -------------------------------------------------------------- */

struct entry {
	struct weft_lane *lane;
	char letter;
};

static struct {
	char order[64];
	weft__atomic(unsigned) length;
} book;

/* Only one job runs at a time. */
static int64_t sign(void *arg)
{
	struct entry *entry = arg;
	unsigned length = weft__load(&book.length, relaxed);

	book.order[length] = entry->letter;
	weft__store(&book.length, length + 1, release);
	return 0;
}

static int64_t enter(void *arg)
{
	struct entry *entry = arg;

	return weft_blocking_lane(entry->lane, sign, entry);
}

/* Queues a job for each letter, in the order of the letters. */
static void queue_letters(struct weft_scope *scope, struct weft_lane *lane,
			  const char *letters)
{
	for (; *letters; letters++) {
		struct entry entry = { lane, *letters };
		unsigned before = pool_stats().queued;

		ck_assert_int_eq(WEFT_GO(scope, enter, entry), 0);
		wait_until(pool_stats().queued == before + 1);
	}
}

/* The pool's only thread waits at a gate until all jobs are queued. */
static void expect_order(struct weft_lane *lanes, const char *const *letters,
			 int count, const char *order)
{
	struct gate gate = { 0 };

	memset(&book, 0, sizeof(book));
	WEFT_SUPERVISE(all) {
		pass_start_many(all, 1, &gate, NULL);
		wait_until(weft__load(&gate.came, acquire) == 1);
		for (int i = 0; i < count; i++)
			queue_letters(all, &lanes[i], letters[i]);
		gate_open(&gate);
	}
	ck_assert_str_eq(book.order, order);
}

POOL_TEST(lanes_take_turns, 1, 0)
{
	struct weft_lane lanes[3] = {
		WEFT_LANE_INIT("a", 0),
		WEFT_LANE_INIT("b", 1),
		WEFT_LANE_INIT("c", 7),
	};
	const char *const letters[] = { "abcdefgh", "ABC", "12345" };

	expect_order(lanes, letters, 3, "aA1bB2cC3d4e5fgh");
	/* The lanes take turns in a second round, too. */
	expect_order(lanes, letters, 2, "aAbBcCdefgh");
	return 0;
}

POOL_TEST(lane_is_served_in_the_order_of_asking, 1, 0)
{
	struct weft_lane lane = WEFT_LANE_INIT("one", 1);
	const char *const letters[] = { "abcdefghijklmnopqrstuvwxyz" };

	expect_order(&lane, letters, 1, letters[0]);
	return 0;
}

/* A lane at its limit loses its turn, and gets a turn when one of its jobs
 * ends. */
POOL_TEST(lane_at_its_limit_is_passed_over, 2, 0)
{
	struct weft_lane lanes[2] = {
		WEFT_LANE_INIT("one", 1),
		WEFT_LANE_INIT("other", 0),
	};
	struct gate gate = { 0 }, held = { 0 };

	memset(&book, 0, sizeof(book));
	WEFT_SUPERVISE(all) {
		pass_start_many(all, 1, &held, &lanes[0]);
		pass_start_many(all, 1, &gate, NULL);
		wait_until(weft__load(&gate.came, acquire) == 1 &&
			   weft__load(&held.came, acquire) == 1);
		queue_letters(all, &lanes[0], "ab");
		queue_letters(all, &lanes[1], "123");
		gate_open(&gate);
		wait_until(weft__load(&book.length, acquire) == 3);
		ck_assert_str_eq(book.order, "123");
		gate_open(&held);
	}
	ck_assert_str_eq(book.order, "123ab");
	return 0;
}

/* ---- Leaving a queue ---------------------------------------------------- */

static int64_t enter_within(void *arg)
{
	struct entry *entry = arg;
	int64_t r = 0;

	WEFT_WITHIN(WEFT_MS(20))
		r = weft_blocking_lane(entry->lane, sign, entry);
	ck_assert_int_eq(r, -ETIMEDOUT);
	return 0;
}

static int64_t enter_until_cancelled(void *arg)
{
	ck_assert_int_eq(enter(arg), -ECANCELED);
	return 0;
}

static struct weft_task queue_one(struct weft_scope *scope,
				  struct weft_lane *lane, char letter)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct entry entry = { lane, letter };
	unsigned before = pool_stats().queued;
	struct weft_task task;

	opts.ret_task = &task;
	ck_assert_int_eq(weft_go_opts(scope,
				      letter == '!' ? enter_until_cancelled :
						      enter,
				      &entry, sizeof(entry), &opts),
			 0);
	wait_until(pool_stats().queued == before + 1);
	return task;
}

/* Each '!' is a job that is cancelled while it is queued: one or two, at the
 * front, at the end or between others.  The other jobs keep their order. */
static void give_up(struct weft_lane *lane, const char *letters,
		    const char *order)
{
	struct weft_task tasks[8];
	struct gate gate = { 0 };

	memset(&book, 0, sizeof(book));
	WEFT_SUPERVISE(all) {
		pass_start_many(all, 1, &gate, lane);
		wait_until(weft__load(&gate.came, acquire) == 1);
		for (int i = 0; letters[i]; i++)
			tasks[i] = queue_one(all, lane, letters[i]);
		for (int i = 0; letters[i]; i++) {
			if (letters[i] != '!')
				continue;
			ck_assert_int_eq(weft_cancel(tasks[i]), 0);
			ck_assert_int_eq(weft_join(tasks[i], NULL), 0);
		}
		ck_assert_uint_eq(pool_stats().queued, strlen(order));
		gate_open(&gate);
	}
	ck_assert_str_eq(book.order, order);
	ck_assert_uint_eq(pool_stats().queued, 0);
}

POOL_TEST(who_gives_up_is_taken_out_of_the_lane, 1, 0)
{
	struct weft_lane lane = WEFT_LANE_INIT("one", 1);

	give_up(&lane, "!a!b!", "ab");
	give_up(&lane, "!!ab", "ab");
	give_up(&lane, "ab!!", "ab");
	give_up(&lane, "!", "");
	give_up(&lane, "abc", "abc");
	return 0;
}

/* When its last queued job leaves, a lane is taken out of the turn: its memory
 * may be freed. */
POOL_TEST(lane_may_go_when_all_have_left_it, 1, 0)
{
	struct gate gate = { 0 };

	WEFT_SUPERVISE(all) {
		pass_start_many(all, 1, &gate, NULL);
		wait_until(weft__load(&gate.came, acquire) == 1);
		for (int i = 0; i < 3; i++) {
			struct weft_lane *lane = calloc(1, sizeof(*lane));
			struct entry entry = { lane, '!' };

			WEFT_SUPERVISE(impatient) {
				ck_assert_int_eq(WEFT_GO(impatient,
							 enter_within, entry),
						 0);
				ck_assert_int_eq(WEFT_GO(impatient,
							 enter_within, entry),
						 0);
			}
			memset(lane, 0xff, sizeof(*lane));
			free(lane);
		}
		gate_open(&gate);
		ck_assert_int_eq(weft_blocking(nothing_to_do, NULL), 0);
	}
	return 0;
}

/* ---- Misuse ------------------------------------------------------------- */

static struct weft_lane shared = WEFT_LANE_INIT("shared", 1);

static int64_t use_shared(void *arg)
{
	(void)arg;
	return weft_blocking_lane(&shared, nothing_to_do, NULL);
}

/* A job that starts a second runtime, which uses the lane. */
static int64_t run_another(void *arg)
{
	return weft_run(use_shared, arg, NULL);
}

/* One job runs in the lane; a second one was queued and has left the queue. */
static int64_t use_shared_twice(void *arg)
{
	struct gate gate = { 0 };

	WEFT_SUPERVISE(all) {
		pass_start_many(all, 1, &gate, &shared);
		wait_until(weft__load(&gate.came, acquire) == 1);
		WEFT_WITHIN(WEFT_MS(5))
			ck_assert_int_eq(use_shared(NULL), -ETIMEDOUT);
		ck_assert_int_eq(weft_blocking(run_another, arg), 0);
		gate_open(&gate);
	}
	return 0;
}

static void share_lane(void *arg)
{
	weft_run(use_shared_twice, arg, NULL);
}

START_TEST(lane_of_two_runtimes_ends_the_process)
{
	struct death death = death_of(share_lane, NULL);

	ck_assert(WIFSIGNALED(death.status));
	ck_assert_int_eq(WTERMSIG(death.status), SIGABRT);
	ck_assert_msg(strstr(death.text, "jobs of two runtimes"),
		      "it said: %s", death.text);
}
END_TEST

START_TEST(lane_serves_one_runtime_after_the_other)
{
	for (int i = 0; i < 5; i++)
		io_run(use_shared, NULL, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("blocking/lanes");
	TCase *lanes = tcase_create("lanes");

	tcase_set_timeout(lanes, 30);
	io_add_test(lanes, lane_has_no_more_than_its_limit);
	io_add_test(lanes, full_lane_delays_no_other);
	io_add_test(lanes, zeroed_lane_is_limited_by_the_pool);
	io_add_test(lanes, lanes_take_turns);
	io_add_test(lanes, lane_is_served_in_the_order_of_asking);
	io_add_test(lanes, lane_at_its_limit_is_passed_over);
	io_add_test(lanes, who_gives_up_is_taken_out_of_the_lane);
	io_add_test(lanes, lane_may_go_when_all_have_left_it);
	tcase_add_test(lanes, lane_of_two_runtimes_ends_the_process);
	tcase_add_test(lanes, lane_serves_one_runtime_after_the_other);
	suite_add_tcase(suite, lanes);
	return io_tests_run(suite);
}
