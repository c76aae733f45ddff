/* SPDX-License-Identifier: MIT */
/*
 * Model of bytes that are put into streams (io/stream/stream_put.c,
 * io/request/send_buffer.[ch], and the rest of io/stream/stream.[ch],
 * io/stream/stream_complete.c, io/stream/stream_send.c).  The worker that reaps
 * reports to the stream the bytes that were sent, in full or in part, while the
 * task that reads puts, peeks, flushes, writes, is woken for other reasons, and
 * closes.
 *
 *   - All bytes that were put are sent, in order, and once (STR5); unless the
 *     task learns why not.
 *   - No task sleeps for ever while there is something that could be sent.
 *   - The stream is closed when its requests have ended, and its memory is not
 *     touched after that (STR2).
 *   - Each buffer is the stream's or in a worker's store, and freed once.
 */
#include "tests/model/streams.h"
#include "tests/model/alone.h"

enum { FULL = WEFT__SEND_BUFFER_BYTES };

static void check_put(void *arg)
{
	check(arg);
	weft__send_buffers_close(&shards[0].outs);
	weft__send_buffers_close(&shards[1].outs);
	weft__send_buffers_close(&reapers.outs);
	for (unsigned i = 0; i < OUTS; i++)
		model_assert(!out_is_used[i], "no buffer is lost");
}

static void check_put_and_read(void *arg)
{
	check_put(arg);
	model_assert(read_so_far == to_send, "all that was sent is read");
}

/*
 * The steps of the threads.
 */

static bool is_known(int r)
{
	return r == 0 || r == -ECANCELED || (r == -ENOMEM && failed);
}

static void bytes_next(uint8_t *bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		bytes[i] = (uint8_t)(put_so_far + 1 + i);
}

static int put(unsigned n)
{
	uint8_t bytes[FULL + 1];
	int r;

	bytes_next(bytes, n);
	r = weft_stream_put(&stream, bytes, n);
	call_over();
	model_assert(is_known(r), "it is put, or the task is told why not");
	if (r == 0)
		put_so_far = (uint8_t)(put_so_far + n);
	return r;
}

static int flush(void)
{
	int r = weft_stream_flush(&stream);

	model_assert(is_known(r), "it is sent, or the task is told why not");
	model_assert(r != 0 || got == put_so_far,
		     "who has flushed knows that it is sent");
	return r;
}

/* Called by the task that put. */
static int write_behind(unsigned n)
{
	uint8_t bytes[FULL + 1];
	size_t done = 0;
	int r;

	bytes_next(bytes, n);
	r = weft_stream_write_all(&stream, bytes, n, &done);
	call_over();
	model_assert(is_known(r), "it is sent, or the task is told why not");
	model_assert((r == 0) == (done == n), "what was sent is known");
	put_so_far = (uint8_t)(put_so_far + done);
	model_assert(r != 0 || got == put_so_far,
		     "what was put is sent before that");
	return r;
}

/* Called by another task. */
static void write_beside(void)
{
	static const char bytes[3];
	size_t done = 0;
	int r = weft_stream_write_all(&stream, bytes, sizeof(bytes), &done);

	call_over();
	model_assert(r == 0 && done == sizeof(bytes), "it is sent");
}

static void close_put(void)
{
	int r = weft_stream_close(&stream);

	model_assert(is_known(r), "it is sent, or the task is told why not");
	model_assert(r != 0 || got == put_so_far,
		     "what was put is sent before the end");
	model_free(&stream, sizeof(stream));
}

static void put_all(unsigned n)
{
	model_assert(put(n) == 0, "it is put");
}

static void read_to_the_end(void)
{
	ssize_t r = read_all();

	model_assert(r == 0 || (failed && r == -ENOMEM),
		     "the end is told, or why nothing is sent");
}

static void read_until_interrupted(void)
{
	model_assert(read_all() == -ECANCELED,
		     "who is cancelled does not wait");
}

/* Runs as if the task was not cancelled. */
static void shielded(void (*what)(void))
{
	struct weft__shield shield;

	weft__shield_enter(&shield);
	what();
	weft__shield_leave(&shield);
}

static void flush_in_full(void)
{
	model_assert(flush() == 0, "what was interrupted may be repeated");
}

/* ---- It is sent when the reader waits ----------------------------------- */

/* The peer ends when it has got all. */
static void setup_answering(void *arg)
{
	setup_armed(arg);
	end_after = 1;
}

static void setup_fresh_answering(void *arg)
{
	setup_fresh(arg);
	to_send = 1;
	end_after = 1;
}

static void setup_half(void *arg)
{
	setup_answering(arg);
	end_after = 2;
	shorts = 1;
}

static void setup_blocking(void *arg)
{
	setup_half(arg);
	blocks = 1;
}

static void setup_failing(void *arg)
{
	setup_half(arg);
	breaks = 1;
}

/* Nothing is received, and the request to receive does not end by itself. */
static void setup_taking(void *arg)
{
	setup_silent(arg);
	to_send = 0;
}

static void setup_cancelled(void *arg)
{
	setup_taking(arg);
	shorts = directs = 1;
}

THREAD(put_and_read, put_all(1); read_to_the_end(); close_put();)
THREAD(fill_and_read, put_all(FULL); read_to_the_end(); close_put();)
THREAD(put_until_cancelled, (void)put(FULL); read_until_interrupted();
       close_put();)

MODEL(put_meets_piece, setup_answering, check_put_and_read,
      OPTIONS(.preemptions = 2, .weak = 1), put_and_read, reap)
MODEL(put_meets_two, setup_answering, check_put_and_read,
      OPTIONS(.preemptions = 2, .weak = 1), put_and_read, reap, reap)
MODEL(put_meets_wakes, setup_answering, check_put_and_read,
      OPTIONS(.preemptions = 1, .weak = 1), put_and_read, reap, nothing, wake_0)
MODEL(put_meets_request, setup_fresh_answering, check_put_and_read,
      OPTIONS(.preemptions = 2, .weak = 1), put_and_read, reap)
MODEL(put_meets_cancel, setup_cancelled, check_put,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), put_until_cancelled, reap,
      nothing, cancel_0)
MODEL(put_is_sent_in_parts, setup_half, check_put_and_read,
      OPTIONS(.preemptions = 1, .weak = 1), fill_and_read, reap)
MODEL(put_is_blocked, setup_blocking, check_put_and_read,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE), fill_and_read, reap)
MODEL(put_fails, setup_failing, check_put, OPTIONS(.preemptions = 2, .weak = 1),
      fill_and_read, reap)

/* ---- One is sent, and there is more ------------------------------------- */

/* The send that is under way leaves some bytes, or fails, and the reader only
 * waits for the end. */
static void setup_two_left(void *arg)
{
	setup_silent(arg);
	end = 0;
	end_after = FULL + 1;
	shorts = blocks = 1;
}

static void setup_two_fail(void *arg)
{
	setup_two_left(arg);
	shorts = blocks = 0;
	breaks = 1;
}

static void setup_two(void *arg)
{
	setup_two_left(arg);
	shorts = blocks = 0;
}

THREAD(put_twice_and_read, put_all(FULL); (void)read_piece(); (void)put(1);
       read_to_the_end(); close_put();)
THREAD(put_thrice, put_all(FULL); (void)put(FULL); (void)put(FULL);
       close_put();)
THREAD(put_until_full, (void)put(FULL); (void)put(FULL); (void)put(1);
       close_put();)
THREAD(put_too_much, put_all(1); put_all(FULL + 1); put_all(1);
       model_assert(write_behind(1) == 0, "it is sent"); close_put();)

MODEL(second_meets_wakes, setup_two, check_put_and_read,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), put_twice_and_read, reap,
      nothing, wake_0)
MODEL(second_meets_two, setup_two, check_put_and_read,
      OPTIONS(.preemptions = 1, .weak = 1), put_twice_and_read, reap, reap)
MODEL(second_waits_for_the_rest, setup_two_left, check_put_and_read,
      OPTIONS(.preemptions = 1, .weak = 1), put_twice_and_read, reap)
MODEL(second_is_not_sent, setup_two_fail, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), put_twice_and_read, reap)
MODEL(third_waits, setup_two_left, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), put_thrice, reap)
MODEL(second_meets_cancel, setup_taking, check_put,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), put_until_full, reap,
      nothing, cancel_0)
MODEL(long_ones_wait, setup_answering, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), put_too_much, reap)

/* ---- Flushing, and writing ---------------------------------------------- */

static void setup_memoryless(void *arg)
{
	setup_answering(arg);
	failures = 1;
}

THREAD(flush_and_close, put_all(FULL); (void)flush(); close_put();)
THREAD(flush_again, (void)put(FULL); (void)flush(); shielded(flush_in_full);
       close_put();)
THREAD(flush_and_put, put_all(1); flush_in_full(); put_all(1);
       model_assert(write_behind(1) == 0, "it is sent"); close_put();)
THREAD(put_and_read_beside, put_all(1); read_to_the_end();
       (void)model_wait(&handed); close_put();)
THREAD(send_beside, write_beside(); model_post(&handed);)

/* Task 2 has a ring of its own. */
static void setup_beside(void *arg)
{
	setup_answering(arg);
	setup_second();
	pool[OWNER_TOO].shard = &shards[1];
	model_name(&shards[1].lock, "lock");
}

MODEL(flush_meets_end, setup_blocking, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), flush_and_close, reap)
MODEL(flush_meets_wakes, setup_answering, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), flush_and_close, reap, nothing,
      wake_0)
MODEL(flush_meets_cancel, setup_cancelled, check_put,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), flush_again, reap, nothing,
      cancel_0)
MODEL(flush_fails, setup_failing, check_put,
      OPTIONS(.preemptions = 2, .weak = 1), flush_and_close, reap)
MODEL(write_comes_behind, setup_memoryless, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), flush_and_put, reap)
MODEL(write_meets_put, setup_beside, check_put_and_read,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), put_and_read_beside, reap,
      send_beside, reap_1)

/* ---- Closing ------------------------------------------------------------ */

/* The peer takes nothing, and the send ends when it is cancelled. */
static void setup_deaf(void *arg)
{
	setup_cancelled(arg);
	shorts = 0;
	deaf = true;
	refusals = 1;
}

THREAD(put_and_close, (void)put(1); close_put();)

MODEL(close_meets_wakes, setup_cancelled, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), put_and_close, reap, nothing,
      wake_0)
MODEL(close_meets_cancel, setup_cancelled, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), put_and_close, reap, nothing,
      cancel_0)
MODEL(close_cancels, setup_deaf, check_put,
      OPTIONS(.preemptions = 1, .weak = 1), put_and_close, reap, nothing,
      cancel_0)

/* ---- Two rings, and two readers ----------------------------------------- */

/* The request to receive is in another ring. */
static void setup_apart(void *arg)
{
	(void)arg;
	setup_stream(0);
	served = &shards[1];
	pool_setup(served, WEFT__POOL_SMALL, 2);
	arm(&pool[OWNER]);
	shorts = 1;
	model_name(&shards[1].lock, "lock");
}

static void setup_handing(void *arg)
{
	setup_both(arg);
	end = NOTHING_MORE;
}

static void put_and_hand_on(void *arg)
{
	(void)arg;
	if (put(1) == 0)
		(void)flush();
	model_post(&handed);
}

static void put_the_rest(void *arg)
{
	(void)arg;
	(void)model_wait(&handed);
	put_all(1);
	flush_in_full();
	put_all(1);
	if (read_so_far == 0)
		model_assert(read_piece() > 0, "a piece came");
	close_put();
}

MODEL(put_meets_another_ring, setup_apart, check_put,
      OPTIONS(.preemptions = 2, .weak = MODEL_NONE), fill_and_read, reap,
      reap_0)
MODEL(putter_follows_putter, setup_handing, check_put_and_read,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), put_and_hand_on, reap,
      put_the_rest, cancel_0)

int main(void)
{
	/* The fastest first: mutate.py waits for one that fails. */
	const TTest *const tests[] = {
		put_meets_piece,
		put_meets_wakes,
		put_meets_request,
		put_is_sent_in_parts,
		put_fails,
		second_meets_two,
		second_waits_for_the_rest,
		second_is_not_sent,
		second_meets_cancel,
		long_ones_wait,
		flush_meets_wakes,
		flush_meets_cancel,
		flush_fails,
		write_comes_behind,
		write_meets_put,
		close_meets_wakes,
		close_meets_cancel,
		close_cancels,
		put_meets_another_ring,
		putter_follows_putter,
		put_meets_cancel,
		put_meets_two,
		put_is_blocked,
		second_meets_wakes,
		third_waits,
		flush_meets_end,
		NULL,
	};

	return kit_main("stream_put", tests);
}
