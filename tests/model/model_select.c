/* SPDX-License-Identifier: MIT */
/*
 * Model of select over channels (runtime/sync/select.c).  One of several calls
 * is done, with one peer.  No value is lost between them.  When the call
 * returns, none of its waiters is left in a channel.
 */
#include "tests/model/waits.h"

#include "runtime/sync/chan.c"

/* The model chooses which of two ready cases is taken. */
#define weft__random(worker) ((void)(worker), model_choose(2) << 1)
#define weft_now() ((uint64_t)model_choose(2) << 7)
#include "runtime/sync/select.c"
#undef weft__random
#undef weft_now

#include "tests/model/values.h"

enum { A, B, CHANS };

static struct weft_chan chans[CHANS];
static uint64_t rooms[CHANS];
/* Each thread's own: the result of its select. */
static int outcome[MODEL_THREADS];

static void setup_chans(unsigned capacity)
{
	waits_setup(3);
	values_setup();
	for (unsigned i = 0; i < CHANS; i++)
		(void)weft_chan_init(&chans[i], capacity ? &rooms[i] : NULL,
				     capacity, sizeof(rooms[i]));
	memset(rooms, 0, sizeof(rooms));
	memset(outcome, 0, sizeof(outcome));
	model_name(&chans[A], "channel a");
	model_name(&chans[B], "channel b");
	model_name(&weft__chan(&chans[A])->lock, "lock a");
	model_name(&weft__chan(&chans[B])->lock, "lock b");
	model_name(rooms, "rooms");
}

static void setup_0(void *arg)
{
	(void)arg;
	setup_chans(0);
}

static void setup_1(void *arg)
{
	(void)arg;
	setup_chans(1);
}

static void setup_0_foreign_0(void *arg)
{
	setup_0(arg);
	waits_foreign(0);
}

static void setup_0_foreign_1_2(void *arg)
{
	setup_0(arg);
	waits_foreign(1);
	waits_foreign(2);
}

static void check_chans(void *arg)
{
	(void)arg;
	tasks_check();
	for (uint64_t value = 1; value < VALUES; value++)
		value_check(value,
			    chan_holds(weft__chan(&chans[A]), value) +
				    chan_holds(weft__chan(&chans[B]), value));
}

/*
 * The calls.
 */

VALUE_CALL(send_a, weft_chan_send(&chans[A], value))
VALUE_CALL(send_b, weft_chan_send(&chans[B], value))
VALUE_CALL(recv_a, weft_chan_recv(&chans[A], value))
VALUE_CALL(recv_b, weft_chan_recv(&chans[B], value))

static void send_by(int (*call)(uint64_t *value), uint64_t value)
{
	int r;

	value_make(value);
	r = call(&value);
	call_over();
	model_assert(r == 0 || r == -EPIPE, "it is sent, or closed");
	was_sent[value] = r == 0;
}

static int recv_by(int (*call)(uint64_t *value))
{
	uint64_t value = 0;
	int r = call(&value);

	call_over();
	model_assert(r == 0 || r == -EPIPE, "it is received, or closed");
	if (r == 0)
		value_take(value);
	return r;
}

static __attribute__((noinline)) int select_call(struct weft_case *cases)
{
	return weft_select(cases, 2);
}

/* Selects one of these two; afterwards their memory is overwritten. */
static int select_of(struct weft_case (*cases)[2])
{
	int r = select_call(*cases);

	call_over();
	model_assert(r == 0 || r == 1 || r == -ECANCELED,
		     "one is done, or it is cancelled");
	for (unsigned i = 0; i < 2; i++)
		model_assert(!waiter_of(&(*cases)[i])->queued,
			     "nothing is left in a queue");
	model_data_write(cases);
	outcome[model_self()] = r;
	return r;
}

/* Receives from one of two.  Returns the index, plus 2 if it was closed, or
 * -errno. */
static int recv_either(void)
{
	uint64_t values[2] = { 0 };
	struct weft_case cases[2] = { WEFT_RECV(&chans[A], &values[0]),
				      WEFT_RECV(&chans[B], &values[1]) };
	int r = select_of(&cases);

	if (r < 0)
		return r;
	model_assert(!values[!r], "the other one was not done");
	if (cases[r].result < 0)
		return r + 2;
	value_take(values[r]);
	return r;
}

/* Sends it to one of two. */
static void send_either(uint64_t value)
{
	struct weft_case cases[2] = { WEFT_SEND(&chans[A], &value),
				      WEFT_SEND(&chans[B], &value) };
	int r;

	value_make(value);
	r = select_of(&cases);
	was_sent[value] = r >= 0 && cases[r].result == 0;
}

/* Sends it to one channel, or receives from another, or the same. */
static void send_or_recv(unsigned to, uint64_t value, unsigned from,
			 bool turned)
{
	uint64_t other = 0;
	struct weft_case send = WEFT_SEND(&chans[to], &value);
	struct weft_case recv = WEFT_RECV(&chans[from], &other);
	struct weft_case cases[2] = { send, recv };
	int r;

	if (turned) {
		cases[0] = recv;
		cases[1] = send;
	}
	value_make(value);
	r = select_of(&cases);
	if (r < 0 || cases[r].result < 0)
		return;
	if (cases[r].kind == WEFT_CASE_SEND)
		was_sent[value] = true;
	else
		value_take(other);
}

static void close_both(void)
{
	weft_chan_close(&chans[A]);
	weft_chan_close(&chans[B]);
}

THREAD(sends_1_to_a, send_by(send_a, 1);)
THREAD(sends_2_to_b, send_by(send_b, 2);)
THREAD(sends_to_both, send_by(send_a, 1); send_by(send_b, 2);)
THREAD(receives_of_a, (void)recv_by(recv_a);)
THREAD(receives_of_b, (void)recv_by(recv_b);)
THREAD(selects_recv, (void)recv_either();)
THREAD(selects_recv_twice, (void)recv_either(); (void)recv_either();)
THREAD(selects_recv_and_closes, (void)recv_either(); close_both();)
THREAD(selects_send_twice, send_either(1); send_either(2);)
THREAD(closes_a, weft_chan_close(&chans[A]);)
THREAD(closes_b, weft_chan_close(&chans[B]);)

/*
 * One at each channel.
 */

MODEL(senders_meet, setup_0, check_chans, WAITS_NEWEST(2), selects_recv_twice,
      sends_1_to_a, sends_2_to_b)
MODEL(senders_meet_with_room, setup_1, check_chans, WAITS_NEWEST(2),
      selects_recv_twice, sends_1_to_a, sends_2_to_b)
MODEL(receivers_meet, setup_0, check_chans, WAITS_NEWEST(2), selects_send_twice,
      receives_of_a, receives_of_b)
MODEL(two_select_of_one, setup_0, check_chans, WAITS_NEWEST(2), selects_recv,
      selects_recv, sends_to_both)
MODEL(thread_selects, setup_0_foreign_0, check_chans, WAITS_NEWEST(2),
      selects_recv_twice, sends_1_to_a, sends_2_to_b)
MODEL(threads_meet_select, setup_0_foreign_1_2, check_chans, WAITS_NEWEST(2),
      selects_recv_twice, sends_1_to_a, sends_2_to_b)

/*
 * Select meets select: the value goes from one to the other.
 */

static void check_met(void *arg)
{
	check_chans(arg);
	model_assert(received[1] + received[2] == 1, "one of the two met");
}

THREAD(sends_a_or_receives_b, send_or_recv(A, 1, B, false);)
THREAD(sends_b_or_receives_a, send_or_recv(B, 2, A, false);)
THREAD(receives_a_or_sends_b, send_or_recv(B, 2, A, true);)
THREAD(sends_or_receives_1, send_or_recv(A, 1, A, false);)
THREAD(sends_or_receives_2, send_or_recv(A, 2, A, true);)

MODEL(select_meets_select, setup_0, check_met, WAITS(3), sends_a_or_receives_b,
      receives_a_or_sends_b)
MODEL(select_meets_select_turned, setup_0, check_met, WAITS(3),
      sends_a_or_receives_b, sends_b_or_receives_a)
MODEL(select_meets_select_on_one, setup_0, check_met, WAITS(3),
      sends_or_receives_1, sends_or_receives_2)
MODEL(thread_selects_too, setup_0_foreign_0, check_met, WAITS(3),
      sends_a_or_receives_b, receives_a_or_sends_b)

/* The third select meets no other, or takes the place of one. */
THREAD(selects_until_closed, send_or_recv(A, 1, B, false); close_both();)
THREAD(other_until_closed, send_or_recv(B, 2, A, true); close_both();)
THREAD(third_until_closed, send_or_recv(B, 3, A, false); close_both();)

MODEL(three_select, setup_0, check_chans, WAITS_NEWEST(2), selects_until_closed,
      other_until_closed, third_until_closed)

/*
 * Cancelling and closing.
 */

THREAD(cancels_and_sends_to_b, cancel(0); send_by(send_b, 2);)

/* One is closed, and a value comes from the other. */
static void selects_recv_until_b(void *arg)
{
	uint64_t value = 0;
	struct weft_case cases[2] = { { .kind = WEFT_CASE_NONE },
				      WEFT_RECV(&chans[B], &value) };

	(void)arg;
	if (recv_either() == B)
		return;
	model_assert(select_of(&cases) == 1 && cases[1].result == 0,
		     "a value comes");
	value_take(value);
}

static void check_2_came(void *arg)
{
	check_chans(arg);
	model_assert(received[2] == 1, "the value came");
}

static void selects_recv_of_closed(void *arg)
{
	(void)arg;
	model_assert(recv_either() >= 2, "one is closed");
}

MODEL(select_meets_cancel, setup_0, check_chans, WAITS_NEWEST(2),
      selects_recv_and_closes, sends_1_to_a, cancel_0)
MODEL(select_meets_cancel_and_both, setup_0, check_chans, WAITS_NEWEST(2),
      selects_recv_and_closes, sends_1_to_a, cancels_and_sends_to_b)
MODEL(select_meets_close, setup_0, check_2_came, WAITS_NEWEST(2),
      selects_recv_until_b, closes_a, sends_2_to_b)
MODEL(select_meets_closes, setup_0, check_chans, WAITS_NEWEST(2),
      selects_recv_of_closed, closes_a, closes_b)

/*
 * Without waiting.
 */

static void tries_both_and_closes(void *arg)
{
	uint64_t values[2] = { 0 };
	struct weft_case cases[2] = { WEFT_RECV(&chans[A], &values[0]),
				      WEFT_RECV(&chans[B], &values[1]) };
	int r = weft_try_select(cases, 2);

	(void)arg;
	model_assert(r == 0 || r == 1 || r == -EAGAIN, "one is done, or none");
	if (r >= 0)
		value_take(values[r]);
	close_both();
}

MODEL(try_select_meets_senders, setup_0, check_chans, WAITS_NEWEST(2),
      tries_both_and_closes, sends_1_to_a, sends_2_to_b)

/*
 * Cases that are not channels are not modelled.
 */

int weft__cases_look(struct weft__select *select, struct weft__worker *worker,
		     bool descriptors)
{
	(void)select, (void)worker, (void)descriptors;
	return -EAGAIN;
}

int weft__cases_begin(struct weft__select *select, struct weft__worker *worker)
{
	(void)select, (void)worker;
	model_assert(false, "all cases are channels");
	return 0;
}

int weft__cases_watch_thread(struct weft__select *select)
{
	(void)select;
	model_assert(false, "all cases are channels");
	return -EAGAIN;
}

void weft__cases_end(struct weft__select *select)
{
	(void)select;
}

int main(void)
{
	const TTest *const tests[] = {
		senders_meet,
		senders_meet_with_room,
		receivers_meet,
		two_select_of_one,
		thread_selects,
		threads_meet_select,
		select_meets_select,
		select_meets_select_turned,
		select_meets_select_on_one,
		thread_selects_too,
		three_select,
		select_meets_cancel,
		select_meets_cancel_and_both,
		select_meets_close,
		select_meets_closes,
		try_select_meets_senders,
		NULL,
	};

	return kit_main("select", tests);
}
