/* SPDX-License-Identifier: MIT */
#ifndef PROMPT_HOOKS_H
#define PROMPT_HOOKS_H

#include <stdbool.h>

/* Before readline begins. */
void hooks_set(int signals_fd, int (*output_flush)(void));

/* In the background the terminal is another's: no modes are set or restored,
 * and no key may be taken. */
bool hooks_in_foreground(void);

/* Takes a key that is there, for readline.  So readline meets no signal, which
 * it would take for the end of the input, where it expects a command.
 * Suspends.  Returns 1; 0: there is none; or an error, as the next call. */
int hooks_key_take(void);

/* Of the last key; -ENODATA: the input has ended. */
int hooks_error(void);

#endif
