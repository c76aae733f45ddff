/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/select_storm: many tasks select among many channels, and each
 * ready case gets its chance.  Every test runs over seeds and numbers of
 * workers, on virtual time.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include "tests/support/chan_scene.h"

enum { CHANS = 6, TASKS = 12, EACH = 250 };

/* The state of one run. */
static struct {
	struct book book;
	struct weft_chan chans[CHANS];
	uint32_t rooms[CHANS][1];
	uint32_t total, got;
	unsigned busy; /* tasks that may still send */
	bool over;
} storm;

enum rooms { NO_ROOM, ROOM_FOR_ONE, SOME_ROOM };

static void storm_begin(enum rooms rooms)
{
	memset(&storm, 0, sizeof(storm));
	for (uint32_t i = 0; i < CHANS; i++)
		chan_begin(&storm.chans[i], storm.rooms[i],
			   rooms == NO_ROOM ? 0 : rooms == SOME_ROOM ? i % 2 :
								       1);
}

static void storm_end(void)
{
	for (int i = 0; i < CHANS; i++) {
		book_drain(&storm.book, &storm.chans[i]);
		EXPECT(weft_chan_count(&storm.chans[i]) == 0);
	}
	book_close(&storm.book);
}

/* The state of a task: its values to send, and its cases. */
struct party {
	bool sends, receives; /* immutable */
	uint32_t left;	      /* values left to send */
	uint32_t in, out;
	struct weft_case cases[2 * CHANS];
};

static void party_cases(struct party *party)
{
	uint32_t offset = (uint32_t)fake_random(CHANS);

	for (uint32_t i = 0; i < CHANS; i++) {
		struct weft_chan *chan = &storm.chans[(i + offset) % CHANS];

		party->cases[2 * i] = (struct weft_case)WEFT_SEND(
			chan, &party->in);
		if (!party->left)
			party->cases[2 * i].kind = WEFT_CASE_NONE;
		party->cases[2 * i + 1] = (struct weft_case)WEFT_RECV(
			chan, &party->out);
		if (!party->receives)
			party->cases[2 * i + 1].kind = WEFT_CASE_NONE;
	}
}

/* The last value was received: closes the channels, so that all tasks end. */
static void storm_close(void)
{
	for (int i = 0; i < CHANS; i++)
		weft_chan_close(&storm.chans[i]);
}

/* Looks at the outcome of a select; true if there is more to do. */
static bool party_enters(struct party *party, int k)
{
	const struct weft_case *which = &party->cases[k];

	EXPECT(k >= 0 && k < 2 * CHANS);
	if (which->result == -EPIPE) {
		EXPECT(storm.got == storm.total && !party->left);
		return false;
	}
	EXPECT(which->result == 0);
	if (which->kind == WEFT_CASE_SEND) {
		book_sent(&storm.book, party->in);
		if (--party->left)
			party->in = book_value(&storm.book);
	} else {
		EXPECT(which->kind == WEFT_CASE_RECV);
		book_got(&storm.book, party->out);
		if (++storm.got == storm.total)
			storm_close();
	}
	return party->left || party->receives;
}

static int64_t party_task(void *arg)
{
	struct party party = *(struct party *)arg;
	bool goes_on = true;

	if (party.left)
		party.in = book_value(&storm.book);
	while (goes_on) {
		int k;

		party_cases(&party);
		k = weft_select(party.cases, 2 * CHANS);
		goes_on = party_enters(&party, k);
		if (fake_random(8) == 0)
			yield_some(2);
	}
	return 0;
}

/* Two tasks both send and receive in one select; others do one of the two. */
static int64_t storm_task(void *arg)
{
	(void)arg;
	for (enum rooms rooms = NO_ROOM; rooms <= SOME_ROOM; rooms++) {
		storm_begin(rooms);
		storm.total = TASKS * 2 / 3 * EACH;
		WEFT_SUPERVISE(all)
			for (int i = 0; i < TASKS; i++) {
				struct party party = {
					.sends = i % 3 != 0,
					.receives = i % 3 != 1,
					.left = i % 3 != 0 ? EACH : 0,
				};

				EXPECT(WEFT_GO(all, party_task, party) == 0);
			}
		EXPECT(storm.got == storm.total);
		storm_end();
	}
	return 0;
}

START_TEST(selects_among_many_lose_nothing_and_double_nothing)
{
	(void)run_main(_i, storm_task);
}
END_TEST

/* ---- With interruptions -------------------------------------------------- */

/* Makes any call on any channel; the values go into the book. */
static int random_select(struct party *party, uint64_t count)
{
	int k;

	for (uint64_t i = 0; i < count; i++) {
		struct weft_chan *chan = &storm.chans[fake_random(CHANS)];

		party->cases[i] = (struct weft_case)WEFT_RECV(chan,
							      &party->out);
		if (fake_random(2))
			party->cases[i] = (struct weft_case)WEFT_SEND(
				chan, &party->in);
		/* At least one case remains: a select without cases waits for
		 * ever. */
		if (i > 0 && fake_random(8) == 0)
			party->cases[i].kind = WEFT_CASE_NONE;
	}
	k = fake_random(8) ? weft_select(party->cases, count) :
			     weft_try_select(party->cases, count);
	if (k < 0 || party->cases[k].result < 0)
		return k < 0 ? k : party->cases[k].result;
	if (party->cases[k].kind == WEFT_CASE_SEND)
		return 1;
	EXPECT(party->cases[k].kind == WEFT_CASE_RECV);
	return 2;
}

/* Returns 1 if the value was sent, 2 if one was received, or an error. */
static int random_call(struct party *party)
{
	struct weft_chan *chan = &storm.chans[fake_random(CHANS)];
	uint32_t dropped;
	int r;

	switch (fake_random(6)) {
	case 0:
		r = weft_chan_send(chan, &party->in);
		return r == 0 ? 1 : r;
	case 1:
		r = weft_chan_recv(chan, &party->out);
		return r == 0 ? 2 : r;
	case 2:
		r = weft_chan_push(chan, &party->in, &dropped);
		if (r == 1)
			book_got(&storm.book, dropped);
		return r >= 0 ? 1 : r;
	default:
		return random_select(party, 1 + fake_random(2 * CHANS));
	}
}

static int random_within(struct party *party)
{
	int r = 0;

	if (fake_random(4) == 0)
		return random_call(party);
	WEFT_WITHIN(fake_random(30000))
		r = random_call(party);
	return r;
}

/* Runs until it is cancelled, or all is over. */
static int64_t interrupted_party(void *arg)
{
	struct party party = { 0 };
	int r = 0;

	(void)arg;
	party.in = book_value(&storm.book);
	while (r != -ECANCELED && !storm.over) {
		r = random_within(&party);
		EXPECT(r > 0 || r == -ECANCELED || r == -ETIMEDOUT ||
		       r == -EAGAIN || r == -EINVAL ||
		       (r == -EPIPE && storm.over));
		if (r == 1) {
			book_sent(&storm.book, party.in);
			party.in = book_value(&storm.book);
		} else if (r == 2) {
			book_got(&storm.book, party.out);
		}
		if (fake_random(2))
			r = weft_sleep(fake_random(4000));
	}
	return 0;
}

static struct weft_task start_party(struct weft_scope *scope)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.ret_task = &task;
	opts.flags = fake_random(4) == 0 ? WEFT_PINNED : 0;
	EXPECT(weft_go_opts(scope, interrupted_party, NULL, 0, &opts) == 0);
	return task;
}

static void interrupt_all_the_time(struct weft_scope *scope)
{
	struct weft_task tasks[TASKS];

	for (int i = 0; i < TASKS; i++)
		tasks[i] = start_party(scope);
	for (int n = 0; n < 300; n++) {
		uint64_t i = fake_random(TASKS);

		EXPECT(weft_sleep(fake_random(20000)) == 0);
		/* Cancels the task before it has begun, or at any of its
		 * calls. */
		EXPECT(weft_cancel(tasks[i]) == 0);
		if (fake_random(2))
			EXPECT(weft_join(tasks[i], NULL) == 0);
		tasks[i] = start_party(scope);
	}
}

static int64_t interrupted_storm(void *arg)
{
	(void)arg;
	for (enum rooms rooms = NO_ROOM; rooms <= SOME_ROOM; rooms++) {
		storm_begin(rooms);
		WEFT_SUPERVISE(all) {
			interrupt_all_the_time(all);
			storm.over = true;
			if (fake_random(2))
				weft_scope_cancel(all);
			storm_close();
		}
		/* Enough values were passed on. */
		EXPECT(storm.book.next > 200);
		storm_end();
	}
	return 0;
}

START_TEST(interrupted_calls_lose_nothing_and_double_nothing)
{
	(void)run_main(_i, interrupted_storm);
}
END_TEST

/* ---- Chances ------------------------------------------------------------- */

enum { TRIES = 4000, MANY = WEFT_CASES_MAX };

/* Counts how often each case was picked. */
static void count_picks(struct weft_case *cases, size_t count, unsigned *picks)
{
	for (int i = 0; i < TRIES; i++) {
		int k = i % 2 ? weft_select(cases, count) :
				weft_try_select(cases, count);

		EXPECT(k >= 0 && (size_t)k < count && cases[k].result == 0);
		picks[k]++;
		/* Restores the state before the select. */
		EXPECT(weft_chan_try_send(cases[k].chan, cases[k].item) == 0);
	}
}

static int64_t pick_among(void *arg)
{
	static const size_t counts[] = { 2, 3, MANY };
	static struct weft_chan chans[MANY];
	static uint32_t rooms[MANY][1];
	struct weft_case cases[MANY];
	uint32_t value = 0;

	(void)arg;
	for (uint32_t i = 0; i < MANY; i++) {
		chan_begin(&chans[i], rooms[i], 1);
		EXPECT(weft_chan_send(&chans[i], &value) == 0);
		cases[i] = (struct weft_case)WEFT_RECV(&chans[i], &value);
	}
	for (int i = 0; i < 3; i++) {
		unsigned picks[MANY] = { 0 };
		size_t fair = TRIES / counts[i];

		count_picks(cases, counts[i], picks);
		for (size_t k = 0; k < counts[i]; k++)
			EXPECT(picks[k] > fair / 3 && picks[k] < fair * 3);
	}
	return 0;
}

START_TEST(cases_that_are_ready_are_picked_alike)
{
	(void)run_main(_i, pick_among);
}
END_TEST

/* The first and the last case are ready; the many between them are not. */
static int64_t pick_the_ends(void *arg)
{
	static uint32_t rooms[2][1];
	struct weft_chan first = WEFT_CHAN_INIT(rooms[0]);
	struct weft_chan last = WEFT_CHAN_INIT(rooms[1]);
	struct weft_chan never = WEFT_CHAN_DIRECT(uint32_t);
	struct weft_case cases[MANY];
	unsigned picks[MANY] = { 0 };
	uint32_t value = 0;

	(void)arg;
	for (uint32_t i = 0; i < MANY; i++)
		cases[i] = (struct weft_case)WEFT_RECV(&never, &value);
	cases[0].chan = &first;
	cases[MANY - 1].chan = &last;
	EXPECT(weft_chan_send(&first, &value) == 0);
	EXPECT(weft_chan_send(&last, &value) == 0);
	count_picks(cases, MANY, picks);
	EXPECT(picks[0] > 0 && picks[MANY - 1] > 0);
	EXPECT(picks[0] + picks[MANY - 1] == TRIES);
	return 0;
}

START_TEST(no_case_that_is_ready_starves)
{
	(void)run_main(_i, pick_the_ends);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *storm_suite(void)
{
	Suite *suite = suite_create("sync/select_storm");
	TCase *tc = tcase_create("storms");

	tcase_set_timeout(tc, 30);
	ADD(tc, selects_among_many_lose_nothing_and_double_nothing);
	ADD(tc, interrupted_calls_lose_nothing_and_double_nothing);
	suite_add_tcase(suite, tc);

	tc = tcase_create("chances");
	ADD(tc, cases_that_are_ready_are_picked_alike);
	ADD(tc, no_case_that_is_ready_starves);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { storm_suite };

	return run_suites(make, 1);
}
