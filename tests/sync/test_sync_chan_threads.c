/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/chan_threads: channels between tasks, threads that are not
 * workers, and several runtimes, on real threads.
 *
 * Every value is a different number.  A book records which numbers were sent
 * and received: each sent value must arrive exactly once, and whole.
 *
 * With WEFT_TEST_LONG in the environment there are thirty times as many values.
 */
#include <pthread.h>

#include "tests/support/chan_threads.h"

/* ---- The book ------------------------------------------------------------ */

enum { VALUES_MAX = 1 << 20, ROOM_MAX = 64 };

static struct {
	uint32_t total;		  /* values in this run */
	weft__atomic(uint32_t) next;
	weft__atomic(uint8_t) sent[VALUES_MAX];
	weft__atomic(uint8_t) got[VALUES_MAX];
} book;

/* Three words, so that a torn value or a mix of two is detected. */
struct item {
	uint64_t before, value, after;
};

static struct item item_of(uint32_t value)
{
	uint64_t mixed = (value + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return (struct item){ mixed, value, ~mixed };
}

static void book_begin(uint32_t total)
{
	EXPECT(total <= VALUES_MAX);
	memset(&book, 0, sizeof(book));
	book.total = total;
}

/* Takes a number that no other sender has; false if there are none left. */
static bool book_take(uint32_t *ret_value)
{
	/* relaxed: the numbers only have to differ. */
	*ret_value = weft__add(&book.next, 1u, relaxed);
	return *ret_value < book.total;
}

static void book_sent(const struct item *item)
{
	/* relaxed: read when all have ended. */
	EXPECT(weft__add(&book.sent[item->value], (uint8_t)1, relaxed) == 0);
}

static void book_got(struct item *item)
{
	struct item whole = item_of((uint32_t)item->value);

	EXPECT(item->value < book.total);
	EXPECT(memcmp(item, &whole, sizeof(whole)) == 0);
	/* relaxed: read when all have ended. */
	EXPECT(weft__add(&book.got[item->value], (uint8_t)1, relaxed) == 0);
	memset(item, 0xee, sizeof(*item));
}

/* Called when all tasks and threads have ended.  Returns the number of received
 * values. */
static uint32_t book_close(void)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < book.total; i++) {
		/* relaxed: all of them were joined. */
		uint8_t sent = weft__load(&book.sent[i], relaxed);
		uint8_t got = weft__load(&book.got[i], relaxed);

		ck_assert_msg(sent == got,
			      "value %u was sent %u times, came %u times", i,
			      sent, got);
		count += got;
	}
	return count;
}

static uint32_t random_below(uint64_t *random, uint32_t limit)
{
	/* xorshift64 (Marsaglia 2003). */
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return (uint32_t)(*random >> 33) % limit;
}

/* ---- One channel, many at both ends -------------------------------------- */

enum { TASKS = 4, THREADS = 2 };

static struct {
	struct weft_chan chan;
	struct weft_chan unsent, unreceived; /* without a peer */
	struct item room[ROOM_MAX];
	weft__atomic(uint32_t) senders; /* senders that may still send */
} shared;

static void shared_begin(size_t capacity, uint32_t senders, uint32_t total)
{
	book_begin(total);
	EXPECT(weft_chan_init(&shared.chan, shared.room, capacity,
			      sizeof(struct item)) == 0);
	EXPECT(weft_chan_init(&shared.unsent, NULL, 0,
			      sizeof(struct item)) == 0);
	EXPECT(weft_chan_init(&shared.unreceived, NULL, 0,
			      sizeof(struct item)) == 0);
	/* relaxed: before there are others. */
	weft__store(&shared.senders, senders, relaxed);
}

static int send_by_select(const struct item *item)
{
	struct item never = *item;
	struct weft_case cases[] = { WEFT_SEND(&shared.unreceived, &never),
				     WEFT_SEND(&shared.chan, item) };
	int k = weft_select(cases, 2);

	EXPECT(k == 1);
	return cases[1].result;
}

static void send_all(void)
{
	uint32_t value;

	while (book_take(&value)) {
		struct item item = item_of(value);
		int r = value % 3 ? -EAGAIN :
				    weft_chan_try_send(&shared.chan, &item);

		if (r == -EAGAIN)
			r = value % 4 ? weft_chan_send(&shared.chan, &item) :
					send_by_select(&item);
		EXPECT(r == 0);
		book_sent(&item);
	}
	/* relaxed: the lock of the channel orders the rest. */
	if (weft__sub(&shared.senders, 1u, relaxed) == 1)
		weft_chan_close(&shared.chan);
}

static int recv_by_select(struct item *item)
{
	struct item never;
	struct weft_case cases[] = { WEFT_RECV(&shared.chan, item),
				     WEFT_RECV(&shared.unsent, &never) };
	int k = weft_select(cases, 2);

	EXPECT(k == 0);
	return cases[0].result;
}

static void recv_all(void)
{
	struct item item;
	uint32_t calls = 0;
	int r = 0;

	while (r != -EPIPE) {
		calls++;
		r = calls % 3 ? -EAGAIN :
				weft_chan_try_recv(&shared.chan, &item);
		if (r == -EAGAIN)
			r = calls % 4 ? weft_chan_recv(&shared.chan, &item) :
					recv_by_select(&item);
		EXPECT(r == 0 || r == -EPIPE);
		if (r == 0)
			book_got(&item);
	}
}

static int64_t send_task(void *arg)
{
	(void)arg;
	send_all();
	return 0;
}

static int64_t recv_task(void *arg)
{
	(void)arg;
	recv_all();
	return 0;
}

static void *send_thread(void *arg)
{
	(void)arg;
	send_all();
	return NULL;
}

static void *recv_thread(void *arg)
{
	(void)arg;
	recv_all();
	return NULL;
}

static int64_t both_tasks(void *arg)
{
	(void)arg;
	WEFT_SUPERVISE(all)
		for (int i = 0; i < TASKS; i++) {
			EXPECT(weft_go(all, send_task, NULL, 0) == 0);
			EXPECT(weft_go(all, recv_task, NULL, 0) == 0);
		}
	return 0;
}

static const size_t capacities[] = { 0, 1, 64 };

START_TEST(tasks_and_threads_share_a_channel)
{
	unsigned workers = 1 + (unsigned)_i % 4;
	pthread_t threads[2 * THREADS];

	shared_begin(capacities[_i / 4], TASKS + THREADS, often(10000));
	for (int i = 0; i < 2 * THREADS; i++)
		EXPECT(pthread_create(&threads[i], NULL,
				      i % 2 ? recv_thread : send_thread,
				      NULL) == 0);
	io_run(both_tasks, NULL, workers);
	for (int i = 0; i < 2 * THREADS; i++)
		pthread_join(threads[i], NULL);
	ck_assert_uint_eq(book_close(), book.total);
}
END_TEST

/* ---- Two runtimes -------------------------------------------------------- */

START_TEST(two_runtimes_share_a_channel)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct weft_runtime *runtimes[2];
	struct weft_task tasks[2][2 * TASKS];

	shared_begin(capacities[_i], 2 * TASKS, often(20000));
	for (unsigned i = 0; i < 2; i++) {
		opts.workers = 1 + i;
		ck_assert_int_eq(weft_start(&opts, &runtimes[i]), 0);
	}
	for (int i = 0; i < 2 * 2 * TASKS; i++)
		tasks[i % 2][i / 2] = submit(runtimes[i % 2],
					     i / 2 % 2 ? send_task : recv_task,
					     i / 4 % 2 ? WEFT_PINNED : 0);
	for (int i = 0; i < 2 * 2 * TASKS; i++)
		ck_assert_int_eq(weft_wait(runtimes[i % 2],
					   tasks[i % 2][i / 2], NULL),
				 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(weft_stop(runtimes[i]), 0);
	ck_assert_uint_eq(book_close(), book.total);
}
END_TEST

/* ---- Interruptions ------------------------------------------------------- */

enum { CHANS = 4, ACTORS = 12 };

static struct {
	struct weft_chan chans[CHANS];
	struct item rooms[CHANS][4];
	weft__atomic(uint32_t) sent;
	weft__atomic(bool) over;
	weft__atomic(uint64_t) seeds;
} crowd;

static void crowd_begin(uint32_t total)
{
	static const size_t rooms[CHANS] = { 0, 1, 4, 0 };

	book_begin(total);
	for (int i = 0; i < CHANS; i++)
		EXPECT(weft_chan_init(&crowd.chans[i], crowd.rooms[i],
				      rooms[i], sizeof(struct item)) == 0);
	/* relaxed: before there are others. */
	weft__store(&crowd.sent, 0u, relaxed);
	weft__store(&crowd.over, false, relaxed);
	weft__store(&crowd.seeds, (uint64_t)0, relaxed);
}

static bool crowd_over(void)
{
	/* relaxed: seen sooner or later. */
	return weft__load(&crowd.over, relaxed);
}

/* A task or a thread that sends and receives. */
struct actor {
	uint64_t random;
	bool may_send; /* it has a number to send */
	struct item in, out;
	struct weft_case cases[2 * CHANS];
};

static void actor_refill(struct actor *actor)
{
	uint32_t value;

	actor->may_send = book_take(&value);
	actor->in = item_of(value);
}

static void actor_begin(struct actor *actor)
{
	/* relaxed: the numbers only have to differ. */
	actor->random = 1 + weft__add(&crowd.seeds, UINT64_C(1), relaxed) *
				    UINT64_C(0x9e3779b97f4a7c15);
	actor_refill(actor);
}

static struct weft_chan *any_chan(struct actor *actor)
{
	return &crowd.chans[random_below(&actor->random, CHANS)];
}

/* Returns 1 if the value was sent, 2 if one was received, or an error. */
static int actor_selects(struct actor *actor)
{
	uint32_t count = 1 + random_below(&actor->random, 2 * CHANS);
	int k;

	for (uint32_t i = 0; i < count; i++) {
		actor->cases[i] = (struct weft_case)WEFT_RECV(any_chan(actor),
							      &actor->out);
		if (actor->may_send && random_below(&actor->random, 2))
			actor->cases[i] = (struct weft_case)WEFT_SEND(
				any_chan(actor), &actor->in);
	}
	k = random_below(&actor->random, 8) ?
		    weft_select(actor->cases, count) :
		    weft_try_select(actor->cases, count);
	if (k < 0 || actor->cases[k].result < 0)
		return k < 0 ? k : actor->cases[k].result;
	return actor->cases[k].kind == WEFT_CASE_SEND ? 1 : 2;
}

static int actor_pushes(struct actor *actor)
{
	struct item dropped;
	int r = weft_chan_push(any_chan(actor), &actor->in, &dropped);

	if (r == 1)
		book_got(&dropped);
	return r < 0 ? r : 1;
}

static int actor_calls(struct actor *actor)
{
	int r;

	switch (random_below(&actor->random, actor->may_send ? 6 : 2)) {
	case 0:
		r = weft_chan_recv(any_chan(actor), &actor->out);
		return r == 0 ? 2 : r;
	case 2:
	case 3:
		r = weft_chan_send(any_chan(actor), &actor->in);
		return r == 0 ? 1 : r;
	case 4:
		return actor_pushes(actor);
	default:
		return actor_selects(actor);
	}
}

static void actor_books(struct actor *actor, int r)
{
	EXPECT(r > 0 || r == -ECANCELED || r == -ETIMEDOUT || r == -EAGAIN ||
	       r == -EINVAL || (r == -EPIPE && crowd_over()));
	if (r == 2)
		book_got(&actor->out);
	if (r != 1)
		return;
	book_sent(&actor->in);
	/* relaxed: a count. */
	weft__add(&crowd.sent, 1u, relaxed);
	actor_refill(actor);
}

/* Runs until it is cancelled, or all is over. */
static int64_t actor_task(void *arg)
{
	struct actor actor;
	int r = 0;

	(void)arg;
	actor_begin(&actor);
	while (r != -ECANCELED && !crowd_over()) {
		if (random_below(&actor.random, 2))
			r = actor_calls(&actor);
		else
			WEFT_WITHIN(random_below(&actor.random, 200000))
				r = actor_calls(&actor);
		actor_books(&actor, r);
	}
	return 0;
}

static void *actor_thread(void *arg)
{
	struct actor actor;

	(void)arg;
	actor_begin(&actor);
	while (!crowd_over())
		actor_books(&actor, actor_calls(&actor));
	return NULL;
}

static struct weft_task start_actor(struct weft_scope *scope, uint32_t n)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task task = { 0 };

	opts.ret_task = &task;
	opts.flags = n % 8 == 0 ? WEFT_PINNED : 0;
	EXPECT(weft_go_opts(scope, actor_task, NULL, 0, &opts) == 0);
	return task;
}

/* The number that a cancelled task held is not sent any more, so the run ends
 * when most of them were sent. */
static bool crowd_goes_on(void)
{
	/* relaxed: counts. */
	return weft__load(&book.next, relaxed) < book.total &&
	       weft__load(&crowd.sent, relaxed) < book.total;
}

static int64_t cancel_all_the_time(void *arg)
{
	struct weft_task tasks[ACTORS];
	uint64_t random = 88172645463325252;

	(void)arg;
	WEFT_SUPERVISE(all) {
		for (uint32_t i = 0; i < ACTORS; i++)
			tasks[i] = start_actor(all, i);
		for (uint32_t n = 0; crowd_goes_on(); n++) {
			uint32_t i = random_below(&random, ACTORS);

			if (random_below(&random, 4) == 0)
				EXPECT(weft_sleep(WEFT_US(50)) == 0);
			EXPECT(weft_cancel(tasks[i]) == 0);
			EXPECT(weft_join(tasks[i], NULL) == 0);
			tasks[i] = start_actor(all, n);
		}
		/* relaxed: the locks of the channels order the rest. */
		weft__store(&crowd.over, true, relaxed);
		for (int i = 0; i < CHANS; i++)
			weft_chan_close(&crowd.chans[i]);
	}
	return 0;
}

START_TEST(interrupted_calls_lose_nothing_and_double_nothing)
{
	pthread_t threads[THREADS];
	struct item item;

	crowd_begin(often(25000));
	for (int i = 0; i < THREADS; i++)
		EXPECT(pthread_create(&threads[i], NULL, actor_thread, NULL) ==
		       0);
	io_run(cancel_all_the_time, NULL, 1 + (unsigned)_i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CHANS; i++)
		while (weft_chan_try_recv(&crowd.chans[i], &item) == 0)
			book_got(&item);
	ck_assert_uint_gt(book_close(), book.total / 4);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sync/chan_threads");
	TCase *tc = tcase_create("values");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, tasks_and_threads_share_a_channel, 0, 12);
	tcase_add_loop_test(tc, two_runtimes_share_a_channel, 0, 3);
	tcase_add_loop_test(tc,
			    interrupted_calls_lose_nothing_and_double_nothing,
			    0, 4);
	suite_add_tcase(suite, tc);
	return io_tests_run(suite);
}
