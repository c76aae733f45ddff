/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the suites of channels share: a book of the values that were
 * sent and that came, in which each is a number of its own; and calls by their
 * kind.
 */
#ifndef WEFT_TESTS_SUPPORT_CHAN_SCENE_H
#define WEFT_TESTS_SUPPORT_CHAN_SCENE_H

#include <errno.h>
#include <string.h>

#include "tests/support/sched_scene.h"

enum { BOOK_MAX = 1 << 16, ROOM_MAX = 1024 };

static const size_t capacities[] = { 0, 1, 2, 7, 1024 };

enum { CAPACITIES = sizeof(capacities) / sizeof(capacities[0]) };

/* Of one run, which has one thread. */
struct book {
	uint32_t next; /* values so far */
	uint8_t sent[BOOK_MAX];
	uint8_t got[BOOK_MAX];
};

static inline void book_sent(struct book *book, uint32_t value)
{
	EXPECT(value < book->next && book->sent[value] == 0);
	book->sent[value]++;
}

static inline void book_got(struct book *book, uint32_t value)
{
	EXPECT(value < book->next && book->got[value] == 0);
	book->got[value]++;
}

/* A value that no task has sent. */
static inline uint32_t book_value(struct book *book)
{
	EXPECT(book->next < BOOK_MAX);
	return book->next++;
}

static inline void book_drain(struct book *book, struct weft_chan *chan)
{
	uint32_t value;
	int r;

	while ((r = weft_chan_try_recv(chan, &value)) == 0)
		book_got(book, value);
	EXPECT(r == -EAGAIN || r == -EPIPE);
}

/* Each value that was sent came, and nothing else. */
static inline void book_close(const struct book *book)
{
	for (uint32_t i = 0; i < book->next; i++)
		ck_assert_msg(book->sent[i] == book->got[i],
			      "value %u was sent %u times and came %u times", i,
			      book->sent[i], book->got[i]);
}

/* A channel for uint32_t with so much room. */
static inline void chan_begin(struct weft_chan *chan, uint32_t *room,
			      size_t capacity)
{
	EXPECT(capacity <= ROOM_MAX);
	EXPECT(weft_chan_init(chan, room, capacity, sizeof(*room)) == 0);
}

/* Nobody waits at it: neither side is taken up on an offer. */
static inline void chan_is_forsaken(struct weft_chan *chan)
{
	uint32_t value = 0;

	while (weft_chan_try_recv(chan, &value) == 0)
		;
	EXPECT(weft_chan_count(chan) == 0);
	while (weft_chan_try_send(chan, &value) == 0)
		EXPECT(weft_chan_count(chan) > 0);
	while (weft_chan_count(chan) > 0)
		EXPECT(weft_chan_try_recv(chan, &value) == 0);
	EXPECT(weft_chan_try_recv(chan, &value) == -EAGAIN);
}

static inline void yield_some(uint64_t limit)
{
	for (uint64_t n = fake_random(limit + 1); n > 0; n--)
		EXPECT(weft_yield() == 0);
}

/* Virtual time passes: whoever can run does, until it waits. */
static inline void let_all_wait(void)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
}

/* Tasks that wait at a channel. */
enum { QUEUE = 9 };

struct waiting {
	struct weft_chan *chan;
	uint32_t value; /* to send, or what was received */
	int result;
};

static inline int64_t wait_to_send(void *arg)
{
	struct waiting *waiting = *(struct waiting **)arg;

	waiting->result = weft_chan_send(waiting->chan, &waiting->value);
	return 0;
}

static inline int64_t wait_to_recv(void *arg)
{
	struct waiting *waiting = *(struct waiting **)arg;

	waiting->result = weft_chan_recv(waiting->chan, &waiting->value);
	return 0;
}

/* They queue in order: each waits before the next begins. */
static inline void queue_up(struct weft_scope *scope, weft_fn fn,
		     struct weft_chan *chan, struct waiting *waiting,
		     uint32_t count, uint32_t first)
{
	for (uint32_t i = 0; i < count; i++) {
		struct waiting *one = &waiting[i];

		*one = (struct waiting){ chan, first + i, 1 };
		EXPECT(WEFT_GO(scope, fn, one) == 0);
		let_all_wait();
	}
}

/* Something can be done at once: both do it. */
static inline int select_either(struct weft_case *cases, size_t count)
{
	return fake_random(2) ? weft_select(cases, count) :
				weft_try_select(cases, count);
}

/* A task that selects once. */
struct selecting {
	struct weft_case *cases;
	size_t count;
	uint64_t within_ns; /* 0: as long as it takes */
	int result;
};

static inline int64_t select_once(void *arg)
{
	struct selecting *selecting = *(struct selecting **)arg;

	if (!selecting->within_ns) {
		selecting->result = weft_select(selecting->cases,
						selecting->count);
		return 0;
	}
	WEFT_WITHIN(selecting->within_ns)
		selecting->result = weft_select(selecting->cases,
						selecting->count);
	return 0;
}

static inline struct weft_task start_select(struct weft_scope *scope,
					    struct selecting *selecting)
{
	selecting->result = INT32_MIN;
	return start(scope, select_once, &selecting, sizeof(selecting));
}

#endif
