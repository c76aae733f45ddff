/* SPDX-License-Identifier: MIT */
/* The command line of a server of files. */
#ifndef HTTP_OPTIONS_H
#define HTTP_OPTIONS_H

#include "site.h"

/* An option that one server alone has: a number, which keeps its default. */
struct site_option {
	const char *name;
	unsigned *number;
};

/* The properties in which the servers differ. */
struct site_program {
	const char *usage;	  /* the text above the options */
	const char *own_usage;	  /* a line or more for each own option */
	const char *alpn;	  /* of TLS */
	unsigned connections_max; /* the default */
	unsigned own_count;
	struct site_option own[4];
};

/* Fills `opts` from the command line.  An error in it ends the program with
 * status 2. */
void site_opts_parse(struct site_opts *opts, const struct site_program *program,
		     int argc, char **argv);

#endif
