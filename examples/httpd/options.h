/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_OPTIONS_H
#define HTTPD_OPTIONS_H

#include "server.h"

struct options {
	const char *directory;
	const char *address;
	unsigned workers; /* 0: one a CPU */
	struct server server;
};

/* Reads the command line.  A wrong one ends the program with status 2. */
void options_parse(struct options *options, int argc, char **argv);

#endif
