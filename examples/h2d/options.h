/* SPDX-License-Identifier: MIT */
#ifndef H2D_OPTIONS_H
#define H2D_OPTIONS_H

#include "server.h"

struct options {
	struct site_opts site;
	unsigned workers; /* 0: one per CPU */
	struct server server;
};

/* Reads the command line.  An error in it ends the program with status 2. */
void options_parse(struct options *options, int argc, char **argv);

#endif
