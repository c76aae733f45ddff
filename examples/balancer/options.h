/* SPDX-License-Identifier: MIT */
#ifndef BALANCER_OPTIONS_H
#define BALANCER_OPTIONS_H

#include "server.h"

struct options {
	const char *address;
	unsigned workers; /* 0: one per CPU */
};

/* Fills the options and what they say about the server.  Ends the process if
 * they are wrong. */
void options_parse(struct options *options, struct server *server, int argc,
		   char **argv);

#endif
