/* SPDX-License-Identifier: MIT */
/*
 * Suite future/tasks: tasks without stacks run, sleep and use channels.  Every
 * test runs over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include <errno.h>
#include <string.h>

#include <weft/weft.h>

#include "tests/support/future_scene.h"

/*
 * Running.
 */

struct steps {
	WEFT_FUTURE_STATE;
	int left;
	int64_t result;
};

static int64_t yield_steps(void *state)
{
	struct steps *s = state;

	EXPECT(weft_self().id != 0);
	EXPECT(strcmp(weft_task_name(), "a future") == 0);
	WEFT_FUTURE_BEGIN(s);
	for (; s->left > 0; s->left--)
		WEFT_AWAIT(s, weft_await_yield());
	WEFT_FUTURE_END(s);
	return s->result;
}

static int64_t polls_to_the_end(void *arg)
{
	struct weft_task tasks[40];

	(void)arg;
	WEFT_SUPERVISE(scope) {
		for (int i = 0; i < 40; i++) {
			struct steps s = { 0, i % 7, i * 3 };

			tasks[i] = start_future(scope, yield_steps, &s,
						sizeof(s));
		}
		/* Joins them in the order of their start, and in reverse
		 * order. */
		for (int i = 0; i < 20; i++)
			EXPECT(join(tasks[i]) == i * 3);
		for (int i = 39; i >= 20; i--)
			EXPECT(join(tasks[i]) == i * 3);
	}
	return 0;
}

START_TEST(future_is_polled_until_it_is_done_and_joined)
{
	(void)run_main(_i, polls_to_the_end);
}
END_TEST

struct sized {
	size_t bytes;
	unsigned char rest[WEFT_ARG_BYTES_MAX - sizeof(size_t)];
};

static int64_t check_state(void *state)
{
	struct sized *s = state;
	size_t rest = s->bytes - sizeof(s->bytes);

	for (size_t i = 0; i < rest; i++)
		EXPECT(s->rest[i] == (unsigned char)(i * 7 + s->bytes));
	if (rest && s->rest[0] != (unsigned char)(s->bytes + 1)) {
		/* The state must be unchanged when the future is polled
		 * again. */
		int r = weft_await_sleep(WEFT_US(100));

		if (r == WEFT_PENDING)
			return r;
		EXPECT(r == 0);
	}
	return (int64_t)s->bytes;
}

static int64_t keeps_states(void *arg)
{
	static const size_t sizes[] = { 8, 16, 23, 24, 25, 32, 33, 200, 4096 };
	struct sized s;

	(void)arg;
	WEFT_SUPERVISE(scope)
		for (size_t k = 0; k < 3 * 9; k++) {
			struct weft_task task;

			s.bytes = sizes[k % 9];
			for (size_t i = 0; i < sizeof(s.rest); i++)
				s.rest[i] = (unsigned char)(i * 7 + s.bytes);
			task = start_future(scope, check_state, &s, s.bytes);
			memset(&s, 0xa5, sizeof(s));
			EXPECT(join(task) == (int64_t)sizes[k % 9]);
		}
	return 0;
}

START_TEST(states_of_all_sizes_are_kept)
{
	(void)run_main(_i, keeps_states);
}
END_TEST

static int64_t count_down(void *state)
{
	/* Ends in its first poll. */
	return *(int *)state;
}

static int64_t starts_many(void *arg)
{
	int64_t result = 1;

	(void)arg;
	for (int round = 0; round < 3; round++) {
		WEFT_SCOPE(scope, &result)
			for (int i = 0; i < 2000; i++)
				EXPECT(WEFT_GO_FUTURE(scope, count_down, i) ==
				       0);
		EXPECT(result == 0);
	}
	return 0;
}

START_TEST(many_begin_and_end)
{
	(void)run_main(_i, starts_many);
}
END_TEST

/*
 * Time.
 */

static int64_t many_sleep(void *arg)
{
	weft__atomic(int) ended = 0;
	uint64_t before_ns = weft_now();
	int64_t result = -1;

	(void)arg;
	WEFT_SCOPE(scope, &result)
		for (int i = 0; i < 300; i++) {
			struct sleeper s = {
				.times = 1 + i % 5,
				.length_ns = WEFT_US(10) * (unsigned)i,
				.ended = &ended,
			};

			EXPECT(WEFT_GO_FUTURE(scope, sleep_times, s) == 0);
		}
	EXPECT(result == 0);
	EXPECT(weft__load(&ended, relaxed) == 300);
	/* The time of the longest sleep, plus some for those before it. */
	EXPECT(weft_now() - before_ns >= WEFT_MS(14));
	EXPECT(weft_now() - before_ns < WEFT_MS(40));
	return 0;
}

START_TEST(sleeps_as_long_as_it_is_told)
{
	(void)run_main(_i, many_sleep);
}
END_TEST

static int64_t cancels(void *arg)
{
	uint64_t before_ns = weft_now();
	struct weft_task begun, fresh;
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(scope) {
		begun = start_future(scope, sleep_long, NULL, 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_cancel(begun) == 0);
		EXPECT(join(begun) == -ECANCELED);
		fresh = start_future(scope, sleep_long, NULL, 0);
		EXPECT(weft_cancel(fresh) == 0);
		EXPECT(join(fresh) == -ECANCELED);
	}
	WEFT_SCOPE(group, &result) {
		for (int i = 0; i < 50; i++)
			EXPECT(weft_go_future(group, sleep_long, NULL, 0) == 0);
		(void)start_give(group, -EIO, 2, WEFT_MS(1));
	}
	EXPECT(result == -EIO);
	WEFT_RACE(race, &result) {
		EXPECT(weft_go_future(race, sleep_long, NULL, 0) == 0);
		(void)start_give(race, 5, 2, WEFT_MS(1));
		EXPECT(weft_go_future(race, sleep_long, NULL, 0) == 0);
	}
	EXPECT(result == 5);
	EXPECT(weft_now() - before_ns < WEFT_MS(20));
	return 0;
}

START_TEST(cancelling_ends_a_sleep)
{
	(void)run_main(_i, cancels);
}
END_TEST

struct limited {
	WEFT_FUTURE_STATE;
	uint64_t within_ns;
	uint64_t sleep_ns;
};

static int64_t sleep_within(void *state)
{
	struct limited *s = state;
	int r;

	WEFT_FUTURE_BEGIN(s);
	EXPECT(weft_future_within(s->within_ns) == 0);
	EXPECT(weft_deadline() <= weft_now() + s->within_ns);
	WEFT_AWAIT_AS(s, r, weft_await_sleep(s->sleep_ns));
	if (r == 0)
		return 0;
	EXPECT(weft_deadline_passed());
	/* The deadline applies to later awaits, too, until it is lifted. */
	EXPECT(weft_await_sleep(WEFT_US(1)) == r);
	if (r == -ETIMEDOUT) {
		EXPECT(weft_future_within(WEFT_NEVER) == 0);
		WEFT_AWAIT(s, weft_await_sleep(WEFT_US(1)));
		EXPECT(!weft_deadline_passed());
		r = -ETIMEDOUT;
	}
	WEFT_FUTURE_END(s);
	return r;
}

static int64_t has_deadlines(void *arg)
{
	static const struct limited passes = { 0, WEFT_MS(2), WEFT_SEC(9) };
	static const struct limited holds = { 0, WEFT_SEC(9), WEFT_MS(2) };
	uint64_t before_ns = weft_now();

	(void)arg;
	WEFT_SUPERVISE(scope) {
		EXPECT(join(start_future(scope, sleep_within, &passes,
					 sizeof(passes))) == -ETIMEDOUT);
		EXPECT(join(start_future(scope, sleep_within, &holds,
					 sizeof(holds))) == 0);
	}
	/* The deadline is inherited. */
	WEFT_WITHIN(WEFT_MS(3)) {
		WEFT_SUPERVISE(scope) {
			struct weft_task a, b;

			a = start_future(scope, sleep_long, NULL, 0);
			b = start_future(scope, sleep_within, &holds,
					 sizeof(holds));
			EXPECT(join(b) == 0);
			WEFT_SHIELD
				EXPECT(join(a) == -ECANCELED);
		}
	}
	EXPECT(weft_now() - before_ns < WEFT_MS(20));
	return 0;
}

START_TEST(deadlines_end_a_sleep)
{
	(void)run_main(_i, has_deadlines);
}
END_TEST

/*
 * Channels.
 */

struct player {
	WEFT_FUTURE_STATE;
	int ball;
	struct weft_chan *in, *out;
};

static int64_t play(void *state)
{
	struct player *p = state;
	int r;

	WEFT_FUTURE_BEGIN(p);
	for (;;) {
		WEFT_AWAIT_AS(p, r, weft_await_chan_recv(p->in, &p->ball));
		if (r == -EPIPE)
			break;
		if (r < 0)
			return r;
		p->ball++;
		WEFT_AWAIT_AS(p, r, weft_await_chan_send(p->out, &p->ball));
		if (r < 0)
			return r;
	}
	WEFT_FUTURE_END(p);
	weft_chan_close(p->out);
	return 0;
}

enum { PLAYERS = 5 };

static int64_t plays(void *arg)
{
	int room[PLAYERS + 1][2];
	struct weft_chan chan[PLAYERS + 1];
	int64_t result = -1;
	int ball = 0;

	(void)arg;
	for (unsigned i = 0; i <= PLAYERS; i++)
		EXPECT(weft_chan_init(&chan[i], room[i], i % 3, sizeof(int)) ==
		       0);
	WEFT_SCOPE(scope, &result) {
		for (int i = 0; i < PLAYERS; i++) {
			struct player p = {
				.in = &chan[i],
				.out = &chan[i + 1],
			};

			EXPECT(WEFT_GO_FUTURE(scope, play, p) == 0);
		}
		for (int i = 0; i < 100; i++) {
			EXPECT(weft_chan_send(&chan[0], &ball) == 0);
			EXPECT(weft_chan_recv(&chan[PLAYERS], &ball) == 0);
			EXPECT(ball == (i + 1) * PLAYERS);
		}
		weft_chan_close(&chan[0]);
		EXPECT(weft_chan_recv(&chan[PLAYERS], &ball) == -EPIPE);
	}
	EXPECT(result == 0);
	return 0;
}

START_TEST(values_go_through_futures)
{
	(void)run_main(_i, plays);
}
END_TEST

/* The values, and how often each was received. */
enum { VALUES = 400, TAKERS = 8 };

struct taker {
	WEFT_FUTURE_STATE;
	int value;
	struct weft_chan *chan;
	unsigned char *had;
	unsigned within_us;
};

static int64_t take(void *state)
{
	struct taker *t = state;
	int r;

	WEFT_FUTURE_BEGIN(t);
	for (;;) {
		EXPECT(weft_future_within(WEFT_US(t->within_us)) == 0);
		WEFT_AWAIT_AS(t, r, weft_await_chan_recv(t->chan, &t->value));
		if (r == 0)
			t->had[t->value]++;
		else if (r != -ETIMEDOUT)
			break;
	}
	WEFT_FUTURE_END(t);
	return r == -EPIPE || r == -ECANCELED ? 0 : r;
}

static int64_t loses_nothing(void *arg)
{
	unsigned char had[TAKERS][VALUES] = { { 0 } };
	struct weft_chan chan = WEFT_CHAN_DIRECT(int);
	struct weft_task takers[TAKERS];

	(void)arg;
	WEFT_SUPERVISE(scope) {
		for (unsigned i = 0; i < TAKERS; i++) {
			struct taker t = {
				.chan = &chan,
				.had = had[i],
				.within_us = 1 + i * 40,
			};

			takers[i] = start_future(scope, take, &t, sizeof(t));
		}
		for (int i = 0; i < VALUES; i++) {
			EXPECT(weft_chan_send(&chan, &i) == 0);
			if (i % 50 == 49 && i / 50 < TAKERS - 1)
				EXPECT(weft_cancel(takers[i / 50]) == 0);
			if (i % 3 == 0)
				EXPECT(weft_sleep(WEFT_US(30)) == 0);
		}
		weft_chan_close(&chan);
		for (int i = 0; i < TAKERS; i++)
			EXPECT(join(takers[i]) == 0);
	}
	for (int v = 0; v < VALUES; v++) {
		int times = 0;

		for (int i = 0; i < TAKERS; i++)
			times += had[i][v];
		EXPECT(times == 1);
	}
	return 0;
}

START_TEST(no_value_is_lost_to_deadlines_and_cancels)
{
	(void)run_main(_i, loses_nothing);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *future_suite(void)
{
	Suite *suite = suite_create("future/tasks");
	TCase *run = tcase_create("run");
	TCase *wait = tcase_create("wait");

	tcase_set_timeout(run, 30);
	ADD(run, future_is_polled_until_it_is_done_and_joined);
	ADD(run, states_of_all_sizes_are_kept);
	ADD(run, many_begin_and_end);
	suite_add_tcase(suite, run);
	tcase_set_timeout(wait, 30);
	ADD(wait, sleeps_as_long_as_it_is_told);
	ADD(wait, cancelling_ends_a_sleep);
	ADD(wait, deadlines_end_a_sleep);
	ADD(wait, values_go_through_futures);
	ADD(wait, no_value_is_lost_to_deadlines_and_cancels);
	suite_add_tcase(suite, wait);

	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { future_suite };

	return run_suites(make, 1);
}
