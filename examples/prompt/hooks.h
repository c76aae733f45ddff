/* SPDX-License-Identifier: MIT */
#ifndef PROMPT_HOOKS_H
#define PROMPT_HOOKS_H

#include <stdbool.h>

/* Before readline begins. */
void hooks_set(int signals_fd);

/* May a key be read without a wait? */
bool hooks_has_key(void);

/* Of the last key; -ENODATA: the input has ended. */
int hooks_error(void);

#endif
