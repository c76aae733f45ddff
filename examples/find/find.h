/* SPDX-License-Identifier: MIT */
#ifndef FIND_H
#define FIND_H

#include <stdbool.h>
#include <sys/stat.h>
#ifndef STATX_TYPE
#include <linux/stat.h> /* musl before 1.2.4 has no struct statx */
#endif

#include <weft/weft.h>

/* The command line.  All tests must hold. */
struct find_options {
	const char *name;  /* a pattern of fnmatch(3); or NULL */
	char type;	   /* a letter of -type; or 0 */
	char size_sign;	   /* +, - or =; 0: any size */
	uint64_t size;	   /* in units of */
	uint64_t size_unit;
	bool has_newer;
	int64_t newer_s, newer_ns;
	char end; /* behind each path */
	char **roots;
	struct weft_walk_opts walk;
};

/* Reads the command line; ends the process if it is wrong. */
void find_options_read(struct find_options *ret_options, char **argv);

/* Do all tests hold for the entry? */
bool find_matches(const struct find_options *options,
		  const struct weft_walk_entry *entry);

#endif
