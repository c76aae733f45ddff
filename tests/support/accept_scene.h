/* SPDX-License-Identifier: MIT */
/*
 * Helpers that the suites that accept share.
 *
 * They make clients that connect, count the connections in a backlog, use up
 * the descriptors of the process or lower their limit, and find the client that
 * an accepted connection belongs to.
 */
#ifndef WEFT_TESTS_SUPPORT_ACCEPT_SCENE_H
#define WEFT_TESTS_SUPPORT_ACCEPT_SCENE_H

#include <netinet/tcp.h>

#include "io/request/reactor.h"
#include "tests/support/io_kit.h"

/* Valgrind plays the limit of descriptors, and the kernel sees another. */
#ifdef WEFT_VALGRIND
enum { LIMIT_IS_PLAYED = true };
#else
enum { LIMIT_IS_PLAYED = false };
#endif

int connect_to(const char *text);

/* How many tasks wait for a free descriptor? */
uint32_t starving(void);

/* How many connections are in the listener's backlog? */
unsigned backlog_of(int listener);

void take_all_fds(int *fds, int *count);

void limit_fds(rlim_t limit);

/* Whose connection it is: taken out, -1 stays.  They come in order. */
int client_of(int *clients, int count, const struct weft_addr *peer);

#endif
