/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/select: one case is done, the others leave no trace
 * (include/weft/chan.h).  Every test runs over seeds and numbers of workers, on
 * virtual time.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include "tests/support/chan_scene.h"

enum { CHANS = 8, UNTOUCHED = 0x5a5a5a5a };

/* Eight channels, with a case and a value for each. */
struct board {
	struct weft_chan chans[CHANS];
	uint32_t rooms[CHANS][2];
	uint32_t values[CHANS];
	struct weft_case cases[CHANS];
};

static void board_begin(struct board *board, size_t capacity,
			enum weft_case_kind kind)
{
	for (uint32_t i = 0; i < CHANS; i++) {
		chan_begin(&board->chans[i], board->rooms[i], capacity);
		board->values[i] = kind == WEFT_CASE_SEND ? i : UNTOUCHED;
		board->cases[i] = (struct weft_case)WEFT_RECV(
			&board->chans[i], &board->values[i]);
		board->cases[i].kind = kind;
	}
}

static size_t board_count(const struct board *board)
{
	size_t sum = 0;

	for (int i = 0; i < CHANS; i++)
		sum += weft_chan_count(&board->chans[i]);
	return sum;
}

static void board_forsaken(struct board *board)
{
	for (int i = 0; i < CHANS; i++)
		chan_is_forsaken(&board->chans[i]);
}

/* ---- One case ------------------------------------------------------------ */

static int64_t recv_what_is_there(void *arg)
{
	struct board board;

	(void)arg;
	board_begin(&board, 1, WEFT_CASE_RECV);
	for (uint32_t i = 0; i < CHANS; i++)
		EXPECT(weft_chan_send(&board.chans[i], &i) == 0);
	for (uint32_t left = CHANS; left > 0; left--) {
		int k = select_either(board.cases, CHANS);

		EXPECT(k >= 0 && k < CHANS && board.cases[k].result == 0);
		EXPECT(board.values[k] == (uint32_t)k);
		EXPECT(board_count(&board) == left - 1);
		EXPECT(weft_chan_count(&board.chans[k]) == 0);
		for (int i = 0; i < CHANS; i++)
			EXPECT(i == k || board.values[i] == UNTOUCHED);
		board.values[k] = UNTOUCHED;
	}
	EXPECT(weft_try_select(board.cases, CHANS) == -EAGAIN);
	board_forsaken(&board);
	return 0;
}

START_TEST(one_value_is_received_of_those_that_are_there)
{
	(void)run_main(_i, recv_what_is_there);
}
END_TEST

static int64_t send_where_is_room(void *arg)
{
	struct board board;

	(void)arg;
	board_begin(&board, 1, WEFT_CASE_SEND);
	for (size_t done = 1; done <= CHANS; done++) {
		int k = select_either(board.cases, CHANS);

		EXPECT(k >= 0 && k < CHANS && board.cases[k].result == 0);
		EXPECT(board_count(&board) == done);
		EXPECT(weft_chan_count(&board.chans[k]) == 1);
	}
	EXPECT(weft_try_select(board.cases, CHANS) == -EAGAIN);
	for (uint32_t i = 0; i < CHANS; i++) {
		uint32_t value = UNTOUCHED;

		EXPECT(weft_chan_recv(&board.chans[i], &value) == 0);
		EXPECT(value == i);
	}
	return 0;
}

START_TEST(one_value_is_sent_where_there_is_room)
{
	(void)run_main(_i, send_where_is_room);
}
END_TEST

/* The select has been granted a case but has not run yet: its other waiters are
 * still queued. */
static void meet_waiting_receiver(size_t capacity)
{
	struct board board;
	struct selecting selecting = { board.cases, CHANS, 0, 0 };
	uint32_t winner = (uint32_t)fake_random(CHANS), value;

	board_begin(&board, capacity, WEFT_CASE_RECV);
	WEFT_SUPERVISE(all) {
		(void)start_select(all, &selecting);
		let_all_wait();
		EXPECT(weft_chan_try_send(&board.chans[winner], &winner) == 0);
		/* No task receives these: they stay if there is room. */
		for (uint32_t i = 0; i < CHANS; i++) {
			value = 100 + i;
			EXPECT(weft_chan_try_send(&board.chans[i], &value) ==
			       (capacity ? 0 : -EAGAIN));
		}
		EXPECT(selecting.result == INT32_MIN);
	}
	EXPECT(selecting.result == (int)winner);
	EXPECT(board.cases[winner].result == 0);
	for (uint32_t i = 0; i < CHANS; i++)
		EXPECT(board.values[i] == (i == winner ? winner : UNTOUCHED));
	for (uint32_t i = 0; capacity && i < CHANS; i++) {
		EXPECT(weft_chan_try_recv(&board.chans[i], &value) == 0);
		EXPECT(value == 100 + i);
	}
	board_forsaken(&board);
}

static void meet_waiting_sender(size_t capacity)
{
	struct board board;
	struct selecting selecting = { board.cases, CHANS, 0, 0 };
	uint32_t winner = (uint32_t)fake_random(CHANS), value;

	board_begin(&board, capacity, WEFT_CASE_SEND);
	for (uint32_t i = 0; capacity && i < CHANS; i++) {
		value = 100 + i;
		EXPECT(weft_chan_try_send(&board.chans[i], &value) == 0);
	}
	WEFT_SUPERVISE(all) {
		(void)start_select(all, &selecting);
		let_all_wait();
		/* The winner's value goes into the room that this makes. */
		EXPECT(weft_chan_try_recv(&board.chans[winner], &value) == 0);
		EXPECT(value == (capacity ? 100 + winner : winner));
		for (uint32_t i = 0; i < CHANS; i++) {
			int r = weft_chan_try_recv(&board.chans[i], &value);

			EXPECT(r == (capacity ? 0 : -EAGAIN));
			EXPECT(r < 0 ||
			       value == (i == winner ? winner : 100 + i));
		}
		EXPECT(selecting.result == INT32_MIN);
	}
	EXPECT(selecting.result == (int)winner);
	EXPECT(board.cases[winner].result == 0);
	board_forsaken(&board);
}

static int64_t meet_all(void *arg)
{
	(void)arg;
	for (size_t capacity = 0; capacity < 2; capacity++) {
		meet_waiting_receiver(capacity);
		meet_waiting_sender(capacity);
	}
	return 0;
}

START_TEST(waiter_that_is_stale_takes_and_gives_nothing)
{
	(void)run_main(_i, meet_all);
}
END_TEST

/* Plain receivers are queued in front of the select and behind it. */
static void select_amid(bool wins)
{
	uint32_t value;
	struct weft_chan here = WEFT_CHAN_DIRECT(uint32_t);
	struct weft_chan there = WEFT_CHAN_DIRECT(uint32_t);
	uint32_t from_here = UNTOUCHED, from_there = UNTOUCHED;
	struct weft_case cases[] = { WEFT_RECV(&here, &from_here),
				     WEFT_RECV(&there, &from_there) };
	struct selecting selecting = { cases, 2, 0, 0 };
	struct waiting waiting[2];

	WEFT_SUPERVISE(all) {
		queue_up(all, wait_to_recv, &here, waiting, 1, 100);
		(void)start_select(all, &selecting);
		let_all_wait();
		queue_up(all, wait_to_recv, &here, waiting + 1, 1, 100);
		if (!wins) {
			value = 77;
			EXPECT(weft_chan_try_send(&there, &value) == 0);
			if (fake_random(2))
				let_all_wait();
		}
		for (value = 0; value < (wins ? 3 : 2); value++)
			EXPECT(weft_chan_try_send(&here, &value) == 0);
		EXPECT(weft_chan_try_send(&here, &value) == -EAGAIN);
	}
	EXPECT(waiting[0].value == 0);
	EXPECT(waiting[1].value == (wins ? 2 : 1));
	EXPECT(selecting.result == (wins ? 0 : 1));
	EXPECT(from_here == (wins ? 1 : UNTOUCHED));
	EXPECT(from_there == (wins ? UNTOUCHED : 77));
}

static int64_t select_amid_others(void *arg)
{
	(void)arg;
	for (int i = 0; i < 4; i++)
		select_amid(i % 2);
	return 0;
}

START_TEST(select_has_its_turn_among_others_and_leaves_them_theirs)
{
	(void)run_main(_i, select_amid_others);
}
END_TEST

/* ---- A channel in several cases ------------------------------------------ */

static int64_t same_channel(void *arg)
{
	uint32_t room[2], values[4] = { 0, 1, UNTOUCHED, UNTOUCHED }, value;
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	struct weft_case sends[] = { WEFT_SEND(&chan, &values[0]),
				     WEFT_SEND(&chan, &values[1]) };
	struct weft_case recvs[] = { WEFT_RECV(&chan, &values[2]),
				     WEFT_RECV(&chan, &values[3]) };
	struct selecting selecting = { recvs, 2, 0, 0 };
	int k = weft_select(sends, 2);

	(void)arg;
	EXPECT(k == 0 || k == 1);
	EXPECT(weft_chan_count(&chan) == 1);
	EXPECT(weft_chan_recv(&chan, &value) == 0 && value == (uint32_t)k);
	WEFT_SUPERVISE(all) {
		(void)start_select(all, &selecting);
		let_all_wait();
		for (value = 7; value < 9; value++)
			EXPECT(weft_chan_try_send(&chan, &value) == 0);
	}
	k = selecting.result;
	EXPECT(k == 0 || k == 1);
	EXPECT(values[2 + k] == 7 && values[3 - k] == UNTOUCHED);
	EXPECT(weft_chan_try_recv(&chan, &value) == 0 && value == 8);
	chan_is_forsaken(&chan);
	return 0;
}

START_TEST(channel_in_two_cases_is_used_once)
{
	(void)run_main(_i, same_channel);
}
END_TEST

/* A select that sends and receives at one channel. */
struct both_ways {
	uint32_t in, out;
	struct weft_case cases[2];
	struct selecting selecting;
};

static void both_ways_begin(struct both_ways *both, struct weft_chan *chan,
			    uint32_t value)
{
	bool swapped = fake_random(2);

	both->in = value;
	both->out = UNTOUCHED;
	both->cases[swapped] =
		(struct weft_case)WEFT_SEND(chan, &both->in);
	both->cases[!swapped] =
		(struct weft_case)WEFT_RECV(chan, &both->out);
	both->selecting = (struct selecting){ both->cases, 2, WEFT_MS(5), 0 };
}

static int64_t send_to_itself(void *arg)
{
	struct weft_chan chan = WEFT_CHAN_DIRECT(uint32_t);
	struct both_ways one, two;
	bool one_sent;

	(void)arg;
	/* Alone it meets no partner, not even itself. */
	both_ways_begin(&one, &chan, 1);
	WEFT_SUPERVISE(all)
		(void)start_select(all, &one.selecting);
	EXPECT(one.selecting.result == -ETIMEDOUT && one.out == UNTOUCHED);
	chan_is_forsaken(&chan);
	/* Two of them meet: one sends and one receives. */
	both_ways_begin(&one, &chan, 1);
	both_ways_begin(&two, &chan, 2);
	WEFT_SUPERVISE(all) {
		(void)start_select(all, &one.selecting);
		(void)start_select(all, &two.selecting);
	}
	EXPECT(one.selecting.result >= 0 && two.selecting.result >= 0);
	one_sent = one.cases[one.selecting.result].kind == WEFT_CASE_SEND;
	EXPECT(two.cases[two.selecting.result].kind ==
	       (one_sent ? WEFT_CASE_RECV : WEFT_CASE_SEND));
	EXPECT(one.out == (one_sent ? UNTOUCHED : 2));
	EXPECT(two.out == (one_sent ? 1 : UNTOUCHED));
	chan_is_forsaken(&chan);
	return 0;
}

START_TEST(select_does_not_meet_itself_but_its_like)
{
	(void)run_main(_i, send_to_itself);
}
END_TEST

/* ---- Closed channels ----------------------------------------------------- */

static int64_t select_closed(void *arg)
{
	uint32_t value = 3, room[2];
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	struct weft_chan never = WEFT_CHAN_DIRECT(uint32_t);
	struct weft_case cases[] = { WEFT_RECV(&never, &value),
				     WEFT_SEND(&chan, &value) };

	(void)arg;
	EXPECT(weft_chan_send(&chan, &value) == 0);
	weft_chan_close(&chan);
	EXPECT(weft_select(cases, 2) == 1 && cases[1].result == -EPIPE);
	cases[1] = (struct weft_case)WEFT_RECV(&chan, &value);
	value = UNTOUCHED;
	EXPECT(weft_select(cases, 2) == 1 && cases[1].result == 0);
	EXPECT(value == 3);
	EXPECT(weft_select(cases, 2) == 1 && cases[1].result == -EPIPE);
	EXPECT(weft_try_select(cases, 2) == 1 && cases[1].result == -EPIPE);
	EXPECT(value == 3);
	chan_is_forsaken(&never);
	return 0;
}

START_TEST(closed_channel_is_a_case_that_can_be_done)
{
	(void)run_main(_i, select_closed);
}
END_TEST

static void close_one(enum weft_case_kind kind)
{
	struct board board;
	struct selecting selecting = { board.cases, CHANS, 0, 0 };
	uint32_t closed = (uint32_t)fake_random(CHANS);

	board_begin(&board, 0, kind);
	WEFT_SUPERVISE(all) {
		(void)start_select(all, &selecting);
		let_all_wait();
		weft_chan_close(&board.chans[closed]);
		/* The select's other waiters are stale already. */
		for (int i = 0; i < CHANS; i++)
			weft_chan_close(&board.chans[i]);
	}
	EXPECT(selecting.result == (int)closed);
	EXPECT(board.cases[closed].result == -EPIPE);
	for (uint32_t i = 0; kind == WEFT_CASE_RECV && i < CHANS; i++)
		EXPECT(board.values[i] == UNTOUCHED);
}

static int64_t close_while_selecting(void *arg)
{
	(void)arg;
	close_one(WEFT_CASE_SEND);
	close_one(WEFT_CASE_RECV);
	return 0;
}

START_TEST(close_wakes_a_select_once)
{
	(void)run_main(_i, close_while_selecting);
}
END_TEST

/* ---- Limits -------------------------------------------------------------- */

static int64_t select_too_much(void *arg)
{
	struct weft_case cases[WEFT_CASES_MAX + 1];
	uint32_t value = 1, room[1], in = 5;
	struct weft_chan ready = WEFT_CHAN_INIT(room);
	struct weft_chan never = WEFT_CHAN_DIRECT(uint32_t);

	(void)arg;
	EXPECT(weft_chan_send(&ready, &in) == 0);
	for (size_t i = 0; i <= WEFT_CASES_MAX; i++)
		cases[i] = (struct weft_case)WEFT_RECV(&never, &value);
	cases[0] = (struct weft_case)WEFT_RECV(&ready, &value);
	EXPECT(weft_select(cases, WEFT_CASES_MAX + 1) == -EINVAL);
	EXPECT(weft_try_select(cases, WEFT_CASES_MAX + 1) == -EINVAL);
	EXPECT(weft_select(cases, SIZE_MAX) == -EINVAL);
	EXPECT(weft_select(NULL, 1) == -EINVAL);
	cases[1].kind = (enum weft_case_kind)(WEFT_CASE_AT + 1);
	EXPECT(weft_select(cases, 2) == -EINVAL);
	EXPECT(weft_try_select(cases, 2) == -EINVAL);
	cases[1].kind = WEFT_CASE_RECV;
	cases[1].chan = NULL;
	EXPECT(weft_select(cases, 2) == -EINVAL);
	EXPECT(weft_try_select(cases, 2) == -EINVAL);
	cases[1].chan = &never;
	/* The refused calls had no effect. */
	EXPECT(weft_chan_count(&ready) == 1 && value == 1);
	EXPECT(weft_select(cases, WEFT_CASES_MAX) == 0 && value == 5);
	EXPECT(weft_try_select(cases, WEFT_CASES_MAX) == -EAGAIN);
	return 0;
}

START_TEST(sixty_four_cases_and_no_more)
{
	(void)run_main(_i, select_too_much);
}
END_TEST

/* The last of as many cases as allowed wins, with waiters in many queues. */
static int64_t select_the_most(void *arg)
{
	static struct weft_chan chans[WEFT_CASES_MAX];
	struct weft_case cases[WEFT_CASES_MAX];
	uint32_t values[WEFT_CASES_MAX];
	struct selecting selecting = { cases, WEFT_CASES_MAX, 0, 0 };

	(void)arg;
	for (size_t i = 0; i < WEFT_CASES_MAX; i++) {
		chan_begin(&chans[i], NULL, 0);
		cases[i] = (struct weft_case)WEFT_RECV(&chans[i], &values[i]);
	}
	for (uint32_t i = 0; i < WEFT_CASES_MAX; i++) {
		WEFT_SUPERVISE(all) {
			(void)start_select(all, &selecting);
			let_all_wait();
			EXPECT(weft_chan_try_send(&chans[i], &i) == 0);
		}
		EXPECT(selecting.result == (int)i && values[i] == i);
	}
	for (size_t i = 0; i < WEFT_CASES_MAX; i++)
		chan_is_forsaken(&chans[i]);
	return 0;
}

START_TEST(each_of_sixty_four_cases_can_be_met)
{
	(void)run_main(_i, select_the_most);
}
END_TEST

/* ---- Nothing to wait for ------------------------------------------------- */

static int64_t select_nothing(void *arg)
{
	struct weft_case none[2] = { { .kind = WEFT_CASE_NONE },
				     { .kind = WEFT_CASE_NONE } };

	(void)arg;
	EXPECT(weft_try_select(none, 2) == -EAGAIN);
	EXPECT(weft_try_select(NULL, 0) == -EAGAIN);
	for (size_t count = 0; count <= 2; count += 2) {
		struct selecting selecting = { none, count, WEFT_MS(3), 0 };
		struct weft_task task;
		weft_nsec start_ns = weft_now();

		WEFT_SUPERVISE(all)
			(void)start_select(all, &selecting);
		EXPECT(selecting.result == -ETIMEDOUT);
		EXPECT(weft_now() >= start_ns + WEFT_MS(3));
		selecting.within_ns = 0;
		WEFT_SUPERVISE(all) {
			task = start_select(all, &selecting);
			EXPECT(weft_sleep(WEFT_SEC(10)) == 0);
			EXPECT(selecting.result == INT32_MIN);
			EXPECT(weft_cancel(task) == 0);
		}
		EXPECT(selecting.result == -ECANCELED);
	}
	return 0;
}

START_TEST(select_of_nothing_waits_until_it_is_interrupted)
{
	(void)run_main(_i, select_nothing);
}
END_TEST

/* The other cases keep their numbers. */
static int64_t leave_cases_out(void *arg)
{
	struct board board;
	struct selecting selecting = { board.cases, CHANS, 0, 0 };
	uint32_t value = 9;

	(void)arg;
	board_begin(&board, 1, WEFT_CASE_RECV);
	for (int i = 0; i < CHANS; i++) {
		EXPECT(weft_chan_send(&board.chans[i], &value) == 0);
		if (i != 5)
			board.cases[i].kind = WEFT_CASE_NONE;
	}
	EXPECT(weft_select(board.cases, CHANS) == 5);
	EXPECT(weft_try_select(board.cases, CHANS) == -EAGAIN);
	EXPECT(board_count(&board) == CHANS - 1);
	WEFT_SUPERVISE(all) {
		(void)start_select(all, &selecting);
		let_all_wait();
		EXPECT(weft_chan_try_send(&board.chans[5], &value) == 0);
	}
	EXPECT(selecting.result == 5 && board_count(&board) == CHANS - 1);
	return 0;
}

START_TEST(case_that_is_left_out_is_never_done)
{
	(void)run_main(_i, leave_cases_out);
}
END_TEST

static int64_t select_within(void *arg)
{
	struct board board;
	int k = 0;

	(void)arg;
	board_begin(&board, 0, WEFT_CASE_RECV);
	WEFT_WITHIN(WEFT_MS(2)) {
		EXPECT(weft_select(board.cases, CHANS) == -ETIMEDOUT);
		EXPECT(weft_select(board.cases, CHANS) == -ETIMEDOUT);
		/* try_select does not wait. */
		EXPECT(weft_try_select(board.cases, CHANS) == -EAGAIN);
	}
	board_forsaken(&board);
	WEFT_WITHIN(WEFT_MS(1))
		WEFT_WITHIN(WEFT_MS(2))
			EXPECT(weft_select(board.cases, CHANS) == -ECANCELED);
	board_forsaken(&board);
	weft_chan_close(&board.chans[2]);
	WEFT_WITHIN(WEFT_MS(2))
		k = weft_select(board.cases, CHANS);
	EXPECT(k == 2 && board.cases[2].result == -EPIPE);
	return 0;
}

START_TEST(select_obeys_the_deadline_of_its_block)
{
	(void)run_main(_i, select_within);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *select_suite(void)
{
	Suite *suite = suite_create("sync/select");
	TCase *tc = tcase_create("one case");

	ADD(tc, one_value_is_received_of_those_that_are_there);
	ADD(tc, one_value_is_sent_where_there_is_room);
	ADD(tc, waiter_that_is_stale_takes_and_gives_nothing);
	ADD(tc, select_has_its_turn_among_others_and_leaves_them_theirs);
	ADD(tc, channel_in_two_cases_is_used_once);
	ADD(tc, select_does_not_meet_itself_but_its_like);
	ADD(tc, closed_channel_is_a_case_that_can_be_done);
	ADD(tc, close_wakes_a_select_once);
	suite_add_tcase(suite, tc);

	tc = tcase_create("limits");
	ADD(tc, sixty_four_cases_and_no_more);
	ADD(tc, each_of_sixty_four_cases_can_be_met);
	ADD(tc, select_of_nothing_waits_until_it_is_interrupted);
	ADD(tc, case_that_is_left_out_is_never_done);
	ADD(tc, select_obeys_the_deadline_of_its_block);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { select_suite };

	return run_suites(make, 1);
}
