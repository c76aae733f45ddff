/* SPDX-License-Identifier: MIT */
/*
 * The directory that a server serves, and where it listens.
 */
#ifndef HTTP_SITE_H
#define HTTP_SITE_H

#include <stdbool.h>

#include "secure.h"

struct site_opts {
	const char *directory;
	const char *address;
	const char *cert; /* of TLS, and its key; or NULL */
	const char *key;  /* NULL: in the same file */
	const char *alpn; /* of TLS */
	unsigned workers; /* 0: one per CPU */
	unsigned connections_max;
	bool verbose; /* a line for each request, on stderr */
};

/* Once the server runs, only its first task writes it: the listener, at the
 * end. */
struct site {
	struct site_opts opts;
	int listener;
	int root_fd;		       /* the directory that is served */
	struct secure_context *secure; /* NULL: without TLS */
};

/* Prints a sentence about a failure on stderr, and returns 1. */
int site_fail(const char *what, const char *name, int error);

/* Opens what its options name, before the runtime begins, and prints where it
 * listens.  Returns false, and has printed why, if it fails: the program ends
 * then. */
bool site_open(struct site *site);

/* Serves: runs the first task, with the workers of the options.  Returns the
 * task's result, or an error of weft_run(). */
int64_t site_run(struct site *site, weft_fn first, void *arg);

/* Closes what is open, after the runtime's end. */
void site_close(struct site *site);

#endif
