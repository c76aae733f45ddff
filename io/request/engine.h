/* SPDX-License-Identifier: MIT */
/*
 * Engine - what carries the requests of a runtime: io_uring or epoll, and why.
 *
 * The variable WEFT_ENGINE comes before the program's option: it is for whoever
 * runs the program, and for its tests.  Without either, io_uring is tried, by
 * setting a ring up and entering it, and epoll is used where the system refuses
 * that.  A lack of memory or descriptors is no refusal.
 */
#ifndef WEFT_IO_REQUEST_ENGINE_H
#define WEFT_IO_REQUEST_ENGINE_H

#include <weft/runtime.h>

struct weft__engine {
	unsigned engine; /* first what is asked for, then what is used */
	const char *why; /* static */
};

/* Returns what is asked for, and reads WEFT_MASK (io/os/mask.h).  0, or
 * -EINVAL: a variable has a name that is unknown, which is said on stderr. */
int weft__engine_asked(const struct weft_opts *opts,
		       struct weft__engine *ret_engine);

/* Will a runtime with the default options probably use epoll?  For sockets that
 * are made before it starts. */
bool weft__engine_is_likely_epoll(void);

/* Opening the rings of an engine gave r; refusal: why io_uring is not used, or
 * NULL. */
void weft__engine_opened(struct weft__engine *engine, unsigned used, int r,
			 const char *refusal);

#endif
