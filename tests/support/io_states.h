/* SPDX-License-Identifier: MIT */
/*
 * States in which a call may be interrupted, what is done to it, and what it is
 * to return then.
 */
#ifndef WEFT_TESTS_SUPPORT_IO_STATES_H
#define WEFT_TESTS_SUPPORT_IO_STATES_H

#include "tests/support/io_calls.h"

/* The block that is around the call. */
enum guard {
	PLAIN,
	HELD,		/* it goes on when the test lets it */
	WITHIN,		/* a deadline that comes while it waits */
	ENCLOSED,	/* the same, of a block around its own */
	INHERITED,	/* the same, of the task that started it */
	NO_TIME,	/* a block of length 0 */
	TOO_LATE,	/* the same, as a call before it has found */
	ENCLOSED_LATE,
	INHERITED_LATE,
	SHIELD,
	SHIELD_WITHIN,	/* a shield inside a block whose deadline comes */
};

enum act {
	NOTHING,
	CANCEL,
	CANCEL_SCOPE,
	FAIL,	 /* another task of its group does */
	CLOSE,
	SHUT,
	LET_GO,
	LET_SOME, /* part of what it waits for; until it has had that */
	PASS,	 /* until its deadline */
	STILL,	 /* does it wait? */
	MADE,	 /* until it has been made */
};

enum { ACTS = 4 };

#define DEADLINE_NS WEFT_MS(1)

/* The result is that of a call on what was shut down. */
enum { AS_SHUT = -10000 };

struct state {
	const char *name;
	enum guard guard;
	bool ready;	    /* let go before it is made */
	enum act before;
	enum act acts[ACTS]; /* once it waits, without a pause */
	bool either;	    /* or it succeeds */
	int result, again, after; /* it, the next in its block, and behind */
	unsigned only, unless;	  /* for calls that are this */
};

#define EC -ECANCELED
#define ET -ETIMEDOUT

static const struct state states[] = {
	{ "cancelled before, ready", PLAIN, true, CANCEL, { 0 }, false, EC, EC,
	  EC, 0, 0 },
	{ "cancelled before", PLAIN, false, CANCEL, { 0 }, false, EC, EC, EC,
	  0, READY | EXEMPT },
	{ "too late, ready", TOO_LATE, true, NOTHING, { 0 }, false, ET, ET, 0,
	  0, 0 },
	{ "too late", TOO_LATE, false, NOTHING, { 0 }, false, ET, ET, 0, 0,
	  READY | EXEMPT },
	{ "too late for a block around, ready", ENCLOSED_LATE, true, NOTHING,
	  { 0 }, false, EC, EC, 0, 0, 0 },
	{ "too late for its parent, ready", INHERITED_LATE, true, NOTHING,
	  { 0 }, false, EC, EC, EC, 0, 0 },
	{ "no time", NO_TIME, false, NOTHING, { 0 }, false, ET, ET, 0, 0,
	  READY | EXEMPT },
	{ "no time, ready", NO_TIME, true, NOTHING, { 0 }, true, ET, ET, 0, 0,
	  EXEMPT },
	{ "closed before", PLAIN, false, CLOSE, { 0 }, false, -EBADF, -EBADF,
	  0, ON_FD, 0 },
	{ "shut down before", PLAIN, false, SHUT, { 0 }, false, AS_SHUT,
	  AS_SHUT, 0, 0, 0 },

	{ "cancelled", PLAIN, false, NOTHING, { CANCEL }, false, EC, EC, EC, 0,
	  READY },
	{ "scope cancelled", PLAIN, false, NOTHING, { CANCEL_SCOPE }, false,
	  EC, EC, EC, 0, READY },
	{ "group failed", PLAIN, false, NOTHING, { FAIL }, false, EC, EC, EC,
	  0, READY },
	{ "deadline", WITHIN, false, NOTHING, { 0 }, false, ET, ET, 0, 0,
	  READY },
	{ "deadline of a block around", ENCLOSED, false, NOTHING, { 0 }, false,
	  EC, EC, 0, 0, READY },
	{ "deadline of its parent", INHERITED, false, NOTHING, { 0 }, false,
	  EC, EC, EC, 0, READY },
	{ "closed", PLAIN, false, NOTHING, { CLOSE }, false, EC, -EBADF, 0,
	  ON_FD, READY },
	{ "cancelled, then closed", PLAIN, false, NOTHING, { CANCEL, CLOSE },
	  false, EC, EC, EC, ON_FD, READY },
	{ "shut down", PLAIN, false, NOTHING, { SHUT }, false, AS_SHUT,
	  AS_SHUT, 0, 0, READY },
	{ "cancelled and shut down", PLAIN, false, NOTHING, { CANCEL, SHUT },
	  true, EC, EC, EC, 0, READY },
	{ "shielded, then closed", SHIELD, false, NOTHING, { CLOSE }, false,
	  EC, -EBADF, 0, ON_FD, READY },

	{ "let go, then cancelled", PLAIN, false, NOTHING, { LET_GO, CANCEL },
	  true, EC, EC, EC, 0, READY | SLOW },
	{ "cancelled, then let go", PLAIN, false, NOTHING, { CANCEL, LET_GO },
	  true, EC, EC, EC, 0, READY | SLOW },
	{ "let go, then closed", PLAIN, false, NOTHING, { LET_GO, CLOSE },
	  true, EC, -EBADF, 0, ON_FD, READY | SLOW | ONCE },
	{ "let go, then shut down", PLAIN, false, NOTHING, { LET_GO, SHUT },
	  true, AS_SHUT, AS_SHUT, 0, 0, READY },
	{ "let go at its deadline", WITHIN, false, NOTHING, { PASS, LET_GO },
	  true, ET, ET, 0, 0, READY | SLOW | CLOCK },

	{ "done, then cancelled", HELD, true, NOTHING,
	  { MADE, CANCEL }, false, 0, EC, EC, 0, 0 },
	{ "let go and done, then cancelled", HELD, false, NOTHING,
	  { LET_GO, MADE, CANCEL }, false, 0, EC, EC, 0,
	  READY | SLOW },
	{ "done, then closed", HELD, true, NOTHING, { MADE, CLOSE },
	  false, 0, -EBADF, 0, ON_FD, ONCE | EXEMPT },

	{ "shielded, cancelled before", SHIELD, false, CANCEL,
	  { STILL, LET_GO }, false, 0, 0, EC, 0, READY | SLOW },
	{ "shielded, cancelled", SHIELD, false, NOTHING,
	  { CANCEL, STILL, LET_GO }, false, 0, 0, EC, 0, READY | SLOW },
	{ "shielded from a deadline", SHIELD_WITHIN, false, NOTHING,
	  { PASS, STILL, LET_GO }, false, 0, 0, ET, 0, READY | SLOW },

	{ "partly done, then cancelled", PLAIN, false, NOTHING,
	  { LET_SOME, CANCEL }, false, EC, EC, EC, LOOPS, 0 },
	{ "partly done, then deadline", WITHIN, false, NOTHING, { LET_SOME },
	  false, ET, ET, 0, LOOPS, 0 },
	{ "partly done, then closed", PLAIN, false, NOTHING,
	  { LET_SOME, CLOSE }, false, EC, -EBADF, 0, LOOPS, 0 },
	{ "partly done, then shut down", PLAIN, false, NOTHING,
	  { LET_SOME, SHUT }, false, AS_SHUT, AS_SHUT, 0, LOOPS, 0 },

	{ "runtime stopped", PLAIN, false, NOTHING, { 0 }, false, EC, EC, EC,
	  0, READY },
};

enum { STATES = sizeof(states) / sizeof(states[0]), STOPPED = STATES - 1 };

static inline bool does(const struct state *state, enum act act)
{
	for (int i = 0; i < ACTS; i++)
		if (state->acts[i] == act)
			return true;
	return state->before == act;
}

static inline bool goes_with(const struct state *state, const struct call *call)
{
	if ((call->is & state->only) != state->only ||
	    (call->is & state->unless))
		return false;
	if (does(state, SHUT) && !is_shut(call))
		return false;
	/* A job that has begun goes on, whatever comes later. */
	return !(call->is & BEGUN && call->make == make_blocking_begun &&
		 (state->guard == WITHIN || state->guard == ENCLOSED ||
		  state->guard == INHERITED || state->guard == NO_TIME));
}

#endif
