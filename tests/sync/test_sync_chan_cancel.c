/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/chan_cancel: a send, a receive or a select is cancelled, meets its
 * deadline, is shielded, or finds its channel closed.
 *
 * That happens before the call waits, while it waits, and at the very moment at
 * which it gets what it waits for.  Each call must have one outcome, and no
 * value may be lost or doubled.  The table below has one row for each
 * combination.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include "runtime/sync/chan.h"
#include "tests/support/chan_scene.h"

enum call { SEND, RECV, SELECT_SEND, SELECT_RECV };

/* The block around the call. */
enum guard {
	OPEN,
	WITHIN,	       /* a deadline that comes while it waits */
	WITHIN_OUTER,  /* the same, in an outer block */
	WITHIN_PASSED, /* a block of length 0 */
	SHIELD,
	WITHIN_SHIELD, /* a shield inside a block whose deadline comes */
};

/* The acts on the call.  All acts of one moment are done before another
 * task runs. */
enum act {
	NOTHING,
	MEET, /* the other side of the call, if it is there */
	TAKE, /* the same by a thread that is slow between having taken it out
		 of the queue and granting */
	CANCEL,
	CLOSE,
	PASS, /* the clock goes on until after the deadline */
};

enum { ACTS = 3 };

struct row {
	const char *name;
	enum guard guard;
	bool ready;	       /* possible without a wait */
	enum act before[ACTS]; /* before the call begins */
	enum act then[ACTS];   /* at one moment while it waits */
	enum act late;	       /* when it has found that its time is up, and
				  is about to leave the queue */
	enum act later;	       /* when no task can run any more */
	int result;
	int next; /* result of the next call, which need not wait */
};

static const struct row rows[] = {
	{ "ready", OPEN, true, { 0 }, { 0 }, NOTHING, NOTHING, 0, 0 },
	{ "met", OPEN, false, { 0 }, { MEET }, NOTHING, NOTHING, 0, 0 },

	{ "cancelled before, ready", OPEN, true, { CANCEL }, { 0 }, NOTHING,
	  NOTHING, -ECANCELED, -ECANCELED },
	{ "cancelled before", OPEN, false, { CANCEL }, { 0 }, NOTHING, NOTHING,
	  -ECANCELED, -ECANCELED },
	{ "cancelled before, met later", OPEN, false, { CANCEL }, { 0 },
	  NOTHING, MEET, -ECANCELED, -ECANCELED },
	{ "closed and cancelled before", OPEN, true, { CLOSE, CANCEL }, { 0 },
	  NOTHING, NOTHING, -ECANCELED, -ECANCELED },
	{ "cancelled", OPEN, false, { 0 }, { CANCEL }, NOTHING, NOTHING,
	  -ECANCELED, -ECANCELED },
	{ "cancelled, met later", OPEN, false, { 0 }, { CANCEL }, NOTHING, MEET,
	  -ECANCELED, -ECANCELED },
	{ "cancelled, closed later", OPEN, false, { 0 }, { CANCEL }, NOTHING,
	  CLOSE, -ECANCELED, -ECANCELED },
	{ "met, then cancelled", OPEN, false, { 0 }, { MEET, CANCEL }, NOTHING,
	  NOTHING, 0, -ECANCELED },
	{ "cancelled, then met", OPEN, false, { 0 }, { CANCEL, MEET }, NOTHING,
	  NOTHING, 0, -ECANCELED },
	{ "taken, then cancelled", OPEN, false, { 0 }, { TAKE, CANCEL },
	  NOTHING, NOTHING, 0, -ECANCELED },
	{ "cancelled, then taken", OPEN, false, { 0 }, { CANCEL, TAKE },
	  NOTHING, NOTHING, 0, -ECANCELED },

	{ "deadline", WITHIN, false, { 0 }, { 0 }, NOTHING, NOTHING, -ETIMEDOUT,
	  0 },
	{ "deadline, met later", WITHIN, false, { 0 }, { 0 }, NOTHING, MEET,
	  -ETIMEDOUT, 0 },
	{ "deadline, then met", WITHIN, false, { 0 }, { PASS, MEET }, NOTHING,
	  NOTHING, 0, 0 },
	{ "met, then deadline", WITHIN, false, { 0 }, { MEET, PASS }, NOTHING,
	  NOTHING, 0, 0 },
	{ "deadline, then cancelled", WITHIN, false, { 0 }, { PASS, CANCEL },
	  NOTHING, NOTHING, -ECANCELED, -ECANCELED },
	{ "ready before the deadline", WITHIN, true, { 0 }, { 0 }, NOTHING,
	  NOTHING, 0, 0 },
	{ "outer deadline", WITHIN_OUTER, false, { 0 }, { 0 }, NOTHING, NOTHING,
	  -ECANCELED, 0 },
	{ "outer deadline, then met", WITHIN_OUTER, false, { 0 },
	  { PASS, MEET }, NOTHING, NOTHING, 0, 0 },
	{ "deadline found, then met", WITHIN, false, { 0 }, { 0 }, MEET,
	  NOTHING, 0, 0 },
	{ "deadline found, then taken", WITHIN, false, { 0 }, { 0 }, TAKE,
	  NOTHING, 0, 0 },
	{ "taken, then deadline", WITHIN, false, { 0 }, { TAKE, PASS }, NOTHING,
	  NOTHING, 0, 0 },
	{ "deadline found, then closed", WITHIN, false, { 0 }, { 0 }, CLOSE,
	  NOTHING, -EPIPE, 0 },
	{ "outer deadline found, then met", WITHIN_OUTER, false, { 0 }, { 0 },
	  MEET, NOTHING, 0, 0 },
	{ "no time", WITHIN_PASSED, false, { 0 }, { 0 }, NOTHING, MEET,
	  -ETIMEDOUT, 0 },
	{ "no time, but ready", WITHIN_PASSED, true, { 0 }, { 0 }, NOTHING,
	  NOTHING, 0, 0 },

	{ "shielded, cancelled before, ready", SHIELD, true, { CANCEL }, { 0 },
	  NOTHING, NOTHING, 0, -ECANCELED },
	{ "shielded, cancelled before, met", SHIELD, false, { CANCEL },
	  { MEET }, NOTHING, NOTHING, 0, -ECANCELED },
	{ "shielded, cancelled, met later", SHIELD, false, { 0 }, { CANCEL },
	  NOTHING, MEET, 0, -ECANCELED },
	{ "shielded, cancelled, closed later", SHIELD, false, { 0 }, { CANCEL },
	  NOTHING, CLOSE, -EPIPE, -ECANCELED },
	{ "shielded from a deadline, met later", WITHIN_SHIELD, false, { 0 },
	  { 0 }, NOTHING, MEET, 0, 0 },

	{ "closed before", OPEN, false, { CLOSE }, { 0 }, NOTHING, NOTHING,
	  -EPIPE, 0 },
	{ "closed", OPEN, false, { 0 }, { CLOSE }, NOTHING, NOTHING, -EPIPE,
	  0 },
	{ "closed, then cancelled", OPEN, false, { 0 }, { CLOSE, CANCEL },
	  NOTHING, NOTHING, -EPIPE, -ECANCELED },
	{ "cancelled, then closed", OPEN, false, { 0 }, { CANCEL, CLOSE },
	  NOTHING, NOTHING, -EPIPE, -ECANCELED },
	{ "closed, then deadline", WITHIN, false, { 0 }, { CLOSE, PASS },
	  NOTHING, NOTHING, -EPIPE, 0 },
	{ "closed, then met", OPEN, false, { 0 }, { CLOSE, MEET }, NOTHING,
	  NOTHING, -EPIPE, 0 },
	{ "met, then closed", OPEN, false, { 0 }, { MEET, CLOSE }, NOTHING,
	  NOTHING, 0, 0 },
	{ "taken, closed and cancelled", OPEN, false, { 0 },
	  { TAKE, CLOSE, CANCEL }, NOTHING, NOTHING, 0, -ECANCELED },
	{ "met, closed and cancelled", OPEN, false, { 0 },
	  { MEET, CLOSE, CANCEL }, NOTHING, NOTHING, 0, -ECANCELED },
	{ "cancelled, met and closed", OPEN, false, { 0 },
	  { CANCEL, MEET, CLOSE }, NOTHING, NOTHING, 0, -ECANCELED },
	{ "cancelled, closed and met", OPEN, false, { 0 },
	  { CANCEL, CLOSE, MEET }, NOTHING, NOTHING, -EPIPE, -ECANCELED },
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* The times of a run: when its parts begin, and how long its blocks are. */
#define ACTS_BEFORE_NS WEFT_MS(1)
#define CALL_NS WEFT_MS(2)
#define ACTS_NS WEFT_MS(4)
#define DEADLINE_NS WEFT_MS(8)
#define LATER_NS WEFT_MS(40)

/* One run: a row, a call, a capacity and a way of cancelling. */
static struct {
	struct row row;
	enum call call;
	bool by_scope;
	struct book book;
	struct weft_chan chan, never, spare;
	uint32_t room[1], spare_room[1];
	weft_nsec begin_ns;
	struct weft_task task;
	struct weft_scope *scope;
	int result, next;
	bool waits, ended;
} run;

/* ---- The call ------------------------------------------------------------ */

static bool sends(void)
{
	return run.call == SEND || run.call == SELECT_SEND;
}

/* The select has two more cases: one that is never ready, and one that is
 * empty. */
static int call_select(uint32_t *value)
{
	uint32_t other = 77;
	struct weft_case cases[] = { WEFT_RECV(&run.never, &other),
				     { .kind = WEFT_CASE_NONE },
				     WEFT_SEND(&run.chan, value) };
	int k;

	if (!sends())
		cases[2].kind = WEFT_CASE_RECV;
	if (fake_random(2))
		cases[0].kind = WEFT_CASE_SEND;
	k = weft_select(cases, 3);
	EXPECT(k == 2 || k < 0);
	EXPECT(other == 77);
	return k < 0 ? k : cases[2].result;
}

/* The value is entered in the book if the call succeeded. */
static int call_bare(void)
{
	uint32_t value = sends() ? book_value(&run.book) : 99;
	int r;

	if (run.call == SEND)
		r = weft_chan_send(&run.chan, &value);
	else if (run.call == RECV)
		r = weft_chan_recv(&run.chan, &value);
	else
		r = call_select(&value);
	if (r == 0)
		(sends() ? book_sent : book_got)(&run.book, value);
	else
		EXPECT(sends() || value == 99);
	return r;
}

static int call_guarded(void)
{
	int r = 0;

	switch (run.row.guard) {
	case OPEN:
		r = call_bare();
		break;
	case WITHIN:
		WEFT_WITHIN(DEADLINE_NS)
			r = call_bare();
		break;
	case WITHIN_OUTER:
		WEFT_WITHIN(DEADLINE_NS)
			WEFT_WITHIN(2 * DEADLINE_NS)
				r = call_bare();
		break;
	case WITHIN_PASSED:
		WEFT_WITHIN(0)
			r = call_bare();
		break;
	case SHIELD:
		WEFT_SHIELD
			r = call_bare();
		break;
	case WITHIN_SHIELD:
		WEFT_WITHIN(DEADLINE_NS)
			WEFT_SHIELD
				r = call_bare();
		break;
	}
	return r;
}

static int64_t subject(void *arg)
{
	uint32_t value;

	(void)arg;
	WEFT_SHIELD
		EXPECT(weft_sleep_until(run.begin_ns + CALL_NS) == 0);
	run.result = call_guarded();
	run.next = weft_chan_recv(&run.spare, &value);
	run.ended = true;
	return 0;
}

/* ---- The other side ------------------------------------------------------ */

/* Makes the call possible, or does as much of that as it can. */
static void meet(void)
{
	uint32_t value = 0;

	if (sends()) {
		if (weft_chan_try_recv(&run.chan, &value) == 0)
			book_got(&run.book, value);
		return;
	}
	value = book_value(&run.book);
	if (weft_chan_try_send(&run.chan, &value) == 0)
		book_sent(&run.book, value);
}

static void grant_now(void *met)
{
	weft__waiter_grant(NULL, met, WEFT__CHAN_DONE);
}

/* The two halves of a call, with time for other tasks in between. */
static void take(void)
{
	struct weft__chan *c = weft__chan(&run.chan);
	struct weft__waiter *met;
	uint32_t value = sends() ? 0 : book_value(&run.book);

	weft__lock_take(&c->lock);
	EXPECT((sends() ? weft__chan_recv_now(c, &value, &met) :
			  weft__chan_send_now(c, &value, &met)) == 0);
	weft__lock_drop(&c->lock);
	(sends() ? book_got : book_sent)(&run.book, value);
	EXPECT(met != NULL);
	fake_foreign(WEFT_MS(1), grant_now, met);
}

/* A task that meets the call by waiting for it. */
static int64_t partner(void *arg)
{
	uint32_t value = 0;

	(void)arg;
	if (sends()) {
		if (weft_chan_recv(&run.chan, &value) == 0)
			book_got(&run.book, value);
		return 0;
	}
	value = book_value(&run.book);
	if (weft_chan_send(&run.chan, &value) == 0)
		book_sent(&run.book, value);
	return 0;
}

static void act(enum act act)
{
	switch (act) {
	case NOTHING:
		break;
	case MEET:
		meet();
		break;
	case TAKE:
		take();
		break;
	case CANCEL:
		if (run.by_scope)
			weft_scope_cancel(run.scope);
		else
			EXPECT(weft_cancel(run.task) == 0);
		break;
	case CLOSE:
		weft_chan_close(&run.chan);
		break;
	case PASS:
		fake_pass(2 * DEADLINE_NS);
		break;
	}
}

static void act_all(const enum act acts[ACTS])
{
	for (int i = 0; i < ACTS; i++)
		act(acts[i]);
}

/* The subject reads the clock when it was woken because its time may be up.
 * The act comes from another thread at this moment. */
static void look(void *arg)
{
	struct weft__worker *here = weft__worker_self();

	(void)arg;
	if (!run.waits || weft_self().id != run.task.id)
		return;
	run.waits = false;
	weft__worker_set(NULL);
	act(run.row.late);
	weft__worker_set(here);
}

/* The call is made possible, or not; the values in the ring are in the book. */
static void set_up(struct weft_scope *partners, size_t capacity)
{
	bool fill = sends() ? !run.row.ready : run.row.ready;
	uint32_t value = 0;

	chan_begin(&run.chan, run.room, capacity);
	chan_begin(&run.never, NULL, 0);
	chan_begin(&run.spare, run.spare_room, 1);
	EXPECT(weft_chan_send(&run.spare, &value) == 0);
	if (!capacity && run.row.ready)
		EXPECT(weft_go(partners, partner, NULL, 0) == 0);
	if (!capacity || !fill)
		return;
	value = book_value(&run.book);
	EXPECT(weft_chan_send(&run.chan, &value) == 0);
	book_sent(&run.book, value);
}

/* ---- The run ------------------------------------------------------------- */

static void disturb(void)
{
	EXPECT(weft_sleep_until(run.begin_ns + ACTS_BEFORE_NS) == 0);
	act_all(run.row.before);
	EXPECT(weft_sleep_until(run.begin_ns + ACTS_NS) == 0);
	act_all(run.row.then);
	run.waits = true;
	EXPECT(weft_sleep_until(run.begin_ns + LATER_NS) == 0);
	run.waits = false;
	act(run.row.later);
}

static int64_t play(void *arg)
{
	size_t capacity = *(size_t *)arg;
	uint32_t value;

	run.begin_ns = weft_now();
	WEFT_SUPERVISE(partners) {
		set_up(partners, capacity);
		WEFT_SUPERVISE(subjects) {
			run.scope = subjects;
			run.task = start(subjects, subject, NULL, 0);
			disturb();
		}
		EXPECT(run.ended);
		weft_scope_cancel(partners);
	}
	/* All values that the calls left are in the ring. */
	chan_is_forsaken(&run.never);
	book_drain(&run.book, &run.chan);
	if (weft_chan_try_recv(&run.chan, &value) == -EAGAIN)
		chan_is_forsaken(&run.chan);
	return 0;
}

enum { CALLS = 4, PLAYS = ROWS * CALLS * 4 };

START_TEST(interrupted_call_has_one_outcome_and_loses_nothing)
{
	size_t capacity = (size_t)_i % 2;
	struct fake_config config = { .seed = seed_of(_i), .on_look = look };

	memset(&run, 0, sizeof(run));
	run.by_scope = _i / 2 % 2;
	run.call = (enum call)(_i / 4 % CALLS);
	run.row = rows[_i / 4 / CALLS];
	run.result = run.next = 1;
	for (config.workers = 1; config.workers <= 4; config.workers++) {
		run.book.next = 0;
		memset(run.book.sent, 0, sizeof(run.book.sent));
		memset(run.book.got, 0, sizeof(run.book.got));
		run.ended = false;
		(void)must_run(&config, play, &capacity);
		ck_assert_msg(run.result == run.row.result &&
				      run.next == run.row.next,
			      "%s: %d, then %d (call %d, capacity %d)",
			      run.row.name, run.result, run.next,
			      (int)run.call, (int)capacity);
		book_close(&run.book);
	}
}
END_TEST

/* ---- Calls that do not wait ---------------------------------------------- */

/* Each call counts as an operation; after many of them the task yields, and
 * learns that it is cancelled. */
static int64_t go_round(void *arg)
{
	uint32_t room[1], value = 0;
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	struct weft_case cases[] = { WEFT_RECV(&chan, &value),
				     WEFT_SEND(&chan, &value) };
	int r = 0;

	(void)arg;
	for (int i = 0; r >= 0 && i < 100000; i++) {
		fake_pass(1000);
		r = i % 3 ? weft_select(cases, 2) :
		    weft_chan_count(&chan) ? weft_chan_recv(&chan, &value) :
					     weft_chan_send(&chan, &value);
	}
	return r;
}

static int64_t go_round_within(void *arg)
{
	int64_t r = 0;

	WEFT_WITHIN(WEFT_MS(5))
		r = go_round(arg);
	return r;
}

static int64_t stop_who_never_waits(void *arg)
{
	int64_t result = 0;

	(void)arg;
	WEFT_SUPERVISE(all) {
		struct weft_task task = start(all, go_round_within, NULL, 0);

		EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == -ETIMEDOUT);
		task = start(all, go_round, NULL, 0);
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
		EXPECT(weft_cancel(task) == 0);
		EXPECT(weft_join(task, &result) == 0);
		EXPECT(result == -ECANCELED);
	}
	return 0;
}

START_TEST(calls_that_never_wait_are_interrupted_all_the_same)
{
	(void)run_main(_i, stop_who_never_waits);
}
END_TEST

static Suite *cancel_suite(void)
{
	Suite *suite = suite_create("sync/chan_cancel");
	TCase *tc = tcase_create("matrix");

	tcase_add_loop_test(tc,
			    interrupted_call_has_one_outcome_and_loses_nothing,
			    0, PLAYS);
	suite_add_tcase(suite, tc);

	tc = tcase_create("never waits");
	tcase_add_loop_test(tc,
			    calls_that_never_wait_are_interrupted_all_the_same,
			    0, seeds(SEEDS));
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { cancel_suite };

	return run_suites(make, 1);
}
