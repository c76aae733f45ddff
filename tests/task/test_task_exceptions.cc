/* SPDX-License-Identifier: MIT */
/*
 * Suite task/exceptions: the C++ library keeps exceptions for each thread, and
 * weft for each task.  Each test has tasks that wait while they have
 * exceptions, on one worker, where they alternate, and on several, where they
 * also move.
 */
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>

#include <check.h>
#include <weft/weft.h>

namespace
{

constexpr int tasks_count = 8, rounds = 50;
/* The highest number of rounds until tasks have moved. */
constexpr int rounds_max = 1000, moves_min = 20;

#define EXPECT(holds) expect(holds, __LINE__, #holds)

void expect(bool holds, int line, const char *text)
{
	if (holds)
		return;
	std::fprintf(stderr, "line %d: %s\n", line, text);
	std::abort();
}

struct Numbered : std::exception {
	int number;
	explicit Numbered(int of) : number(of)
	{
	}
};

bool has_none()
{
	return !std::current_exception() && std::uncaught_exceptions() == 0;
}

std::atomic<int> moves;

/* Lets other tasks run; they throw, too. */
void wait()
{
	pid_t before = gettid();

	EXPECT(weft_yield() == 0 && weft_sleep(WEFT_US(1)) == 0);
	moves += gettid() != before;
}

/* Runs a step of each task, again and again, on `workers`. */
struct Plan {
	void (*step)(int number);
	int workers;
};

struct Part {
	const Plan *plan;
	int number;
};

int64_t repeat(void *arg)
{
	const Part part = *static_cast<Part *>(arg);

	for (int i = 0; i < rounds || (part.plan->workers > 1 &&
				       moves < moves_min && i < rounds_max);
	     i++) {
		EXPECT(has_none());
		part.plan->step(part.number);
	}
	EXPECT(has_none());
	return 0;
}

int64_t start(void *arg)
{
	WEFT_SUPERVISE(all)
		for (int i = 0; i < tasks_count; i++)
			EXPECT(WEFT_GO(all, repeat,
				       (Part{ static_cast<Plan *>(arg), i })) ==
			       0);
	return 0;
}

/* With 1 worker, or with 4. */
int64_t run(void (*step)(int number), int turn)
{
	Plan plan = { step, turn == 0 ? 1 : 4 };
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = static_cast<unsigned>(plan.workers);
	return weft_run(start, &plan, &opts);
}

/* ---- Catch blocks ---- */

void wait_in_a_catch_block(int number)
{
	try {
		throw Numbered(number);
	} catch (const Numbered &caught) {
		wait();
		EXPECT(caught.number == number);
		try {
			throw;
		} catch (const Numbered &again) {
			wait();
			EXPECT(&again == &caught);
		}
		try {
			wait();
			throw std::runtime_error("another");
		} catch (const std::exception &) {
			wait();
		}
		EXPECT(std::current_exception() != nullptr);
		EXPECT(caught.number == number);
	}
}

START_TEST(catch_block_may_wait)
{
	ck_assert_int_eq(run(wait_in_a_catch_block, _i), 0);
}
END_TEST

/* The joiner passes its thread to the task that it joins. */
int64_t throw_and_catch(void *)
{
	EXPECT(has_none());
	try {
		throw Numbered(-1);
	} catch (const Numbered &caught) {
		return caught.number == -1;
	}
}

void join_in_a_catch_block(int number)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task child = {};
	int64_t result = 0;

	opts.ret_task = &child;
	WEFT_SCOPE(group, nullptr) {
		try {
			throw Numbered(number);
		} catch (const Numbered &caught) {
			EXPECT(weft_go_opts(group, throw_and_catch, nullptr, 0,
					    &opts) == 0);
			EXPECT(weft_join(child, &result) == 0);
			EXPECT(result == 1 && caught.number == number);
		}
	}
}

START_TEST(catch_block_may_join)
{
	ck_assert_int_eq(run(join_in_a_catch_block, _i), 0);
}
END_TEST

/* ---- Unwinding ---- */

int64_t end_late(void *arg)
{
	try {
		wait();
		throw Numbered(-1);
	} catch (const Numbered &) {
		wait();
	}
	**static_cast<bool **>(arg) = true;
	return 0;
}

void leave_a_scope(int number)
{
	bool ended = false;

	try {
		WEFT_SCOPE(group, nullptr) {
			EXPECT(WEFT_GO(group, end_late, &ended) == 0);
			throw Numbered(number);
		}
	} catch (const Numbered &caught) {
		EXPECT(caught.number == number);
	}
	EXPECT(ended);
}

START_TEST(exception_may_leave_a_scope)
{
	ck_assert_int_eq(run(leave_a_scope, _i), 0);
}
END_TEST

struct Waits {
	~Waits()
	{
		EXPECT(std::uncaught_exceptions() == 1);
		wait();
		EXPECT(std::uncaught_exceptions() == 1);
	}
};

void unwind_slowly(int number)
{
	try {
		Waits outer, inner;
		throw Numbered(number);
	} catch (const Numbered &caught) {
		EXPECT(caught.number == number);
	}
}

START_TEST(destructor_may_wait_while_an_exception_passes)
{
	ck_assert_int_eq(run(unwind_slowly, _i), 0);
}
END_TEST

/* ---- Exceptions of others ---- */

/* A future runs on the scheduler's own stack. */
int64_t poll(void *)
{
	EXPECT(has_none());
	return throw_and_catch(nullptr) - 1;
}

void start_a_future(int number)
{
	try {
		throw Numbered(number);
	} catch (const Numbered &caught) {
		WEFT_SCOPE(group, nullptr)
			EXPECT(WEFT_GO_FUTURE(group, poll, 0) == 0);
		EXPECT(caught.number == number);
	}
}

START_TEST(future_has_no_exceptions_of_others)
{
	ck_assert_int_eq(run(start_a_future, _i), 0);
}
END_TEST

/* The thread that starts the runtime handles an exception of its own. */
START_TEST(run_in_a_catch_block_keeps_its_exception)
{
	try {
		throw Numbered(7);
	} catch (const Numbered &caught) {
		ck_assert_int_eq(run(wait_in_a_catch_block, _i), 0);
		try {
			throw;
		} catch (const Numbered &again) {
			ck_assert_ptr_eq(&again, &caught);
		}
	}
	ck_assert(has_none());
}
END_TEST

/* ---- Exceptions that no task catches ---- */

int64_t throw_out(void *)
{
	throw Numbered(0);
}

START_TEST(exception_that_leaves_a_task_ends_the_process)
{
	(void)weft_run(throw_out, nullptr, nullptr);
}
END_TEST

} /* namespace */

int main()
{
	Suite *suite = suite_create("task/exceptions");
	TCase *tc = tcase_create("exceptions");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, catch_block_may_wait, 0, 2);
	tcase_add_loop_test(tc, catch_block_may_join, 0, 2);
	tcase_add_loop_test(tc, exception_may_leave_a_scope, 0, 2);
	tcase_add_loop_test(tc, destructor_may_wait_while_an_exception_passes,
			    0, 2);
	tcase_add_loop_test(tc, future_has_no_exceptions_of_others, 0, 2);
	tcase_add_loop_test(tc, run_in_a_catch_block_keeps_its_exception, 0,
			    2);
	tcase_add_test_raise_signal(
		tc, exception_that_leaves_a_task_ends_the_process, SIGABRT);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
