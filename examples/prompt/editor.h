/* SPDX-License-Identifier: MIT */
/* The line that is edited, and what is printed above it.  One task makes all
 * these calls. */
#ifndef PROMPT_EDITOR_H
#define PROMPT_EDITOR_H

#include <signal.h>
#include <stdbool.h>

/* Begins with readline, or, with NULL, without: lines are read as they are.
 * Returns 0 or an error; editor_end() follows in any case. */
int editor_begin(const sigset_t *signals);

/* Restores the terminal, and writes what is left. */
void editor_end(void);

/* Shows the line, and writes all that was printed.  Suspends.  0 or an
 * error. */
int editor_show(bool with_line);

/* Prints a line above it. */
__attribute__((format(printf, 1, 2))) void editor_print(const char *format,
							...);

/* Whether input may be taken: not in the background of a terminal.  No event
 * ends that with some shells: look again and again. */
bool editor_may_read(void);

/* Takes input that is there.  Suspends.  Returns 1, and a line that the caller
 * frees; 0: there is none yet; -ENODATA at the end; or an error. */
int editor_read(char **ret_line);

/* The next of the lines that came together, as those of a macro do.  Does not
 * suspend.  Results as above; 0: there is no further one. */
int editor_next(char **ret_line);

/* -1: none.  When they are readable, call the next two.  0 or an error. */
int editor_signals_fd(void);
int editor_size_fd(void);
int editor_signal(void);
int editor_resize(void);

#endif
