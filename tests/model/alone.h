/* SPDX-License-Identifier: MIT */
/*
 * A runtime that is alone in its process, in place of io/request/reactor.c.
 */
#ifndef WEFT_TESTS_MODEL_ALONE_H
#define WEFT_TESTS_MODEL_ALONE_H

#include "io/request/reactor.h"

weft__atomic(uint32_t) weft__reactors_count;

void weft__reactor_join(struct weft__reactor *joins)
{
	(void)joins;
}

void weft__reactor_leave(struct weft__reactor *leaves)
{
	(void)leaves;
}

void weft__reactors_forget(void)
{
}

bool weft__reactor_is_elsewhere_slow(const struct weft__reactor *closes, int fd)
{
	(void)closes, (void)fd;
	return false;
}

#endif
