/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/chan_order: the order of values, and the order in which waiters
 * are served.  Every test runs over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include "tests/support/chan_scene.h"

/* ---- Order --------------------------------------------------------------- */

enum { SENDERS_MAX = 7, EACH = 600 };

static struct {
	struct weft_chan chan;
	uint32_t room[ROOM_MAX];
	uint32_t senders;	    /* senders at work */
	uint32_t got[SENDERS_MAX]; /* of each sender, by all */
	uint32_t sum;
} stream;

static uint32_t stream_value(uint32_t sender, uint32_t n)
{
	return sender << 16 | n;
}

/* The last sender to end closes the channel. */
static int64_t stream_send(void *arg)
{
	uint32_t self = *(uint32_t *)arg;

	for (uint32_t n = 0; n < EACH; n++) {
		uint32_t value = stream_value(self, n);
		int r = -EAGAIN;

		if (fake_random(2))
			r = weft_chan_try_send(&stream.chan, &value);
		if (r == -EAGAIN)
			r = weft_chan_send(&stream.chan, &value);
		EXPECT(r == 0);
		if (fake_random(8) == 0)
			yield_some(3);
	}
	if (--stream.senders == 0)
		weft_chan_close(&stream.chan);
	return 0;
}

static int64_t stream_recv(void *arg)
{
	uint32_t next[SENDERS_MAX] = { 0 };
	bool alone = *(bool *)arg;
	uint32_t value;
	int r;

	while ((r = weft_chan_recv(&stream.chan, &value)) == 0) {
		uint32_t sender = value >> 16, n = value & 0xffff;

		EXPECT(sender < SENDERS_MAX && n < EACH);
		/* A lone receiver gets every value of each sender in order. */
		EXPECT(alone ? n == next[sender] : n >= next[sender]);
		next[sender] = n + 1;
		stream.got[sender]++;
		stream.sum += value;
		if (fake_random(8) == 0)
			yield_some(3);
	}
	EXPECT(r == -EPIPE);
	return 0;
}

static void stream_run(size_t capacity, uint32_t senders, unsigned receivers)
{
	bool alone = receivers == 1;
	uint32_t expected = 0;

	memset(&stream, 0, sizeof(stream));
	chan_begin(&stream.chan, stream.room, capacity);
	stream.senders = senders;
	WEFT_SUPERVISE(all) {
		for (unsigned i = 0; i < receivers; i++)
			EXPECT(WEFT_GO(all, stream_recv, alone) == 0);
		for (uint32_t i = 0; i < senders; i++)
			EXPECT(WEFT_GO(all, stream_send, i) == 0);
	}
	for (uint32_t i = 0; i < senders; i++) {
		EXPECT(stream.got[i] == EACH);
		for (uint32_t n = 0; n < EACH; n++)
			expected += stream_value(i, n);
	}
	EXPECT(stream.sum == expected);
	EXPECT(weft_chan_count(&stream.chan) == 0);
}

static int64_t one_to_one(void *arg)
{
	(void)arg;
	for (int i = 0; i < CAPACITIES; i++)
		stream_run(capacities[i], 1, 1);
	return 0;
}

START_TEST(values_of_one_sender_come_in_order)
{
	(void)run_main(_i, one_to_one);
}
END_TEST

static int64_t many_to_one(void *arg)
{
	(void)arg;
	for (int i = 0; i < CAPACITIES; i++)
		stream_run(capacities[i], SENDERS_MAX, 1);
	return 0;
}

START_TEST(values_of_each_sender_come_in_order)
{
	(void)run_main(_i, many_to_one);
}
END_TEST

static int64_t many_to_many(void *arg)
{
	(void)arg;
	for (int i = 0; i < CAPACITIES; i++)
		stream_run(capacities[i], SENDERS_MAX, 5);
	return 0;
}

START_TEST(each_value_comes_once_and_in_order)
{
	(void)run_main(_i, many_to_many);
}
END_TEST

/* ---- Turns --------------------------------------------------------------- */

static void senders_queue(size_t capacity)
{
	struct waiting waiting[QUEUE];
	uint32_t room[ROOM_MAX], value, held = (uint32_t)capacity;
	struct weft_chan chan;

	chan_begin(&chan, room, capacity);
	for (uint32_t i = 0; i < held; i++)
		EXPECT(weft_chan_send(&chan, &i) == 0);
	WEFT_SUPERVISE(all) {
		queue_up(all, wait_to_send, &chan, waiting, QUEUE, held);
		for (uint32_t i = 0; i < held + QUEUE; i++) {
			EXPECT(weft_chan_recv(&chan, &value) == 0);
			EXPECT(value == i);
			/* The waiting sender has the room: no other send gets
			 * in between. */
			if (i < QUEUE)
				EXPECT(weft_chan_count(&chan) == held);
			if (i + 1 < QUEUE)
				EXPECT(weft_chan_try_send(&chan, &value) ==
				       -EAGAIN);
			yield_some(2);
		}
	}
	for (int i = 0; i < QUEUE; i++)
		EXPECT(waiting[i].result == 0);
	EXPECT(weft_chan_count(&chan) == 0);
}

static int64_t all_senders_queue(void *arg)
{
	(void)arg;
	for (int i = 0; i < CAPACITIES; i++)
		senders_queue(capacities[i]);
	return 0;
}

START_TEST(waiting_senders_are_served_in_turn)
{
	(void)run_main(_i, all_senders_queue);
}
END_TEST

static void receivers_queue(size_t capacity)
{
	struct waiting waiting[QUEUE];
	uint32_t room[ROOM_MAX], value;
	struct weft_chan chan;

	chan_begin(&chan, room, capacity);
	WEFT_SUPERVISE(all) {
		queue_up(all, wait_to_recv, &chan, waiting, QUEUE, 1000);
		for (uint32_t i = 0; i < QUEUE; i++) {
			EXPECT(weft_chan_send(&chan, &i) == 0);
			/* The oldest receiver already has the value. */
			EXPECT(weft_chan_count(&chan) == 0);
			EXPECT(weft_chan_try_recv(&chan, &value) == -EAGAIN);
			yield_some(2);
		}
	}
	for (uint32_t i = 0; i < QUEUE; i++)
		EXPECT(waiting[i].result == 0 && waiting[i].value == i);
}

static int64_t all_receivers_queue(void *arg)
{
	(void)arg;
	for (int i = 0; i < CAPACITIES; i++)
		receivers_queue(capacities[i]);
	return 0;
}

START_TEST(waiting_receivers_are_served_in_turn)
{
	(void)run_main(_i, all_receivers_queue);
}
END_TEST

/* Waiters leave at the front, in the middle and at the end. */
static int64_t leave_the_queue(void *arg)
{
	static const uint32_t leaves[] = { 4, 0, 8, 3 };
	struct weft_chan chan = WEFT_CHAN_DIRECT(uint32_t);
	struct waiting waiting[QUEUE];
	struct weft_task tasks[QUEUE];
	uint32_t value, rest[] = { 1, 2, 5, 6, 7 };

	(void)arg;
	WEFT_SUPERVISE(all) {
		for (uint32_t i = 0; i < QUEUE; i++) {
			struct waiting *one = &waiting[i];

			*one = (struct waiting){ &chan, i, 1 };
			tasks[i] = start(all, wait_to_send, &one, sizeof(one));
			let_all_wait();
		}
		for (int i = 0; i < 4; i++) {
			EXPECT(weft_cancel(tasks[leaves[i]]) == 0);
			let_all_wait();
			EXPECT(waiting[leaves[i]].result == -ECANCELED);
		}
		for (int i = 0; i < 5; i++) {
			EXPECT(weft_chan_recv(&chan, &value) == 0);
			EXPECT(value == rest[i]);
		}
		EXPECT(weft_chan_try_recv(&chan, &value) == -EAGAIN);
	}
	return 0;
}

START_TEST(who_leaves_the_queue_leaves_it_whole)
{
	(void)run_main(_i, leave_the_queue);
}
END_TEST

/* A push replaces the oldest value; it does not overtake waiting senders. */
static int64_t push_past_senders(void *arg)
{
	struct waiting waiting[3];
	uint32_t room[2], value, dropped;
	struct weft_chan chan = WEFT_CHAN_INIT(room);

	(void)arg;
	for (value = 0; value < 2; value++)
		EXPECT(weft_chan_send(&chan, &value) == 0);
	WEFT_SUPERVISE(all) {
		queue_up(all, wait_to_send, &chan, waiting, 3, 10);
		for (value = 2; value < 7; value++) {
			dropped = 99;
			EXPECT(weft_chan_push(&chan, &value, &dropped) == 1);
			EXPECT(dropped == value - 2);
			EXPECT(weft_chan_count(&chan) == 2);
		}
		let_all_wait();
		for (int i = 0; i < 3; i++)
			EXPECT(waiting[i].result == 1);
		for (uint32_t i = 0; i < 5; i++) {
			EXPECT(weft_chan_recv(&chan, &value) == 0);
			EXPECT(value == (i < 2 ? 5 + i : 8 + i));
		}
	}
	return 0;
}

START_TEST(push_drops_the_oldest_and_passes_over_who_waits)
{
	(void)run_main(_i, push_past_senders);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *order_suite(void)
{
	Suite *suite = suite_create("sync/chan_order");
	TCase *tc = tcase_create("streams");

	tcase_set_timeout(tc, 30);
	ADD(tc, values_of_one_sender_come_in_order);
	ADD(tc, values_of_each_sender_come_in_order);
	ADD(tc, each_value_comes_once_and_in_order);
	suite_add_tcase(suite, tc);

	tc = tcase_create("turns");
	ADD(tc, waiting_senders_are_served_in_turn);
	ADD(tc, waiting_receivers_are_served_in_turn);
	ADD(tc, who_leaves_the_queue_leaves_it_whole);
	ADD(tc, push_drops_the_oldest_and_passes_over_who_waits);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { order_suite };

	return run_suites(make, 1);
}
