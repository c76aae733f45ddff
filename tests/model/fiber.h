/* SPDX-License-Identifier: MIT */
/*
 * Fiber - a model thread's stack, and the switch to it.
 *
 * It is not runtime/stack/context.h: the checker must not depend on what it
 * checks.
 */
#ifndef WEFT_TESTS_MODEL_FIBER_H
#define WEFT_TESTS_MODEL_FIBER_H

#include <stddef.h>

struct fiber {
	/* Stack pointer while another fiber runs. */
	void *sp;
	/* Highest address of the stack; NULL before fiber_open(). */
	char *top;
};

/* Maps the stack, with a guard page below; kept until the program ends. */
void fiber_open(struct fiber *fiber);

/* Makes the next switch to fiber call entry, on an empty stack. */
void fiber_reset(struct fiber *fiber, void (*entry)(void));

/* Saves the registers in from, and continues to. */
void fiber_switch(struct fiber *from, const struct fiber *to);

#endif
