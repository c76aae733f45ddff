/* SPDX-License-Identifier: MIT */
/* The line of a terminal: everything that calls readline. */
#ifndef PROMPT_LINE_H
#define PROMPT_LINE_H

#include <stdbool.h>
#include <stdio.h>

/* It writes to `out`, which is memory, and calls `flush` before the wait for
 * the rest of a paste, which ends when `signals_fd` is readable. */
void line_begin(FILE *out, int signals_fd, int (*flush)(void));
void line_end(void);

/* Begins a line, if there is none, or shows the one that was there before the
 * process went to the background, where this does nothing. */
void line_show(void);

/* The last line_show() found the process in the background: no keys. */
bool line_is_away(void);

/* Takes a key.  As editor_read() and editor_next(). */
int line_read(char **ret_line);
int line_next(char **ret_line);

/* Around what is printed above it. */
void line_leave(void);
void line_return(void);

/* ^C: the line is dropped. */
void line_drop(void);

/* ^Z: the first restores the modes, the second stops the process.  When it goes
 * on, or after another stop, comes SIGCONT. */
void line_pause(void);
void line_stop(void);
void line_continue(void);

void line_resize(void);

#endif
