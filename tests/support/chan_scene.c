/* SPDX-License-Identifier: MIT */
#include "tests/support/chan_scene.h"

void book_sent(struct book *book, uint32_t value)
{
	EXPECT(value < book->next && book->sent[value] == 0);
	book->sent[value]++;
}

void book_got(struct book *book, uint32_t value)
{
	EXPECT(value < book->next && book->got[value] == 0);
	book->got[value]++;
}

uint32_t book_value(struct book *book)
{
	EXPECT(book->next < BOOK_MAX);
	return book->next++;
}

void book_drain(struct book *book, struct weft_chan *chan)
{
	uint32_t value;
	int r;

	while ((r = weft_chan_try_recv(chan, &value)) == 0)
		book_got(book, value);
	EXPECT(r == -EAGAIN || r == -EPIPE);
}

void book_close(const struct book *book)
{
	for (uint32_t i = 0; i < book->next; i++)
		ck_assert_msg(book->sent[i] == book->got[i],
			      "value %u was sent %u times and came %u times", i,
			      book->sent[i], book->got[i]);
}

void chan_begin(struct weft_chan *chan, uint32_t *room, size_t capacity)
{
	EXPECT(capacity <= ROOM_MAX);
	EXPECT(weft_chan_init(chan, room, capacity, sizeof(*room)) == 0);
}

void chan_is_forsaken(struct weft_chan *chan)
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

void yield_some(uint64_t limit)
{
	for (uint64_t n = fake_random(limit + 1); n > 0; n--)
		EXPECT(weft_yield() == 0);
}

void let_all_wait(void)
{
	EXPECT(weft_sleep(WEFT_MS(1)) == 0);
}

int64_t wait_to_send(void *arg)
{
	struct waiting *waiting = *(struct waiting **)arg;

	waiting->result = weft_chan_send(waiting->chan, &waiting->value);
	return 0;
}

int64_t wait_to_recv(void *arg)
{
	struct waiting *waiting = *(struct waiting **)arg;

	waiting->result = weft_chan_recv(waiting->chan, &waiting->value);
	return 0;
}

void queue_up(struct weft_scope *scope, weft_fn fn, struct weft_chan *chan,
	      struct waiting *waiting, uint32_t count, uint32_t first)
{
	for (uint32_t i = 0; i < count; i++) {
		struct waiting *one = &waiting[i];

		*one = (struct waiting){ chan, first + i, 1 };
		EXPECT(WEFT_GO(scope, fn, one) == 0);
		let_all_wait();
	}
}

int select_either(struct weft_case *cases, size_t count)
{
	return fake_random(2) ? weft_select(cases, count) :
				weft_try_select(cases, count);
}

static int64_t select_once(void *arg)
{
	struct selecting *selecting = *(struct selecting **)arg;

	if (!selecting->within_ns) {
		selecting->result =
			weft_select(selecting->cases, selecting->count);
		return 0;
	}
	WEFT_WITHIN (selecting->within_ns)
		selecting->result =
			weft_select(selecting->cases, selecting->count);
	return 0;
}

struct weft_task start_select(struct weft_scope *scope,
			      struct selecting *selecting)
{
	selecting->result = INT32_MIN;
	return start(scope, select_once, &selecting, sizeof(selecting));
}
