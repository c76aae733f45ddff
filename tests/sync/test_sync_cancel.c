/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/cancel: each suspending call of <weft/sync.h>, cancelled, out of
 * time and shielded: before and while it waits, and after its wait has ended.
 * It must have exactly one outcome.  Afterwards the object is in order: nothing
 * was lost or granted twice, and the next waiter is served.  Every test runs
 * over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <string.h>

#include <weft/weft.h>

#include "tests/support/sync_calls.h"

/* A task that makes a call. */

enum manner {
	PLAINLY,
	CANCELLED_BEFORE,
	IN_TIME,      /* there is a deadline, in 2 ms */
	WITHOUT_TIME, /* time 0: -ETIMEDOUT instead of a wait */
	TOO_LATE,     /* its deadline passed before the call */
	SHIELDED,
	SHIELDED_IN_TIME,
};

struct caller {
	const struct call *call;
	enum manner manner;
	bool called, over;
	int outcome;
	weft_nsec over_ns;
};

static void make_call(struct caller *caller)
{
	const struct call *call = caller->call;

	caller->called = true;
	caller->outcome = call->wait();
	if (caller->outcome >= 0)
		call->leave();
	caller->over_ns = weft_now();
	caller->over = true;
}

static void make_call_shielded(struct caller *caller)
{
	WEFT_SHIELD
		make_call(caller);
}

static int64_t call_in_a_manner(void *arg)
{
	struct caller *caller = *(struct caller **)arg;

	switch (caller->manner) {
	case CANCELLED_BEFORE:
		EXPECT(weft_sleep(WEFT_SEC(1)) == -ECANCELED);
		make_call(caller);
		return 0;
	case IN_TIME:
		WEFT_WITHIN (WEFT_MS(2))
			make_call(caller);
		return 0;
	case WITHOUT_TIME:
		WEFT_WITHIN (0)
			make_call(caller);
		return 0;
	case TOO_LATE:
		WEFT_WITHIN (0) {
			EXPECT(weft_sleep(1) == -ETIMEDOUT);
			make_call(caller);
		}
		return 0;
	case SHIELDED:
		make_call_shielded(caller);
		EXPECT(weft_yield() == -ECANCELED);
		return 0;
	case SHIELDED_IN_TIME:
		WEFT_WITHIN (WEFT_MS(2)) {
			make_call_shielded(caller);
			EXPECT(weft_yield() == -ETIMEDOUT);
		}
		return 0;
	default:
		make_call(caller);
		return 0;
	}
}

static struct caller caller;

/* Starts the only caller, and lets it reach its wait. */
static void begin(struct weft_scope *scope, const struct call *call,
		  enum manner manner)
{
	struct caller *self = &caller;

	caller = (struct caller){ .call = call, .manner = manner };
	victim = start(scope, call_in_a_manner, &self, sizeof(self));
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
}

static void expect_outcome(int outcome)
{
	ck_assert_msg(caller.over && (caller.outcome < 0 ? caller.outcome :
							   0) == outcome,
		      "%s: %d instead of %d%s", caller.call->name,
		      caller.outcome, outcome, caller.over ? "" : ", not yet");
}

static void expect_waiting(void)
{
	ck_assert_msg(caller.called && !caller.over, "%s: does not wait, %d",
		      caller.call->name, caller.outcome);
}

static void expect_about(weft_nsec at_ns)
{
	ck_assert_msg(is_about(caller.over_ns, at_ns), "%s: %" PRId64 " ns off",
		      caller.call->name, (int64_t)(caller.over_ns - at_ns));
}

/* The object afterwards. */

static int64_t look_whether_open(void *arg)
{
	const struct call *call = *(const struct call **)arg;
	int r = -EPROTO;

	WEFT_WITHIN (WEFT_MS(1))
		r = call->wait();
	if (r >= 0)
		call->leave();
	EXPECT(r >= 0 || r == -ETIMEDOUT);
	return r >= 0;
}

static bool is_open(const struct call *call)
{
	int64_t open = -1;

	WEFT_SUPERVISE (all)
		EXPECT(weft_join(start(all, look_whether_open, &call,
				       sizeof(struct call *)),
				 &open) == 0);
	return open;
}

/* The object was opened `opened` times, and the caller got through or not. */
static void expect_whole(const struct call *call, unsigned opened)
{
	unsigned got = caller.outcome >= 0;
	bool wanted = (call->kind == STAYS_OPEN && opened > 0) ||
		      (call->kind == FOR_ONE && opened > got);
	bool open = is_open(call);

	ck_assert_msg(open == wanted, "%s: %s, outcome %d", call->name,
		      open ? "open" : "closed", caller.outcome);
	/* If it was open for one task only, is_open() has closed it. */
	if (open && call->kind == STAYS_OPEN)
		call->close();
	WEFT_SUPERVISE (all) {
		begin(all, call, PLAINLY);
		expect_waiting();
		call_open(call, NEVER);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		expect_outcome(0);
	}
}

/* Each test makes this act with every call. */
static void (*act)(const struct call *call, struct weft_scope *scope);

static int64_t with_every_call(void *arg)
{
	(void)arg;
	for (int i = 0; i < CALLS; i++)
		WEFT_SUPERVISE (helpers) {
			calls_begin(helpers);
			calls[i].close();
			WEFT_SUPERVISE (all)
				act(&calls[i], all);
		}
	return 0;
}

#define CALLS_TEST(name)                                 \
	static void name##_of(const struct call *call,   \
			      struct weft_scope *scope); \
	START_TEST(name)                                 \
	{                                                \
		act = name##_of;                         \
		(void)run_main(_i, with_every_call);     \
	}                                                \
	END_TEST                                         \
	static void name##_of(const struct call *call, struct weft_scope *scope)

/* Refused before the call begins. */

CALLS_TEST(cancelled_one_takes_nothing_that_is_free)
{
	call_open(call, NEVER);
	begin(scope, call, CANCELLED_BEFORE);
	EXPECT(weft_cancel(victim) == 0);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(-ECANCELED);
	expect_whole(call, 1);
}

CALLS_TEST(cancelled_one_does_not_wait)
{
	weft_nsec at_ns;

	begin(scope, call, CANCELLED_BEFORE);
	at_ns = weft_now();
	EXPECT(weft_cancel(victim) == 0);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(-ECANCELED);
	expect_about(at_ns);
	call_open(call, NEVER);
	expect_whole(call, 1);
}

CALLS_TEST(late_one_takes_nothing_that_is_free)
{
	call_open(call, NEVER);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	begin(scope, call, TOO_LATE);
	expect_outcome(-ETIMEDOUT);
	expect_whole(call, 1);
}

CALLS_TEST(late_one_does_not_wait)
{
	weft_nsec at_ns = weft_now();

	begin(scope, call, WITHOUT_TIME);
	expect_outcome(-ETIMEDOUT);
	expect_about(at_ns);
	expect_whole(call, 0);
}

/*
 * While it waits.
 */

CALLS_TEST(cancelled_wait_ends_with_nothing)
{
	weft_nsec at_ns;

	begin(scope, call, PLAINLY);
	expect_waiting();
	at_ns = weft_now();
	EXPECT(weft_cancel(victim) == 0);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(-ECANCELED);
	expect_about(at_ns);
	expect_whole(call, 0);
}

CALLS_TEST(what_comes_after_a_cancelled_wait_is_not_lost)
{
	begin(scope, call, PLAINLY);
	EXPECT(weft_cancel(victim) == 0);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	call_open(call, NEVER);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(-ECANCELED);
	expect_whole(call, 1);
}

CALLS_TEST(wait_ends_in_time)
{
	weft_nsec begun_ns = weft_now();

	begin(scope, call, IN_TIME);
	expect_waiting();
	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
	expect_outcome(-ETIMEDOUT);
	expect_about(begun_ns + WEFT_MS(2));
	call_open(call, NEVER);
	expect_whole(call, 1);
}

CALLS_TEST(wait_ends_with_its_scope)
{
	weft_nsec at_ns;

	begin(scope, call, PLAINLY);
	expect_waiting();
	at_ns = weft_now();
	weft_scope_cancel(scope);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(-ECANCELED);
	expect_about(at_ns);
	expect_whole(call, 0);
}

static int64_t fail_at_once(void *arg)
{
	(void)arg;
	return -EIO;
}

CALLS_TEST(wait_ends_with_its_group)
{
	int64_t result = 0;

	(void)scope;
	WEFT_SCOPE (group, &result) {
		begin(group, call, PLAINLY);
		expect_waiting();
		EXPECT(weft_go(group, fail_at_once, NULL, 0) == 0);
	}
	EXPECT(result == -EIO);
	expect_outcome(-ECANCELED);
	expect_whole(call, 0);
}

/* Holds the mutex until it is cancelled. */
static int64_t tell_and_hold(void *arg)
{
	(void)arg;
	EXPECT(weft_mutex_lock(&shared.mutex) == 0);
	weft_cond_signal(&shared.cond);
	EXPECT(weft_sleep(WEFT_SEC(100)) == -ECANCELED);
	weft_mutex_unlock(&shared.mutex);
	return 0;
}

static int64_t wait_for_a_child(void *arg)
{
	(void)arg;
	EXPECT(weft_mutex_lock(&shared.mutex) == 0);
	WEFT_SUPERVISE (children) {
		EXPECT(weft_go(children, tell_and_hold, NULL, 0) == 0);
		EXPECT(weft_cond_wait(&shared.cond, &shared.mutex) == 0);
		weft_mutex_unlock(&shared.mutex);
		EXPECT(weft_yield() == -ECANCELED);
	}
	return 0;
}

static int64_t cancel_who_waits_for_a_child(void *arg)
{
	weft_nsec begun_ns = weft_now();

	(void)arg;
	shared.mutex = (struct weft_mutex)WEFT_MUTEX_INIT;
	shared.cond = (struct weft_cond)WEFT_COND_INIT;
	WEFT_SUPERVISE (all) {
		struct weft_task task = start(all, wait_for_a_child, NULL, 0);

		EXPECT(weft_sleep(WEFT_MS(2)) == 0);
		EXPECT(weft_cancel(task) == 0);
	}
	EXPECT(weft_now() - begun_ns < WEFT_SEC(1));
	return 0;
}

START_TEST(cancellation_reaches_a_child_that_has_the_mutex)
{
	(void)run_main(_i, cancel_who_waits_for_a_child);
}
END_TEST

/*
 * Grant and interruption at the same moment: success wins, and nothing is lost
 * either way.
 */

CALLS_TEST(let_go_on_and_then_cancelled_has_got_it)
{
	begin(scope, call, PLAINLY);
	expect_waiting();
	call_open(call, JUST_AFTER);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(0);
	expect_whole(call, 1);
}

CALLS_TEST(cancelled_and_let_go_on_before_it_leaves_has_got_it)
{
	begin(scope, call, PLAINLY);
	expect_waiting();
	call_open(call, JUST_BEFORE);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(0);
	expect_whole(call, 1);
}

static int64_t cancel_soon(void *arg)
{
	(void)arg;
	EXPECT(weft_sleep(WEFT_US(1900) + fake_random(WEFT_US(200))) == 0);
	/* -ESRCH: the task has ended. */
	EXPECT(weft_cancel(victim) == (caller.over ? -ESRCH : 0));
	return 0;
}

/* The deadline, a cancellation and the grant all come at about 2 ms. */
CALLS_TEST(wait_has_one_outcome_whatever_comes_first)
{
	for (int i = 0; i < 8; i++) {
		begin(scope, call, i % 2 ? IN_TIME : PLAINLY);
		EXPECT(weft_sleep(WEFT_US(100)) == 0);
		EXPECT(weft_go(scope, cancel_soon, NULL, 0) == 0);
		EXPECT(weft_sleep(fake_random(WEFT_US(2200))) == 0);
		if (fake_random(2))
			fake_compute(fake_random(WEFT_US(200)));
		call_open(call, NEVER);
		EXPECT(weft_sleep(WEFT_MS(4)) == 0);
		EXPECT(caller.over);
		EXPECT(caller.outcome >= 0 || caller.outcome == -ECANCELED ||
		       caller.outcome == -ETIMEDOUT);
		expect_whole(call, 1);
		if (call->kind == STAYS_OPEN)
			call->close();
	}
	call_open(call, NEVER);
	if (call->kind == FOR_ONE)
		EXPECT(is_open(call));
}

/*
 * Shielded.
 */

CALLS_TEST(shielded_wait_is_not_cancelled)
{
	begin(scope, call, SHIELDED);
	EXPECT(weft_cancel(victim) == 0);
	EXPECT(weft_sleep(WEFT_MS(2)) == 0);
	expect_waiting();
	call_open(call, NEVER);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(0);
	expect_whole(call, 1);
}

CALLS_TEST(shielded_wait_has_no_deadline)
{
	begin(scope, call, SHIELDED_IN_TIME);
	EXPECT(weft_sleep(WEFT_MS(4)) == 0);
	expect_waiting();
	call_open(call, NEVER);
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	expect_outcome(0);
	expect_whole(call, 1);
}

/* A mutex whose holder did not suspend: a woken waiter tries again. */

static int came, served[2];

static int64_t come_to_mutex(void *arg)
{
	int number = *(int *)arg;

	came++;
	served[number] = weft_mutex_lock(&shared.mutex);
	if (served[number] == 0)
		weft_mutex_unlock(&shared.mutex);
	return 0;
}

static void queue_two(struct weft_scope *scope)
{
	int first = 0;

	calls_begin(scope);
	came = 0;
	served[0] = served[1] = 1;
	EXPECT(weft_mutex_lock(&shared.mutex) == 0);
	victim = start(scope, come_to_mutex, &first, sizeof(first));
	compute_until(came == 1);
	EXPECT(WEFT_GO(scope, come_to_mutex, 1) == 0);
	compute_until(came == 2);
}

static int64_t cancel_who_tries_again(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE (all) {
		queue_two(all);
		weft_mutex_unlock(&shared.mutex);
		EXPECT(weft_cancel(victim) == 0);
	}
	EXPECT(served[0] == 0 && served[1] == 0);
	return 0;
}

START_TEST(who_tries_again_and_is_cancelled_has_it_if_it_is_free)
{
	(void)run_with_peers(_i, cancel_who_tries_again);
}
END_TEST

static int64_t cancel_who_tries_in_vain(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE (all) {
		queue_two(all);
		weft_mutex_unlock(&shared.mutex);
		EXPECT(weft_mutex_try_lock(&shared.mutex) == 0);
		EXPECT(weft_cancel(victim) == 0);
		compute_until(served[0] == -ECANCELED);
		EXPECT(served[1] == 1);
		weft_mutex_unlock(&shared.mutex);
	}
	EXPECT(served[1] == 0);
	return 0;
}

START_TEST(who_tries_again_in_vain_and_is_cancelled_leaves_it_to_others)
{
	(void)run_with_peers(_i, cancel_who_tries_in_vain);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static TCase *before_tests(void)
{
	TCase *tc = tcase_create("before");

	ADD(tc, cancelled_one_takes_nothing_that_is_free);
	ADD(tc, cancelled_one_does_not_wait);
	ADD(tc, late_one_takes_nothing_that_is_free);
	ADD(tc, late_one_does_not_wait);
	return tc;
}

static TCase *meanwhile_tests(void)
{
	TCase *tc = tcase_create("meanwhile");

	ADD(tc, cancelled_wait_ends_with_nothing);
	ADD(tc, what_comes_after_a_cancelled_wait_is_not_lost);
	ADD(tc, wait_ends_in_time);
	ADD(tc, wait_ends_with_its_scope);
	ADD(tc, wait_ends_with_its_group);
	ADD(tc, cancellation_reaches_a_child_that_has_the_mutex);
	ADD(tc, shielded_wait_is_not_cancelled);
	ADD(tc, shielded_wait_has_no_deadline);
	return tc;
}

static TCase *moment_tests(void)
{
	TCase *tc = tcase_create("moment");

	ADD(tc, let_go_on_and_then_cancelled_has_got_it);
	ADD(tc, cancelled_and_let_go_on_before_it_leaves_has_got_it);
	ADD(tc, wait_has_one_outcome_whatever_comes_first);
	ADD(tc, who_tries_again_and_is_cancelled_has_it_if_it_is_free);
	ADD(tc, who_tries_again_in_vain_and_is_cancelled_leaves_it_to_others);
	return tc;
}

static Suite *cancel_suite(void)
{
	Suite *suite = suite_create("sync/cancel");

	suite_add_tcase(suite, before_tests());
	suite_add_tcase(suite, meanwhile_tests());
	suite_add_tcase(suite, moment_tests());
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { cancel_suite };

	return run_suites(make, 1);
}
