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

void book_sent(struct book *book, uint32_t value);

void book_got(struct book *book, uint32_t value);

/* A value that no task has sent. */
uint32_t book_value(struct book *book);

void book_drain(struct book *book, struct weft_chan *chan);

/* Each value that was sent came, and nothing else. */
void book_close(const struct book *book);

/* A channel for uint32_t with so much room. */
void chan_begin(struct weft_chan *chan, uint32_t *room, size_t capacity);

/* Nobody waits at it: neither side is taken up on an offer. */
void chan_is_forsaken(struct weft_chan *chan);

void yield_some(uint64_t limit);

/* Virtual time passes: whoever can run does, until it waits. */
void let_all_wait(void);

/* Tasks that wait at a channel. */
enum { QUEUE = 9 };

struct waiting {
	struct weft_chan *chan;
	uint32_t value; /* to send, or what was received */
	int result;
};

int64_t wait_to_send(void *arg);

int64_t wait_to_recv(void *arg);

/* They queue in order: each waits before the next begins. */
void queue_up(struct weft_scope *scope, weft_fn fn, struct weft_chan *chan,
	      struct waiting *waiting, uint32_t count, uint32_t first);

/* Something can be done at once: both do it. */
int select_either(struct weft_case *cases, size_t count);

/* A task that selects once. */
struct selecting {
	struct weft_case *cases;
	size_t count;
	uint64_t within_ns; /* 0: as long as it takes */
	int result;
};

struct weft_task start_select(struct weft_scope *scope,
			      struct selecting *selecting);

#endif
