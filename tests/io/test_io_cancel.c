/* SPDX-License-Identifier: MIT */
/*
 * Suite io/cancel: each call of tests/support/io_calls.h in each state of
 * tests/support/io_states.h.
 *
 * The call is cancelled, out of time, closed, shut down or shielded: before it
 * waits, while it waits, at the moment at which its wait ends, and after that.
 * It must have exactly one outcome; no byte, connection or descriptor may be
 * lost; and the next call must find the descriptor in order.  There is one test
 * case for each call, and one test for each state: CK_RUN_CASE=accept.
 */
#include "tests/support/io_not_here.h"
#include "tests/support/io_states.h"
#include "tests/support/needs.h"

/* ---- One cell ------------------------------------------------------------ */

static struct {
	const struct call *call;
	const struct state *state;
	struct place place;
	struct weft_scope *group;
	struct weft_task victim;
	struct weft_event go_on;
	weft_nsec begun_ns;
	weft__atomic(bool) called, made, over, waits;
	ssize_t result, again;
	int after;
	weft_nsec made_ns;
	bool closed;
	weft_nsec soon_ns;
	bool missed; /* the clock ended the call before the interruption */
} cell;

#define CELL_EXPECT(holds, ...)                                            \
	do {                                                               \
		if (!(holds))                                              \
			ck_abort_msg("%s, %s: %s: %zd, %zd, %d",           \
				     cell.call->name, cell.state->name,    \
				     #holds, cell.result, cell.again,      \
				     cell.after);                          \
	} while (0)

/* ---- The task that makes the call ---------------------------------------- */

/* A close ends the waiting calls before it returns. */
static bool is_held(void)
{
	return cell.state->guard == HELD || does(cell.state, CLOSE);
}

static void make(void)
{
	weft__store(&cell.called, true, release);
	cell.result = cell.call->make(&cell.place);
	cell.made_ns = weft_now();
	weft__store(&cell.made, true, release);
	if (is_held())
		WEFT_SHIELD
			EXPECT(weft_event_wait(&cell.go_on) == 0);
	if (cell.result < 0 || cell.state->guard == HELD)
		cell.again = cell.call->make(&cell.place);
	else
		cell.again = weft_yield();
}

static void make_within(void)
{
	switch (cell.state->guard) {
	case WITHIN:
		WEFT_WITHIN(DEADLINE_NS)
			make();
		break;
	case ENCLOSED:
		WEFT_WITHIN(DEADLINE_NS)
			WEFT_WITHIN(WEFT_SEC(3600))
				make();
		break;
	case NO_TIME:
		WEFT_WITHIN(0)
			make();
		break;
	case TOO_LATE:
		WEFT_WITHIN(0) {
			EXPECT(weft_sleep(WEFT_SEC(3600)) == -ETIMEDOUT);
			make();
		}
		break;
	default:
		WEFT_WITHIN(0) {
			EXPECT(weft_sleep(WEFT_SEC(3600)) == -ETIMEDOUT);
			WEFT_WITHIN(WEFT_SEC(3600))
				make();
		}
		break;
	}
}

static int64_t be_victim(void *arg)
{
	(void)arg;
	if (cell.state->before == CANCEL ||
	    cell.state->guard == INHERITED_LATE)
		EXPECT(weft_sleep(WEFT_SEC(3600)) == -ECANCELED);
	switch (cell.state->guard) {
	case PLAIN:
	case HELD:
	case INHERITED:
	case INHERITED_LATE:
		make();
		break;
	case SHIELD:
		WEFT_SHIELD
			make();
		break;
	case SHIELD_WITHIN:
		WEFT_WITHIN(DEADLINE_NS) {
			WEFT_SHIELD
				make();
			cell.missed = !weft_deadline_passed();
			cell.after = weft_yield();
		}
		break;
	default:
		make_within();
	}
	if (cell.state->guard != SHIELD_WITHIN)
		cell.after = weft_yield();
	weft__store(&cell.over, true, release);
	return 0;
}

static void start_victim(void)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	weft_nsec length_ns = WEFT_SEC(3600);

	if (cell.state->guard == INHERITED)
		length_ns = DEADLINE_NS;
	if (cell.state->guard == INHERITED_LATE)
		length_ns = 0;
	opts.ret_task = &cell.victim;
	cell.begun_ns = weft_now();
	WEFT_WITHIN(length_ns)
		EXPECT(weft_go_opts(cell.group, be_victim, NULL, 0, &opts) ==
		       0);
}

/* ---- The interruption ---------------------------------------------------- */

static bool is_parked(void)
{
	struct weft__task *task =
		weft__task_at(weft_runtime_self(), cell.victim.id);

	/* pairs: [task.wake] */
	return weft__load(&task->state, acquire) & WEFT__PARKED;
}

/* The request may still be in the ring, or be in the kernel.  A call that waits
 * for time may have ended its wait. */
static void await_waiting(void)
{
	wait_until(weft__load(&cell.called, acquire) &&
		   (is_parked() || weft__load(&cell.made, acquire)));
	if (cell.call->is & BEGUN)
		wait_until(weft__load(&cell.place.entered, acquire) &&
			   is_parked());
	if (cell.begun_ns & 1)
		EXPECT(weft_sleep(WEFT_MS(1)) == 0);
}

/* Waits until the call waits for the rest, or its time is up. */
static void let_some(void)
{
	struct place *place = &cell.place;

	if (cell.call->let_go == write_some) {
		peer_write(place, 4);
		wait_until(weft__load(&cell.made, acquire) ||
			   (!bytes_at(place->fd) && is_parked()));
	} else {
		drain_some(place, place->peer, (size_t)bytes_at(place->peer));
		wait_until(weft__load(&cell.made, acquire) ||
			   (bytes_at(place->peer) && is_parked()));
	}
}

static int64_t fail_at_once(void *arg)
{
	(void)arg;
	return -EIO;
}

static void expect_waiting(void)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
	CELL_EXPECT(!weft__load(&cell.made, acquire) ||
		    (cell.place.soon_ns && weft_now() >= cell.place.until_ns));
}

static void let_go(void)
{
	if (cell.call->let_go)
		cell.call->let_go(&cell.place);
}

static void close_it(void)
{
	CELL_EXPECT(weft_close(cell.place.fd) == 0);
	cell.closed = true;
}

static void cancel(void)
{
	int r = weft_cancel(cell.victim);

	if (cell.state->guard == SHIELD && cell.call->is & CLOCK)
		cell.missed |= weft__load(&cell.made, acquire);
	/* -ESRCH: the task has ended. */
	CELL_EXPECT(r == 0 || (r == -ESRCH &&
			       (cell.state->either || cell.missed)));
}

static void act(enum act act)
{
	switch (act) {
	case NOTHING:
		break;
	case CANCEL:
		cancel();
		break;
	case CANCEL_SCOPE:
		weft_scope_cancel(cell.group);
		break;
	case FAIL:
		EXPECT(weft_go(cell.group, fail_at_once, NULL, 0) == 0);
		break;
	case CLOSE:
		close_it();
		break;
	case SHUT:
		EXPECT(weft_shutdown(cell.place.fd, SHUT_RDWR) == 0);
		break;
	case LET_GO:
		let_go();
		break;
	case LET_SOME:
		let_some();
		break;
	case PASS:
		EXPECT(weft_sleep_until(cell.begun_ns + DEADLINE_NS +
					cell.begun_ns % WEFT_US(100)) == 0);
		break;
	case STILL:
		expect_waiting();
		break;
	case MADE:
		wait_until(weft__load(&cell.made, acquire));
		break;
	}
}

/* ---- The outcome --------------------------------------------------------- */

/* The interruption meets an operation that is always waited for in full. */
static bool insists(void)
{
	enum guard guard = cell.state->guard;
	bool comes = cell.state->acts[0] || guard == WITHIN ||
		     guard == ENCLOSED || guard == INHERITED ||
		     cell.state == &states[STOPPED];

	return cell.call->is & BEGUN && comes && cell.state->result < 0 &&
	       !cell.state->either;
}

static int expected(int result)
{
	if (result == AS_SHUT)
		return cell.call->when_shut;
	if (cell.call->is & EXEMPT && cell.state->before != CLOSE)
		return 0;
	if (cell.call->is & CUT && does(cell.state, LET_SOME))
		return 0;
	return insists() ? 0 : result;
}

/* Two events came together: accepts the outcome that the table does not
 * name. */
static bool may_be(ssize_t result)
{
	return cell.state->either &&
	       (result >= 0 ||
		(does(cell.state, SHUT) && result == cell.call->when_shut));
}

static bool is_late(void)
{
	enum guard guard = cell.state->guard;

	return cell.result == -ETIMEDOUT &&
	       (guard == WITHIN || guard == ENCLOSED || guard == INHERITED);
}

/* A select waits for a descriptor with a task of its own, which may not have
 * begun when the descriptor is closed. */
static bool is_closed_early(void)
{
	return cell.result == -EBADF && cell.call->make == make_select_ready &&
	       does(cell.state, CLOSE);
}

static void expect_results(void)
{
	const struct state *state = cell.state;
	int result = expected(state->result), again = state->again;

	if (state->guard == HELD || cell.result < 0)
		again = expected(again);
	/* A call that succeeds is followed by a yield, unless the task is
	 * held. */
	else if (again == -EBADF || again == AS_SHUT)
		again = 0;
	if (!may_be(cell.result) && !is_closed_early()) {
		CELL_EXPECT(cell.result == result ||
			    (cell.result >= 0 && result == 0));
		/* No deadline of a block applies to calls that are exempt from
		 * it. */
		if (!insists() || state->guard == PLAIN)
			CELL_EXPECT(again == (cell.again < 0 ? cell.again :
							       0));
		if (cell.result < 0)
			CELL_EXPECT(cell.after == state->after);
	}
	if (is_late())
		CELL_EXPECT(cell.made_ns >= cell.begun_ns + DEADLINE_NS);
}

/* The received bytes are unchanged: nothing writes to the buffer later. */
static void expect_untouched(void)
{
	if (cell.result < 0 && !(cell.call->is & LOOPS))
		fenced_check(&cell.place.in[0], 0);
}

/* The descriptor still works, and all bytes that went in have come out. */
static void settle(void)
{
	struct place *place = &cell.place;
	bool shut = does(cell.state, SHUT);

	place->into = &place->in[1];
	if (cell.closed)
		place->fd = -1;
	if (!cell.closed && !shut && cell.state != &states[STOPPED]) {
		if (place->bytes == LONG_BYTES)
			place->bytes = SHORT_BYTES;
		/* The connect would be tried again too late. */
		if (cell.call->is & SLOW && place->fd >= 0) {
			EXPECT(weft_close(place->fd) == 0);
			place->fd = -1;
		}
		let_go();
		WEFT_WITHIN(WEFT_SEC(20))
			CELL_EXPECT(cell.call->make(place) >= 0);
	}
	/* The shutdown turned away the connections that came before. */
	if (cell.call->settle &&
	    !(shut && cell.call->settle == listener_settle))
		cell.call->settle(place);
	expect_untouched();
	place_close(place);
}

static void await_end(void)
{
	int r = 0;

	WEFT_WITHIN(WEFT_SEC(20))
		r = weft_join(cell.victim, NULL);
	CELL_EXPECT(r == 0 && weft__load(&cell.over, acquire));
}

/* ---- Runs ---------------------------------------------------------------- */

static void set_up(void)
{
	const struct state *state = cell.state;

	place_init(&cell.place);
	if (state->either || !state->result)
		cell.place.soon_ns = cell.soon_ns;
	if (does(state, LET_SOME) && cell.call->let_go == read_it_all)
		cell.place.bytes = LONG_BYTES;
	if (cell.call->open)
		cell.call->open(&cell.place);
	if (state->ready)
		let_go();
	if (state->before == CLOSE || state->before == SHUT)
		act(state->before);
}

static void play_acts(void)
{
	if (cell.state->before == CANCEL)
		act(CANCEL);
	if (cell.state->acts[0] && !cell.state->ready &&
	    cell.state->guard != WITHIN)
		await_waiting();
	for (int i = 0; i < ACTS; i++)
		act(cell.state->acts[i]);
	if (is_held())
		weft_event_set(&cell.go_on);
	if (insists()) {
		expect_waiting();
		let_go();
	}
}

/* Some bytes were to come before the deadline, and have come after it. */
static bool came_too_late(void)
{
	return cell.call->is & CUT && does(cell.state, LET_SOME) && is_late() &&
	       bytes_at(cell.place.fd) == 4;
}

static int64_t play(void *arg)
{
	int64_t result = 0;

	(void)arg;
	set_up();
	WEFT_SCOPE(group, &result) {
		cell.group = group;
		start_victim();
		play_acts();
		await_end();
	}
	EXPECT(result == (does(cell.state, FAIL) ? -EIO : 0));
	cell.missed |= came_too_late();
	if (!cell.missed)
		expect_results();
	settle();
	return 0;
}

/* The thread that started the runtime stops it. */
static int64_t play_until_stopped(void *arg)
{
	(void)arg;
	set_up();
	WEFT_SUPERVISE(group) {
		cell.group = group;
		start_victim();
		await_waiting();
		weft__store(&cell.waits, true, release);
		EXPECT(weft_sleep(WEFT_SEC(3600)) == -ECANCELED);
		WEFT_SHIELD {
			if (insists()) {
				expect_waiting();
				let_go();
			}
			await_end();
		}
	}
	expect_results();
	WEFT_SHIELD
		settle();
	return 0;
}

static void run_until_stopped(const struct weft_opts *opts)
{
	struct weft_runtime *runtime;
	int before = fds_open();

	EXPECT(weft_start(opts, &runtime) == 0);
	EXPECT(weft_submit(runtime, play_until_stopped, NULL, 0, NULL) == 0);
	while (!weft__load(&cell.waits, acquire))
		thread_pause_ns(100000);
	EXPECT(weft_stop(runtime) == 0);
	EXPECT(weft__load(&cell.over, acquire) && fds_open() == before);
}

/* Returns false if the machine was too slow for a wait that ends so soon. */
static bool run_cell(int i, unsigned workers, weft_nsec soon_ns)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	memset(&cell, 0, sizeof(cell));
	cell.call = &calls[i / STATES];
	cell.state = &states[i % STATES];
	cell.soon_ns = soon_ns;
	opts.workers = workers;
	opts.blocking_threads_max = 1;
	if (cell.state == &states[STOPPED])
		run_until_stopped(&opts);
	else
		EXPECT(io_run_opts(play, NULL, &opts) == 0);
	return !cell.missed;
}

/* With one worker, then with two; where a tool makes each start of a program
 * slow, with two alone.  A call with two possible outcomes is tried more
 * often. */
#if defined(WEFT__ASAN) || defined(WEFT__TSAN) || defined(WEFT_VALGRIND)
enum { ROUNDS = 1, EITHER_ROUNDS = 2 };
#else
enum { ROUNDS = 2, EITHER_ROUNDS = 4 };
#endif

START_TEST(cell_test)
{
	const struct state *state = &states[_i % STATES];
	int rounds = state->either ? EITHER_ROUNDS : ROUNDS;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, counted_signal());
	EXPECT(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
	for (int n = 0; n < rounds; n++) {
		unsigned workers = rounds == 1 ? 2 : 1 + (unsigned)n % 2;
		weft_nsec soon_ns = WEFT_MS(3);

		while (!run_cell(_i, workers, soon_ns))
			soon_ns *= 4;
	}
}
END_TEST

/* ---- No call is missing -------------------------------------------------- */

static bool is_named(const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < CALLS; i++)
		if (strncmp(calls[i].name, name, length) == 0 &&
		    strchr(", ", calls[i].name[length]))
			return true;
	for (size_t i = 0; i < sizeof(not_here) / sizeof(not_here[0]); i++)
		if (strcmp(not_here[i], name) == 0)
			return true;
	return false;
}

START_TEST(every_call_that_is_exported_has_its_row)
{
	FILE *map = fopen(WEFT_MAP, "r");
	char line[256], name[128];
	int count = 0;

	ck_assert_ptr_nonnull(map);
	while (fgets(line, sizeof(line), map))
		if (sscanf(line, " weft_%127[a-z0-9_];", name) == 1 &&
		    name[0] != '_') {
			ck_assert_msg(is_named(name), "no row: weft_%s", name);
			count++;
		}
	fclose(map);
	ck_assert_int_gt(count, 100);
}
END_TEST

static void add_cells(Suite *suite, int i)
{
	static TTest tests[CALLS][STATES];
	TCase *tc = tcase_create(calls[i].name);

	for (int k = 0; k < STATES; k++) {
		if (!goes_with(&states[k], &calls[i]))
			continue;
		tests[i][k] = *cell_test;
		tests[i][k].name = states[k].name;
		tcase_set_timeout(tc, 30);
		_tcase_add_test(tc, &tests[i][k], 0, 0, i * STATES + k,
				i * STATES + k + 1);
	}
	suite_add_tcase(suite, tc);
}

int main(void)
{
	Suite *suite = suite_create("io/cancel");
	TCase *tc = tcase_create("table");

	tcase_add_test(tc, every_call_that_is_exported_has_its_row);
	suite_add_tcase(suite, tc);
	for (int i = 0; i < CALLS; i++)
		if (calls[i].open != sending_at_once_open ||
		    test_needs(test_can(sending_at_once_can_wait),
			       calls[i].name, NEEDS_FULL_SOCKETS))
			add_cells(suite, i);
	return io_tests_run(suite);
}
