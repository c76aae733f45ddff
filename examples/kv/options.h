/* SPDX-License-Identifier: MIT */
#ifndef KV_OPTIONS_H
#define KV_OPTIONS_H

struct options {
	const char *address;
	unsigned workers; /* 0: one per CPU */
	unsigned grace_ms;
};

/* Ends the process if the arguments are wrong. */
void options_parse(struct options *options, int argc, char **argv);

#endif
