/* SPDX-License-Identifier: MIT */
#ifndef PROMPT_PLAIN_H
#define PROMPT_PLAIN_H

/* Takes input that is no terminal's.  As editor_read(); -EMSGSIZE: a line is
 * too long, and was dropped. */
int plain_read(char **ret_line);

#endif
