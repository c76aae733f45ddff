/* SPDX-License-Identifier: MIT */
/*
 * Model of channels (runtime/sync/chan.c).  A value that was sent is received
 * once, or the sender learns that it was not.  The receiver sees what the
 * sender wrote before.  No task is left asleep.  The runtime of a task that
 * received from a thread may end immediately after.
 */
#define TASKS_DRAIN
#define TASKS_PUSHED memory_look
static void memory_look(void);
#include "tests/model/waits.h"

#include "runtime/sync/chan.c"

#include "tests/model/ends.h"
#include "tests/model/values.h"

static struct weft_chan chan;
static uint64_t room[1];

static void setup_chan(unsigned capacity)
{
	waits_setup(3);
	(void)weft_chan_init(&chan, capacity ? room : NULL, capacity,
			     sizeof(*room));
	memset(room, 0, sizeof(room));
	values_setup();
	model_name(&weft__chan(&chan)->lock, "lock");
	model_name(&chan, "channel");
	model_name(room, "room");
}

static void setup_0(void *arg)
{
	(void)arg;
	setup_chan(0);
}

static void setup_1(void *arg)
{
	(void)arg;
	setup_chan(1);
}

static void setup_0_foreign_0(void *arg)
{
	setup_0(arg);
	waits_foreign(0);
}

static void setup_0_foreign_1(void *arg)
{
	setup_0(arg);
	waits_foreign(1);
}

static void setup_1_foreign_0(void *arg)
{
	setup_1(arg);
	waits_foreign(0);
}

static void setup_0_foreign(void *arg)
{
	setup_0_foreign_0(arg);
	waits_foreign(1);
}

static void setup_1_elsewhere(void *arg)
{
	setup_1(arg);
	waits_elsewhere(1);
}

static void check_chan(void *arg)
{
	(void)arg;
	tasks_check();
	for (uint64_t value = 1; value < VALUES; value++)
		value_check(value, chan_holds(weft__chan(&chan), value));
}

VALUE_CALL(chan_send, weft_chan_send(&chan, value))
VALUE_CALL(chan_recv, weft_chan_recv(&chan, value))
VALUE_CALL(chan_try_send, weft_chan_try_send(&chan, value))
VALUE_CALL(chan_try_recv, weft_chan_try_recv(&chan, value))
VALUE_CALL(chan_push, weft_chan_push(&chan, &value[0], &value[1]))

/* Whether it was sent. */
static bool send(uint64_t value)
{
	int r;

	value_make(value);
	r = chan_send(&value);
	call_over();
	model_assert(r == 0 || r == -EPIPE || r == -ECANCELED,
		     "it is sent, or the channel is closed, or the wait is "
		     "cancelled");
	was_sent[value] = r == 0;
	return r == 0;
}

static int recv_once(void)
{
	uint64_t value = 0;
	int r = chan_recv(&value);

	call_over();
	model_assert(r == 0 || r == -EPIPE || r == -ECANCELED,
		     "it is received, or the channel is closed, or the wait "
		     "is cancelled");
	if (r == 0)
		value_take(value);
	return r;
}

THREAD(sends_1, (void)send(1);)
THREAD(sends_2, (void)send(2);)
THREAD(sends_1_and_2, if (send(1))(void) send(2);)
THREAD(sends_2_and_closes, (void)send(2); weft_chan_close(&chan);)
THREAD(receives_1, (void)recv_once();)
THREAD(receives_2, if (recv_once() == 0)(void) recv_once();)
THREAD(receives_all, while (recv_once() == 0);)
THREAD(closes, weft_chan_close(&chan);)
THREAD(cancels_and_closes, cancel(0); weft_chan_close(&chan);)
THREAD(cancels_and_sends_2, cancel(0); (void)send(2);)
THREAD(cancels_and_receives, cancel(0); (void)recv_once();)

static void receives_then_closes(void *arg)
{
	(void)arg;
	(void)recv_once();
	weft_chan_close(&chan);
}

MODEL(send_meets_recv, setup_0, check_chan, WAITS(3), sends_1_and_2, receives_2)
MODEL(send_meets_recv_with_room, setup_1, check_chan, WAITS(3), sends_1_and_2,
      receives_2)
MODEL(send_waits_for_room, setup_1, check_chan, WAITS(3), sends_1_and_2,
      receives_1)
MODEL(two_send, setup_0, check_chan, WAITS(2), sends_1, receives_2, sends_2)
MODEL(two_send_with_room, setup_1, check_chan, WAITS(2), sends_1, receives_all,
      sends_2_and_closes)
MODEL(two_receive, setup_0, check_chan, WAITS(2), sends_1_and_2, receives_1,
      receives_1)
MODEL(two_receive_with_room, setup_1, check_chan, WAITS(2), sends_1_and_2,
      receives_1, receives_1)

/* A cancelled sender, or a cancelled receiver. */
MODEL(send_meets_cancel, setup_0, check_chan, WAITS(2), sends_1, receives_all,
      cancels_and_closes)
MODEL(send_meets_cancel_with_room, setup_1, check_chan, WAITS(2), sends_1_and_2,
      receives_all, cancels_and_closes)
MODEL(cancelled_sender_leaves_its_turn, setup_0, check_chan, WAITS(2), sends_1,
      receives_then_closes, cancels_and_sends_2)
MODEL(recv_meets_cancel, setup_0, check_chan, WAITS(2), receives_then_closes,
      sends_1, cancels_and_receives)
MODEL(recv_meets_cancel_with_room, setup_1, check_chan, WAITS(2), receives_1,
      sends_1_and_2, cancels_and_closes)

/* Closing. */
MODEL(close_meets_both, setup_0, check_chan, WAITS(2), sends_1, receives_all,
      closes)
MODEL(close_meets_both_with_room, setup_1, check_chan, WAITS(2), sends_1_and_2,
      receives_all, closes)
MODEL(close_meets_senders, setup_1, check_chan, WAITS(2), sends_1, sends_2,
      closes)
MODEL(close_meets_receivers, setup_1, check_chan, WAITS(2), receives_all,
      receives_all, sends_2_and_closes)

/* Threads from outside, and another runtime. */
MODEL(thread_sends, setup_0_foreign_0, check_chan, WAITS(3), sends_1_and_2,
      receives_2)
MODEL(thread_sends_with_room, setup_1_foreign_0, check_chan, WAITS(3),
      sends_1_and_2, receives_2)
MODEL(thread_receives, setup_0_foreign_1, check_chan, WAITS(3), sends_1_and_2,
      receives_2)
MODEL(threads_alone, setup_0_foreign, check_chan, WAITS(3), sends_1_and_2,
      receives_2)
MODEL(threads_meet_close, setup_0_foreign, check_chan, WAITS(2), sends_1,
      receives_all, closes)
MODEL(runtimes_meet, setup_1_elsewhere, check_chan, WAITS(3), sends_1_and_2,
      receives_2)

/*
 * Calls that do not wait.
 */

static void push(uint64_t value)
{
	uint64_t words[2] = { value, 0 };
	int r;

	value_make(value);
	r = chan_push(words);
	model_assert(r == 0 || r == 1, "there is always room");
	was_sent[value] = true;
	if (r == 1)
		was_dropped[words[1]] = true;
}

static void try_send(uint64_t value)
{
	int r;

	value_make(value);
	r = chan_try_send(&value);
	model_assert(r == 0 || r == -EAGAIN, "it has room, or none");
	was_sent[value] = r == 0;
}

static void try_recv(void)
{
	uint64_t value = 0;
	int r = chan_try_recv(&value);

	model_assert(r == 0 || r == -EAGAIN, "it has a value, or none");
	if (r == 0)
		value_take(value);
}

THREAD(pushes, push(2); push(3); weft_chan_close(&chan);)
THREAD(tries, try_send(2); try_recv(); weft_chan_close(&chan);)

MODEL(push_meets_send_and_recv, setup_1, check_chan, WAITS(2), sends_1,
      receives_1, pushes)
MODEL(tries_meet_send_and_recv, setup_0, check_chan, WAITS(2), sends_1,
      receives_all, tries)
MODEL(tries_meet_them_with_room, setup_1, check_chan, WAITS(2), sends_1,
      receives_all, tries)

/*
 * The end of the runtime of a task that met a thread.
 */

/* The word that a thread that pushes a task still looks at. */
static void memory_look(void)
{
	model_data_read(&runtime.inject);
}

/* The thread is worker 0, and main. */
static void end_runtime(void)
{
	end_with(0);
	refs_wait(&runtime);
	model_free(records, sizeof(records));
	model_free(&runtime, sizeof(runtime));
}

THREAD(receives_and_ends, (void)recv_once(); end_runtime();)
THREAD(sends_and_ends, (void)send(1); end_runtime();)

static void check_end(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(received[1] == 1, "what was sent is received once");
}

MODEL(thread_sends_at_the_end, setup_0_foreign_1, check_end, WAITS(3),
      receives_and_ends, sends_1)
MODEL(thread_receives_at_the_end, setup_0_foreign_1, check_end, WAITS(3),
      sends_and_ends, receives_1)

int main(void)
{
	const TTest *const tests[] = {
		send_meets_recv,
		send_meets_recv_with_room,
		send_waits_for_room,
		two_send,
		two_send_with_room,
		two_receive,
		two_receive_with_room,
		send_meets_cancel,
		send_meets_cancel_with_room,
		cancelled_sender_leaves_its_turn,
		recv_meets_cancel,
		recv_meets_cancel_with_room,
		close_meets_both,
		close_meets_both_with_room,
		close_meets_senders,
		close_meets_receivers,
		thread_sends,
		thread_sends_with_room,
		thread_receives,
		threads_alone,
		threads_meet_close,
		runtimes_meet,
		push_meets_send_and_recv,
		tries_meet_send_and_recv,
		tries_meet_them_with_room,
		thread_sends_at_the_end,
		thread_receives_at_the_end,
		NULL,
	};

	return kit_main("chan", tests);
}

bool weft__worker_step(struct weft__worker *worker)
{
	(void)worker;
	return false;
}
