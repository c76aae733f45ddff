/* SPDX-License-Identifier: MIT */
/*
 * Model of streams and their buffers (io/stream/stream.[ch],
 * io/stream/stream_send.c, io/stream/stream_complete.c,
 * io/request/recv_buffers.[ch]).  The worker that reaps passes completions to
 * the stream under the shard's lock, while the task that reads peeks, waits, is
 * woken for other reasons, asks again and closes.
 *
 *   - All bytes that were sent are read, in order, and once.
 *   - No task sleeps for ever that could read, or is cancelled.
 *   - The stream is closed when its request has ended, and its memory is not
 *     touched after that (STR2).
 *   - Each buffer is in one place (BUF1).  The pool's owner gets the buffers
 *     back that others are done with (BUF2), and no thread writes into a buffer
 *     that is being read.
 */
#include "tests/model/streams.h"
#include "tests/model/alone.h"

static void setup_refused(void *arg)
{
	setup_fresh(arg);
	refusals = 2;
}

static void setup_two_pieces(void *arg)
{
	setup_armed(arg);
	to_send = 2;
}

/* One of three pieces may be the last. */
static void setup_dying(void *arg)
{
	setup_armed(arg);
	to_send = 3;
	deaths = 1;
	end_has_buffer = true;
}

static void setup_starving(void *arg)
{
	(void)arg;
	setup_stream(1);
	to_send = 2;
	arm(&pool[0]);
}

static void setup_deaf(void *arg)
{
	setup_silent(arg);
	refusals = 1;
}

static void setup_nonblocking(void *arg)
{
	setup_fresh(arg);
	fault = -EAGAIN;
}

static void setup_poolless(void *arg)
{
	setup_fresh(arg);
	memset(served->pools, 0, sizeof(served->pools));
	served->pools[WEFT__POOL_SMALL].refused = true;
}

/* The kernel may refuse the request when all buffers are in use, and then there
 * may be no memory for another buffer. */
static void setup_hopeless(void *arg)
{
	(void)arg;
	setup_stream(1);
	served->pools[WEFT__POOL_SMALL].max = 2;
	arm(&pool[0]);
	in_kernel[0][RECEIVES].live = false;
	weft__stream(&stream)->word = 0;
	weft__stream(&stream)->starved = 2;
	refusals = failures = 1;
}

/* Four pieces fill their buffers, and larger buffers are asked for. */
static void setup_misfits(void *arg)
{
	(void)arg;
	setup_stream(5);
	pool_setup(served, WEFT__POOL_LARGE, 2);
	to_send = 5;
	piece_bytes = WEFT__POOL_SMALL_BYTES;
	refusals = 1;
	arm(&pool[0]);
}

/* The request is in the ring of another worker, which has a piece of its
 * own. */
static void setup_elsewhere(void *arg)
{
	(void)arg;
	setup_stream(0);
	served = &shards[1];
	pool_setup(served, WEFT__POOL_SMALL, 2);
	to_send = 2;
	pool_of(WEFT__POOL_SMALL)->made = 3;
	arm(&pool[OWNER]);
	model_name(&shards[1].lock, "lock");
	model_name(&served->pools[0].returned, "returned");
}

static void setup_readers(void *arg)
{
	setup_silent(arg);
	setup_second();
}

/*
 * The threads.
 */

static void close_it(void)
{
	model_assert(weft_stream_close(&stream) == 0, "a stream is closed");
	model_free(&stream, sizeof(stream));
}

static void read_cancelled_once(void)
{
	ssize_t n = read_all();

	model_assert(n == -ECANCELED, "who is cancelled does not wait");
}

THREAD(read_and_close, model_assert(read_all() == 0, "the end is told");
       close_it();)
THREAD(read_in_spite_and_close, while (read_all() == -ENOMEM); close_it();)
THREAD(read_until_cancelled, read_cancelled_once(); close_it();)
THREAD(read_one_and_close, model_assert(read_piece() > 0, "a piece came");
       close_it();)
THREAD(close_at_once, close_it();)
MODEL(piece_meets_reader, setup_armed, check_all_read, OPTIONS(),
      read_and_close, reap)
MODEL(pieces_meet_reader, setup_two_pieces, check_all_read, OPTIONS(),
      read_and_close, reap)
MODEL(two_tell, setup_armed, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_and_close, reap, reap)
MODEL(pieces_meet_wakes, setup_armed, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_and_close, reap, nothing,
      wake_0)
MODEL(pieces_meet_cancel, setup_silent, check,
      OPTIONS(.preemptions = 2, .weak = 1), read_until_cancelled, reap, nothing,
      cancel_0)

/* ---- Closing ------------------------------------------------------------ */

MODEL(close_meets_piece, setup_deaf, check, OPTIONS(), close_at_once, reap)
MODEL(close_meets_two, setup_silent, check,
      OPTIONS(.preemptions = 2, .weak = 1), close_at_once, reap, reap)
MODEL(close_meets_wakes, setup_silent, check,
      OPTIONS(.preemptions = 2, .weak = 1), read_one_and_close, reap, nothing,
      wake_0)

/* ---- The request -------------------------------------------------------- */

MODEL(request_is_made, setup_refused, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_and_close, reap)
MODEL(request_is_made_anew, setup_dying, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_and_close, reap)
MODEL(request_starves, setup_starving, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_and_close, reap)
MODEL(request_would_block, setup_nonblocking, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_and_close, reap)
MODEL(request_has_no_pool, setup_poolless, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_and_close, reap)
MODEL(request_is_hopeless, setup_hopeless, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_in_spite_and_close, reap)
MODEL(request_is_misfit, setup_misfits, check_all_read,
      OPTIONS(.preemptions = 1, .weak = MODEL_NONE), read_and_close, reap)

/* ---- One reads, and then another ---------------------------------------- */

static void read_or_hand_on(void *arg)
{
	(void)arg;
	(void)read_piece();
	model_post(&handed);
}

static void read_the_rest(void *arg)
{
	(void)arg;
	(void)model_wait(&handed);
	if (read_so_far == 0)
		model_assert(read_piece() > 0, "a piece came");
	close_it();
}

MODEL(reader_follows_reader, setup_readers, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_or_hand_on, reap,
      read_the_rest, cancel_0)

/* ---- Sending ------------------------------------------------------------ */

static void send_to(int expected)
{
	static const char bytes[3];
	size_t done = 0;
	int r = weft_stream_write_all(&stream, bytes, sizeof(bytes), &done);

	call_over();
	model_assert(r == 0 || r == expected, "it is sent, or cancelled");
	model_assert(done == (r == 0 ? sizeof(bytes) : 0),
		     "what was sent is known");
}

THREAD(send_and_close, send_to(0); close_it();)
THREAD(send_until_cancelled, send_to(-ECANCELED); close_it();)
THREAD(send_beside, send_to(0); model_post(&handed);)
THREAD(read_beside, model_assert(read_all() == 0, "the end is told");
       (void)model_wait(&handed); close_it();)

static void setup_sending(void *arg)
{
	setup_fresh(arg);
	to_send = 0;
	refusals = 1;
}

static void setup_send_blocked(void *arg)
{
	setup_sending(arg);
	fault = -EAGAIN;
}

MODEL(send_ends, setup_send_blocked, check, OPTIONS(), send_and_close, reap)
MODEL(send_meets_wakes, setup_sending, check,
      OPTIONS(.preemptions = 2, .weak = 1), send_and_close, reap, nothing,
      wake_0)
MODEL(send_meets_cancel, setup_sending, check,
      OPTIONS(.preemptions = 2, .weak = 1), send_until_cancelled, reap, nothing,
      cancel_0)
MODEL(send_meets_pieces, setup_both, check_all_read,
      OPTIONS(.preemptions = 1, .weak = 1), read_beside, reap, send_beside)

/* ---- Buffers ------------------------------------------------------------ */

static void collect(void)
{
	weft__pool_collect(&served->pools[WEFT__POOL_SMALL]);
}

THREAD(collect_and_give, collect();
       weft__pool_give(pool_of(WEFT__POOL_SMALL), 2); collect();)
THREAD(collect_twice, collect(); collect();)

MODEL(pieces_meet_owner, setup_elsewhere, check_all_read,
      OPTIONS(.preemptions = 2, .weak = 1), read_and_close, reap,
      collect_and_give)

/* Two threads have a buffer each, and are done with it.  The owner, which is
 * the kernel as well, may have the buffer again immediately. */
static struct model_event again;

static void setup_returning(void *arg)
{
	struct weft__pool *buffers;

	setup_elsewhere(arg);
	memset(&again, 0, sizeof(again));
	in_kernel[1][RECEIVES].live = false;
	buffers = pool_of(WEFT__POOL_SMALL);
	buffers->made = 2;
	taken[WEFT__POOL_SMALL] = 2;
	model_name(weft__pool_at(buffers, 0), "buffer 0");
	model_name(weft__pool_at(buffers, 1), "buffer 1");
}

static void read_and_return(uint32_t piece)
{
	struct weft__pool *buffers = pool_of(WEFT__POOL_SMALL);

	model_data_read((char *)weft__pool_at(buffers, piece));
	weft__pool_give_back(buffers, piece);
}

/* Writes over the buffers in the ring, and keeps the first one.  Was it
 * there? */
static bool use_again(void)
{
	struct weft__pool *buffers = pool_of(WEFT__POOL_SMALL);
	uint16_t *at = &taken[WEFT__POOL_SMALL];
	bool first = false;

	collect();
	for (uint16_t last = (uint16_t)buffers->given; *at != last;) {
		uint16_t bid = buffers->ring[(*at)++].id;

		model_data_write((char *)weft__pool_at(buffers, bid));
		if (bid)
			weft__pool_give(buffers, bid);
		else
			first = true;
	}
	return first;
}

static void return_twice(void *arg)
{
	(void)arg;
	read_and_return(0);
	(void)model_wait(&again);
	read_and_return(0);
}

static void return_again(void *arg)
{
	(void)arg;
	while (!use_again())
		weft__spin_hint();
	model_post(&again);
	collect();
}

static void check_returned(void *arg)
{
	(void)arg;
	check_pools();
	collect();
	check_pools();
	model_assert(!pool_of(WEFT__POOL_SMALL)->returned,
		     "P2: the owner gets what was returned");
	model_assert((uint16_t)(pool_of(WEFT__POOL_SMALL)->given -
				taken[WEFT__POOL_SMALL]) == 2,
		     "the kernel has all buffers again");
}

THREAD(return_0, read_and_return(0);)
THREAD(return_1, read_and_return(1);)

MODEL(two_return, setup_returning, check_returned, OPTIONS(), return_0,
      return_1, collect_twice)
MODEL(one_returns_twice, setup_returning, check_returned, OPTIONS(),
      return_twice, return_1, return_again)

int main(void)
{
	/* The fastest first: mutate.py waits for one that fails. */
	const TTest *const tests[] = {
		two_return,
		one_returns_twice,
		request_is_misfit,
		piece_meets_reader,
		two_tell,
		send_meets_pieces,
		pieces_meet_owner,
		request_starves,
		request_is_hopeless,
		close_meets_two,
		request_has_no_pool,
		request_is_made_anew,
		request_is_made,
		pieces_meet_reader,
		send_ends,
		send_meets_wakes,
		request_would_block,
		pieces_meet_wakes,
		reader_follows_reader,
		pieces_meet_cancel,
		send_meets_cancel,
		close_meets_piece,
		close_meets_wakes,
		NULL,
	};

	return kit_main("stream", tests);
}
