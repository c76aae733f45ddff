/* SPDX-License-Identifier: MIT */
/*
 * Values - the values that models send through channels: each is received once,
 * or its sender knows that it was not sent.
 */
#ifndef WEFT_TESTS_MODEL_VALUES_H
#define WEFT_TESTS_MODEL_VALUES_H

#include "tests/model/waits.h"

/* They are numbered from 1. */
enum { VALUES = 4 };

/* By value: its sender, and what the sender wrote before. */
static int64_t payload[VALUES];
static unsigned sender_of[VALUES];
/* The fate of each value. */
static bool was_sent[VALUES];
static bool was_dropped[VALUES];
static unsigned received[VALUES];
/* Each thread's own: the values that it has received. */
static bool mine[MODEL_THREADS][VALUES];

static void values_setup(void)
{
	memset(payload, 0, sizeof(payload));
	memset(sender_of, 0, sizeof(sender_of));
	memset(was_sent, 0, sizeof(was_sent));
	memset(was_dropped, 0, sizeof(was_dropped));
	memset(received, 0, sizeof(received));
	memset(mine, 0, sizeof(mine));
	model_name(payload, "payload");
	model_name(received, "received");
}

/* Called before it is sent. */
static void value_make(uint64_t value)
{
	payload[value] = 5;
	sender_of[value] = model_self();
}

/* Called when it was received. */
static void value_take(uint64_t value)
{
	bool *had = mine[model_self()];

	model_assert(value > 0 && value < VALUES, "it is a value");
	model_assert(payload[value] == 5, "what came before it is seen");
	for (uint64_t later = value + 1; later < VALUES; later++)
		model_assert(!had[later] ||
				     sender_of[later] != sender_of[value],
			     "values of one sender stay in order");
	had[value] = true;
	received[value]++;
}

/* Checks CH1 to CH3 in runtime/sync/chan.h, when nothing is under way.  Returns
 * how often the channel, with room for one, holds that value. */
static unsigned chan_holds(const struct weft__chan *c, uint64_t value)
{
	model_assert(queue_empty(&c->senders) && queue_empty(&c->receivers),
		     "nobody waits");
	return c->count && *(const uint64_t *)(const void *)c->room == value;
}

/* Checks that no value is missing; channels hold it `held` times. */
static void value_check(uint64_t value, unsigned held)
{
	model_assert(received[value] + was_dropped[value] + held ==
			     was_sent[value],
		     "what was sent is received once");
}

/* A call with a value, in a frame of its own. */
#define VALUE_CALL(name, expression)                               \
	static __attribute__((noinline)) int name(uint64_t *value) \
	{                                                          \
		int r = (expression);                              \
                                                                   \
		return r;                                          \
	}

#endif
