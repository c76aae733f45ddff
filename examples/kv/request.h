/* SPDX-License-Identifier: MIT */
/*
 * A request: a command and its arguments, parsed where they were received.
 *
 *	*2\r\n$3\r\nGET\r\n$1\r\na\r\n	strings, each with its length
 *	GET a\r\n			or words, as a person types them
 *
 * The parser keeps offsets and no pointers.  So it can go on where it ended
 * when there are more bytes, and all of them may have moved.
 */
#ifndef KV_REQUEST_H
#define KV_REQUEST_H

#include "bytes.h"

enum {
	ARGS_MAX = 1024,
	INLINE_BYTES_MAX = 64 << 10,  /* of words with their line's end */
	REQUEST_BYTES_MAX = 16 << 20, /* of an array */
};

struct request {
	const char *data;  /* set by input_next() */
	const char *error; /* what is wrong, for the client */
	size_t at;	   /* bytes parsed */
	size_t missing;	   /* further ones that must come at least */
	int32_t bulk;	   /* of the argument that is next; -1: not known */
	uint32_t wanted;   /* number of arguments; 0: not known */
	uint32_t count;	   /* of those, the ones that are there */
	struct {
		uint32_t at;
		uint32_t bytes;
	} args[ARGS_MAX];
};

static inline void request_begin(struct request *request)
{
	request->at = 0;
	request->bulk = -1;
	request->wanted = 0;
	request->count = 0;
}

/* Parses on.  data are all bytes since the request's begin.  Returns 1 if it is
 * whole, `at` bytes long; 0 if `missing` more are needed; -EPROTO and an
 * `error`.  A request without arguments has no answer. */
int request_parse(struct request *request, const char *data, size_t bytes);

static inline struct bytes request_arg(const struct request *request,
				       unsigned index)
{
	return (struct bytes){ request->data + request->args[index].at,
			       request->args[index].bytes };
}

#endif
