/* SPDX-License-Identifier: MIT */
/*
 * Suite sync/chan_values: the ring, and values of all sizes.  Every test runs
 * over seeds and numbers of workers.
 *
 * WEFT_TEST_SEED=n changes the seeds.
 */
#include "tests/support/chan_scene.h"

/* ---- The ring ------------------------------------------------------------ */

/* The expected contents: values from `first` on, without the dropped ones, form
 * a contiguous range as long as only the oldest values leave. */
struct expected {
	uint32_t first, end;
};

static void ring_step(struct weft_chan *chan, struct expected *expected,
		      size_t capacity)
{
	uint32_t held = expected->end - expected->first, value = 0;
	int r;

	switch (fake_random(3)) {
	case 0:
		r = weft_chan_try_send(chan, &expected->end);
		EXPECT(r == (held < capacity ? 0 : -EAGAIN));
		expected->end += r == 0;
		break;
	case 1:
		r = weft_chan_try_recv(chan, &value);
		EXPECT(r == (held > 0 ? 0 : -EAGAIN));
		EXPECT(r != 0 || value == expected->first);
		expected->first += r == 0;
		break;
	default:
		if (fake_random(4) > 0)
			break;
		r = weft_chan_push(chan, &expected->end, &value);
		EXPECT(r == (held == capacity));
		EXPECT(r == 0 || value == expected->first);
		expected->first += r == 1;
		expected->end++;
		break;
	}
	held = expected->end - expected->first;
	EXPECT(weft_chan_count(chan) == held);
}

static int64_t ring_walk(void *arg)
{
	static uint32_t room[ROOM_MAX + 2];

	(void)arg;
	for (int i = 1; i < CAPACITIES; i++) {
		struct expected expected = { 0, 0 };
		struct weft_chan chan;

		memset(room, 0x5a, sizeof(room));
		chan_begin(&chan, room + 1, capacities[i]);
		for (int step = 0; step < 20000; step++)
			ring_step(&chan, &expected, capacities[i]);
		EXPECT(room[0] == 0x5a5a5a5a);
		EXPECT(room[1 + capacities[i]] == 0x5a5a5a5a);
	}
	return 0;
}

START_TEST(ring_holds_what_a_queue_would)
{
	(void)run_main(_i, ring_walk);
}
END_TEST

/* The ring is filled and emptied, starting at each place. */
static int64_t ring_wrap(void *arg)
{
	uint32_t value, room[ROOM_MAX];

	(void)arg;
	for (int i = 1; i < CAPACITIES; i++) {
		uint32_t capacity = (uint32_t)capacities[i];
		struct weft_chan chan;

		chan_begin(&chan, room, capacity);
		for (uint32_t place = 0; place < 2 * 7; place++) {
			for (uint32_t n = 0; n < capacity; n++)
				EXPECT(weft_chan_send(&chan, &n) == 0);
			EXPECT(weft_chan_try_send(&chan, &place) == -EAGAIN);
			for (uint32_t n = 0; n < capacity; n++) {
				EXPECT(weft_chan_recv(&chan, &value) == 0);
				EXPECT(value == n);
			}
			EXPECT(weft_chan_send(&chan, &place) == 0);
			EXPECT(weft_chan_recv(&chan, &value) == 0);
			EXPECT(value == place);
		}
	}
	return 0;
}

START_TEST(full_ring_wraps_at_each_place)
{
	(void)run_main(_i, ring_wrap);
}
END_TEST

/* ---- Values of all sizes ------------------------------------------------- */

static const size_t sizes[] = { 1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 333, 4096 };

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), EDGE = 64, ITEM_MAX = 4096 };

/* A value between two strips that must not be written to. */
struct framed {
	unsigned char before[EDGE];
	unsigned char value[ITEM_MAX + EDGE];
};

static unsigned char pattern(size_t number, size_t i)
{
	return (unsigned char)(number * 37 + i * 11 + i / 256 + 1);
}

static void framed_clear(struct framed *framed)
{
	memset(framed, 0xee, sizeof(*framed));
}

static void framed_set(struct framed *framed, size_t bytes, size_t number)
{
	framed_clear(framed);
	for (size_t i = 0; i < bytes; i++)
		framed->value[i] = pattern(number, i);
}

/* All bytes of the value, and no other byte, have arrived. */
static void framed_expect(const struct framed *framed, size_t bytes,
			  size_t number)
{
	for (size_t i = 0; i < EDGE; i++)
		EXPECT(framed->before[i] == 0xee);
	for (size_t i = 0; i < bytes; i++)
		EXPECT(framed->value[i] == pattern(number, i));
	for (size_t i = bytes; i < sizeof(framed->value); i++)
		EXPECT(framed->value[i] == 0xee);
}

static struct {
	struct weft_chan chan;
	size_t bytes;
	struct framed in, out, dropped;
	unsigned char room[EDGE + 3 * ITEM_MAX + EDGE];
} freight;

static void freight_begin(size_t capacity, size_t bytes)
{
	memset(freight.room, 0xee, sizeof(freight.room));
	freight.bytes = bytes;
	EXPECT(weft_chan_init(&freight.chan, freight.room + EDGE, capacity,
			      bytes) == 0);
	framed_clear(&freight.out);
	framed_clear(&freight.dropped);
}

static void freight_end(size_t capacity)
{
	size_t used = capacity * freight.bytes;

	for (size_t i = 0; i < EDGE; i++)
		EXPECT(freight.room[i] == 0xee);
	for (size_t i = EDGE + used; i < sizeof(freight.room); i++)
		EXPECT(freight.room[i] == 0xee);
}

/* Values pass through the ring, and leave it at a push. */
static void freight_ring(size_t bytes)
{
	freight_begin(3, bytes);
	for (size_t n = 0; n < 3; n++) {
		framed_set(&freight.in, bytes, n);
		EXPECT(weft_chan_send(&freight.chan, freight.in.value) == 0);
		framed_expect(&freight.in, bytes, n);
	}
	framed_set(&freight.in, bytes, 3);
	EXPECT(weft_chan_push(&freight.chan, freight.in.value,
			      freight.dropped.value) == 1);
	framed_expect(&freight.dropped, bytes, 0);
	for (size_t n = 1; n < 4; n++) {
		framed_clear(&freight.out);
		EXPECT(weft_chan_recv(&freight.chan, freight.out.value) == 0);
		framed_expect(&freight.out, bytes, n);
	}
	freight_end(3);
}

static int64_t freight_recv(void *arg)
{
	(void)arg;
	EXPECT(weft_chan_recv(&freight.chan, freight.out.value) == 0);
	return 0;
}

static int64_t freight_send(void *arg)
{
	(void)arg;
	EXPECT(weft_chan_send(&freight.chan, freight.in.value) == 0);
	return 0;
}

/* Values pass to a waiting receiver and from a waiting sender: past the ring,
 * and into it. */
static void freight_hand_over(size_t bytes)
{
	freight_begin(1, bytes);
	framed_set(&freight.in, bytes, 5);
	WEFT_SUPERVISE(all) {
		EXPECT(weft_go(all, freight_recv, NULL, 0) == 0);
		let_all_wait();
		EXPECT(weft_chan_try_send(&freight.chan, freight.in.value) ==
		       0);
	}
	framed_expect(&freight.out, bytes, 5);
	framed_set(&freight.in, bytes, 6);
	EXPECT(weft_chan_send(&freight.chan, freight.in.value) == 0);
	framed_set(&freight.in, bytes, 7);
	WEFT_SUPERVISE(all) {
		EXPECT(weft_go(all, freight_send, NULL, 0) == 0);
		let_all_wait();
		for (size_t n = 6; n < 8; n++) {
			framed_clear(&freight.out);
			EXPECT(weft_chan_recv(&freight.chan,
					      freight.out.value) == 0);
			framed_expect(&freight.out, bytes, n);
		}
	}
	freight_end(1);
}

static void freight_direct(size_t bytes)
{
	freight_begin(0, bytes);
	framed_set(&freight.in, bytes, 8);
	WEFT_SUPERVISE(all) {
		EXPECT(weft_go(all, freight_send, NULL, 0) == 0);
		let_all_wait();
		EXPECT(weft_chan_recv(&freight.chan, freight.out.value) == 0);
	}
	framed_expect(&freight.in, bytes, 8);
	framed_expect(&freight.out, bytes, 8);
	freight_end(0);
}

static int64_t carry_all_sizes(void *arg)
{
	(void)arg;
	for (int i = 0; i < SIZES; i++) {
		freight_ring(sizes[i]);
		freight_hand_over(sizes[i]);
		freight_direct(sizes[i]);
	}
	return 0;
}

START_TEST(values_of_any_size_come_whole_and_touch_nothing_else)
{
	(void)run_main(_i, carry_all_sizes);
}
END_TEST

#define ADD(tc, test) tcase_add_loop_test((tc), test, 0, seeds(SEEDS))

static Suite *values_suite(void)
{
	Suite *suite = suite_create("sync/chan_values");
	TCase *tc = tcase_create("values");

	tcase_set_timeout(tc, 30);
	ADD(tc, ring_holds_what_a_queue_would);
	ADD(tc, full_ring_wraps_at_each_place);
	ADD(tc, values_of_any_size_come_whole_and_touch_nothing_else);
	suite_add_tcase(suite, tc);
	return suite;
}

int main(void)
{
	Suite *(*const make[])(void) = { values_suite };

	return run_suites(make, 1);
}
