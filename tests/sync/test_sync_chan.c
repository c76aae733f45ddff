/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/chan: the effect of each call on a channel in each state
 * (include/weft/chan.h), on virtual time.
 *
 * The tables list a call, the state before it, its result and the state after
 * it, for channels with room and for direct ones.  Further tests cover channels
 * of many elements, closing, yielding and threads that are not workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include "tests/support/chan_scene.h"

/* ---- The table ---------------------------------------------------------- */

enum call { SEND, TRY_SEND, PUSH, RECV, TRY_RECV, CLOSE };

/* A call that has to wait is given up after a short time. */
enum { WAITS = -ETIMEDOUT };

/* Values are letters, and the value to send is 'n'.  If `moved` holds a letter,
 * the call must return that value. */
struct cell {
	enum call call;
	bool closed;
	const char *held;
	int result;
	const char *moved;
	const char *left;
};

static const struct cell cells[] = {
	/* Channels with room for two values. */
	{ SEND, false, "", 0, "", "n" },
	{ SEND, false, "a", 0, "", "an" },
	{ SEND, false, "ab", WAITS, "", "ab" },
	{ SEND, true, "", -EPIPE, "", "" },
	{ SEND, true, "a", -EPIPE, "", "a" },
	{ SEND, true, "ab", -EPIPE, "", "ab" },
	{ TRY_SEND, false, "", 0, "", "n" },
	{ TRY_SEND, false, "a", 0, "", "an" },
	{ TRY_SEND, false, "ab", -EAGAIN, "", "ab" },
	{ TRY_SEND, true, "", -EPIPE, "", "" },
	{ TRY_SEND, true, "a", -EPIPE, "", "a" },
	{ TRY_SEND, true, "ab", -EPIPE, "", "ab" },
	{ PUSH, false, "", 0, "", "n" },
	{ PUSH, false, "a", 0, "", "an" },
	{ PUSH, false, "ab", 1, "a", "bn" },
	{ PUSH, true, "", -EPIPE, "", "" },
	{ PUSH, true, "a", -EPIPE, "", "a" },
	{ PUSH, true, "ab", -EPIPE, "", "ab" },
	{ RECV, false, "", WAITS, "", "" },
	{ RECV, false, "a", 0, "a", "" },
	{ RECV, false, "ab", 0, "a", "b" },
	{ RECV, true, "", -EPIPE, "", "" },
	{ RECV, true, "a", 0, "a", "" },
	{ RECV, true, "ab", 0, "a", "b" },
	{ TRY_RECV, false, "", -EAGAIN, "", "" },
	{ TRY_RECV, false, "a", 0, "a", "" },
	{ TRY_RECV, false, "ab", 0, "a", "b" },
	{ TRY_RECV, true, "", -EPIPE, "", "" },
	{ TRY_RECV, true, "a", 0, "a", "" },
	{ TRY_RECV, true, "ab", 0, "a", "b" },
	{ CLOSE, false, "", 0, "", "" },
	{ CLOSE, false, "a", 0, "", "a" },
	{ CLOSE, false, "ab", 0, "", "ab" },
	{ CLOSE, true, "", 0, "", "" },
	{ CLOSE, true, "a", 0, "", "a" },
	{ CLOSE, true, "ab", 0, "", "ab" },
};

enum { CELLS = sizeof(cells) / sizeof(cells[0]) };

/* If the call waits, it waits for a short time only.  *out gets the value that
 * the call returns. */
static int do_call(struct weft_chan *chan, enum call call, char *out)
{
	char in = 'n';
	int r = 0;

	switch (call) {
	case SEND:
		WEFT_WITHIN(WEFT_MS(1))
			r = weft_chan_send(chan, &in);
		break;
	case TRY_SEND:
		r = weft_chan_try_send(chan, &in);
		break;
	case PUSH:
		r = weft_chan_push(chan, &in, out);
		break;
	case RECV:
		WEFT_WITHIN(WEFT_MS(1))
			r = weft_chan_recv(chan, out);
		break;
	case TRY_RECV:
		r = weft_chan_try_recv(chan, out);
		break;
	case CLOSE:
		weft_chan_close(chan);
		break;
	}
	EXPECT(in == 'n');
	return r;
}

/* The channel must hold these values in order; it is empty and closed
 * afterwards. */
static void expect_left(struct weft_chan *chan, const char *left)
{
	char letter = '-';

	EXPECT(weft_chan_count(chan) == strlen(left));
	weft_chan_close(chan);
	for (; *left; left++) {
		EXPECT(weft_chan_recv(chan, &letter) == 0);
		EXPECT(letter == *left);
	}
	letter = '-';
	EXPECT(weft_chan_recv(chan, &letter) == -EPIPE);
	EXPECT(letter == '-');
}

static void cell_set_up(const struct cell *cell, struct weft_chan *chan)
{
	for (const char *held = cell->held; *held; held++)
		EXPECT(weft_chan_send(chan, held) == 0);
	if (cell->closed)
		weft_chan_close(chan);
}

static void cell_judge(const struct cell *cell, struct weft_chan *chan, int r,
		       char out)
{
	EXPECT(r == cell->result);
	EXPECT(out == (cell->moved[0] ? cell->moved[0] : '-'));
	if (cell->call == CLOSE)
		EXPECT(weft_chan_try_send(chan, "x") == -EPIPE);
	expect_left(chan, cell->left);
}

/* Starts at each place of the ring. */
static int64_t cell_task(void *arg)
{
	const struct cell *cell = arg;

	for (int start = 0; start < 5; start++) {
		char room[2], out = '-', letter;
		struct weft_chan chan = WEFT_CHAN_INIT(room);
		int r;

		for (int i = 0; i < start; i++) {
			EXPECT(weft_chan_send(&chan, "x") == 0);
			EXPECT(weft_chan_recv(&chan, &letter) == 0);
		}
		cell_set_up(cell, &chan);
		r = do_call(&chan, cell->call, &out);
		cell_judge(cell, &chan, r, out);
	}
	return 0;
}

START_TEST(call_does_what_the_table_says)
{
	struct cell cell = cells[_i];
	struct fake_config config = { .seed = seed_of(_i),
				      .workers = 1 + (unsigned)_i % 4 };

	(void)must_run(&config, cell_task, &cell);
}
END_TEST

/* A thread that is not a worker gets the same results.  Calls that would wait
 * are left out, because a fake run has no second thread. */
struct foreign_cell {
	const struct cell *cell;
	struct weft_chan *chan;
	char out;
	int result;
	bool done;
};

static void foreign_cell_run(void *arg)
{
	struct foreign_cell *foreign = arg;

	foreign->result = do_call(foreign->chan, foreign->cell->call,
				  &foreign->out);
	foreign->done = true;
}

static int64_t foreign_cell_task(void *arg)
{
	const struct cell *cell = arg;
	char room[2];
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	struct foreign_cell foreign = { cell, &chan, '-', 0, false };

	cell_set_up(cell, &chan);
	fake_foreign(1000, foreign_cell_run, &foreign);
	while (!foreign.done)
		EXPECT(weft_sleep(1000) == 0);
	cell_judge(cell, &chan, foreign.result, foreign.out);
	return 0;
}

START_TEST(call_of_a_thread_does_what_the_table_says)
{
	struct cell cell = cells[_i];
	struct fake_config config = { .seed = seed_of(_i), .workers = 2 };

	/* WEFT_WITHIN needs a task. */
	if (cell.call == SEND || cell.call == RECV)
		return;
	(void)must_run(&config, foreign_cell_task, &cell);
}
END_TEST

/* ---- Channels without room ---------------------------------------------- */

enum meeting { NOBODY, RECEIVER, SENDER, SHUT };

struct direct_cell {
	enum call call;
	enum meeting meeting;
	int result;
	char moved;    /* value that the call returns */
	int met;       /* result of the waiting task */
	char met_moved; /* value that it received */
};

static const struct direct_cell direct_cells[] = {
	{ SEND, NOBODY, WAITS, '-', 0, '-' },
	{ SEND, RECEIVER, 0, '-', 0, 'n' },
	{ SEND, SENDER, WAITS, '-', WAITS, '-' },
	{ SEND, SHUT, -EPIPE, '-', 0, '-' },
	{ TRY_SEND, NOBODY, -EAGAIN, '-', 0, '-' },
	{ TRY_SEND, RECEIVER, 0, '-', 0, 'n' },
	{ TRY_SEND, SENDER, -EAGAIN, '-', WAITS, '-' },
	{ TRY_SEND, SHUT, -EPIPE, '-', 0, '-' },
	{ PUSH, NOBODY, -EINVAL, '-', 0, '-' },
	{ PUSH, RECEIVER, 0, '-', 0, 'n' },
	{ PUSH, SENDER, -EINVAL, '-', WAITS, '-' },
	{ PUSH, SHUT, -EPIPE, '-', 0, '-' },
	{ RECV, NOBODY, WAITS, '-', 0, '-' },
	{ RECV, RECEIVER, WAITS, '-', WAITS, '-' },
	{ RECV, SENDER, 0, 'n', 0, '-' },
	{ RECV, SHUT, -EPIPE, '-', 0, '-' },
	{ TRY_RECV, NOBODY, -EAGAIN, '-', 0, '-' },
	{ TRY_RECV, RECEIVER, -EAGAIN, '-', WAITS, '-' },
	{ TRY_RECV, SENDER, 0, 'n', 0, '-' },
	{ TRY_RECV, SHUT, -EPIPE, '-', 0, '-' },
	{ CLOSE, NOBODY, 0, '-', 0, '-' },
	{ CLOSE, RECEIVER, 0, '-', -EPIPE, '-' },
	{ CLOSE, SENDER, 0, '-', -EPIPE, '-' },
	{ CLOSE, SHUT, 0, '-', 0, '-' },
};

enum { DIRECT_CELLS = sizeof(direct_cells) / sizeof(direct_cells[0]) };

struct other {
	struct weft_chan *chan;
	enum call call;
	char out;
	int result;
};

static int64_t other_task(void *arg)
{
	struct other *other = *(struct other **)arg;
	char in = 'n';

	WEFT_WITHIN(WEFT_MS(5))
		other->result = other->call == SEND ?
					weft_chan_send(other->chan, &in) :
					weft_chan_recv(other->chan,
						       &other->out);
	return 0;
}

static int64_t direct_cell_task(void *arg)
{
	const struct direct_cell *cell = arg;
	struct weft_chan chan = WEFT_CHAN_DIRECT(char);
	struct other other = { &chan, cell->meeting == SENDER ? SEND : RECV,
			       '-', 0 };
	struct other *pointer = &other;
	char out = '-';

	WEFT_SUPERVISE(all) {
		if (cell->meeting == SHUT)
			weft_chan_close(&chan);
		else if (cell->meeting != NOBODY)
			EXPECT(WEFT_GO(all, other_task, pointer) == 0);
		let_all_wait();
		EXPECT(do_call(&chan, cell->call, &out) == cell->result);
	}
	EXPECT(out == cell->moved);
	EXPECT(other.result == cell->met && other.out == cell->met_moved);
	expect_left(&chan, "");
	return 0;
}

START_TEST(call_without_room_meets_who_waits)
{
	struct direct_cell cell = direct_cells[_i / 4];
	struct fake_config config = { .seed = seed_of(_i),
				      .workers = 1 + (unsigned)_i % 4 };

	(void)must_run(&config, direct_cell_task, &cell);
}
END_TEST

/* ---- Initializing -------------------------------------------------------- */

START_TEST(init_refuses_what_cannot_be)
{
	const size_t max = (size_t)1 << 31;
	struct weft_chan chan, before;
	char room[64];

	memset(&chan, 0x5a, sizeof(chan));
	before = chan;
	ck_assert_int_eq(weft_chan_init(&chan, room, 4, 0), -EINVAL);
	ck_assert_int_eq(weft_chan_init(&chan, room, 4, 4097), -EINVAL);
	ck_assert_int_eq(weft_chan_init(&chan, room, 4, SIZE_MAX), -EINVAL);
	ck_assert_int_eq(weft_chan_init(&chan, room, max + 1, 1), -EINVAL);
	ck_assert_int_eq(weft_chan_init(&chan, room, SIZE_MAX, 1), -EINVAL);
	ck_assert_int_eq(weft_chan_init(&chan, NULL, 1, 1), -EINVAL);
	ck_assert(memcmp(&chan, &before, sizeof(chan)) == 0);
	ck_assert_int_eq(weft_chan_init(&chan, room, max, 4096), 0);
	ck_assert_int_eq(weft_chan_init(&chan, NULL, 0, 4096), 0);
	ck_assert_int_eq(weft_chan_init(&chan, room, 64, 1), 0);
}
END_TEST

START_TEST(initialisers_are_the_same_as_init)
{
	uint64_t room[7];
	struct weft_chan array = WEFT_CHAN_INIT(room);
	struct weft_chan direct = WEFT_CHAN_DIRECT(struct answer);
	struct weft_chan chan;

	ck_assert_int_eq(weft_chan_init(&chan, room, 7, sizeof(*room)), 0);
	ck_assert(memcmp(&chan, &array, sizeof(chan)) == 0);
	ck_assert_int_eq(weft_chan_init(&chan, NULL, 0, sizeof(struct answer)),
			 0);
	ck_assert(memcmp(&chan, &direct, sizeof(chan)) == 0);
}
END_TEST

/* ---- Closing ------------------------------------------------------------- */

static int64_t close_on_all(void *arg)
{
	struct waiting senders[QUEUE], receivers[QUEUE];
	uint32_t room[3], value, held;
	struct weft_chan full = WEFT_CHAN_INIT(room);
	struct weft_chan empty = WEFT_CHAN_DIRECT(uint32_t);

	(void)arg;
	for (held = 0; held < 3; held++)
		EXPECT(weft_chan_send(&full, &held) == 0);
	WEFT_SUPERVISE(all) {
		queue_up(all, wait_to_send, &full, senders, QUEUE, 100);
		queue_up(all, wait_to_recv, &empty, receivers, QUEUE, 200);
		weft_chan_close(&full);
		weft_chan_close(&empty);
		weft_chan_close(&full);
	}
	for (uint32_t i = 0; i < QUEUE; i++) {
		EXPECT(senders[i].result == -EPIPE);
		EXPECT(receivers[i].result == -EPIPE);
		EXPECT(receivers[i].value == 200 + i);
	}
	/* The values in the ring remain; values of waiting senders are not
	 * accepted. */
	EXPECT(weft_chan_count(&full) == 3);
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT(weft_chan_send(&full, &i) == -EPIPE);
		EXPECT(weft_chan_try_send(&full, &i) == -EPIPE);
		EXPECT(weft_chan_push(&full, &i, &value) == -EPIPE);
		EXPECT(weft_chan_recv(&full, &value) == 0 && value == i);
	}
	EXPECT(weft_chan_recv(&full, &value) == -EPIPE);
	EXPECT(weft_chan_send(&empty, &value) == -EPIPE);
	return 0;
}

START_TEST(close_wakes_all_and_leaves_what_is_in_it)
{
	(void)run_main(_i, close_on_all);
}
END_TEST

/* ---- Yielding ------------------------------------------------------------ */

static bool others_ran;

static int64_t run_at_last(void *arg)
{
	(void)arg;
	others_ran = true;
	return 0;
}

/* Sends and receives, none of which waits. */
static int64_t never_wait(void *arg)
{
	uint32_t room[1], value = 0;
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	int calls = 0;

	(void)arg;
	others_ran = false;
	WEFT_SUPERVISE(all) {
		EXPECT(weft_go(all, run_at_last, NULL, 0) == 0);
		while (!others_ran && calls < 1000) {
			EXPECT(weft_chan_send(&chan, &value) == 0);
			EXPECT(weft_chan_recv(&chan, &value) == 0);
			calls += 2;
		}
	}
	EXPECT(calls < 1000);
	return 0;
}

START_TEST(calls_that_never_wait_let_others_run)
{
	(void)run_main(_i, never_wait);
}
END_TEST

/* ---- Threads that are not workers ---------------------------------------- */

static void foreign_send_two(void *arg)
{
	for (uint32_t value = 0; value < 2; value++)
		EXPECT(weft_chan_try_send(arg, &value) == 0);
	weft_chan_close(arg);
}

/* The fake run checks that the workers were woken for these tasks, and did
 * not just find them. */
static int64_t be_served_by_a_thread(void *arg)
{
	struct weft_chan chan = WEFT_CHAN_DIRECT(uint32_t);
	struct waiting waiting[3];

	(void)arg;
	WEFT_SUPERVISE(all) {
		queue_up(all, wait_to_recv, &chan, waiting, 3, 100);
		fake_foreign(WEFT_MS(1), foreign_send_two, &chan);
	}
	for (uint32_t i = 0; i < 2; i++)
		EXPECT(waiting[i].result == 0 && waiting[i].value == i);
	EXPECT(waiting[2].result == -EPIPE && waiting[2].value == 102);
	return 0;
}

START_TEST(thread_wakes_the_tasks_that_wait)
{
	(void)run_main(_i, be_served_by_a_thread);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *chan_suite(void)
{
	Suite *suite = suite_create("sync/chan");
	TCase *tc = tcase_create("table");

	tcase_add_loop_test(tc, call_does_what_the_table_says, 0, CELLS);
	tcase_add_loop_test(tc, call_of_a_thread_does_what_the_table_says, 0,
			    CELLS);
	tcase_add_loop_test(tc, call_without_room_meets_who_waits, 0,
			    4 * DIRECT_CELLS);
	tcase_add_test(tc, init_refuses_what_cannot_be);
	tcase_add_test(tc, initialisers_are_the_same_as_init);
	suite_add_tcase(suite, tc);

	tc = tcase_create("waking");
	ADD(tc, close_wakes_all_and_leaves_what_is_in_it);
	ADD(tc, calls_that_never_wait_let_others_run);
	ADD(tc, thread_wakes_the_tasks_that_wait);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { chan_suite };

	return run_suites(make, 1);
}
