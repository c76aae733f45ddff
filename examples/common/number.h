/* SPDX-License-Identifier: MIT */
#ifndef COMMON_NUMBER_H
#define COMMON_NUMBER_H

/* A number from 1 to `max`, as an option has it; 0: the text is none. */
unsigned number_read(const char *text, unsigned max);

/* The same; a text that is none ends the program, with a sentence and status
 * 2. */
unsigned number_wanted(const char *program, const char *text, unsigned max);

/* For a program with one option: that of --NAME, from 1 to 1000000, or the
 * default.  Arguments that follow begin at optind.  An option that is wrong
 * ends the program, with a sentence and status 2. */
unsigned number_option(int argc, char **argv, const char *name,
		       unsigned by_default);

#endif
