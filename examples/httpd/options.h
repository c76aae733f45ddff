/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_OPTIONS_H
#define HTTPD_OPTIONS_H

#include "server.h"

/* Fills it from the command line.  An error in that ends the program with
 * status 2. */
void options_parse(struct server *server, int argc, char **argv);

#endif
