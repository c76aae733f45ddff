/* SPDX-License-Identifier: MIT */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

/* A number from 1 to `max`, as an option has it; 0: the text is none. */
unsigned number_read(const char *text, unsigned max);

#endif
