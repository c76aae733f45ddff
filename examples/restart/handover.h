/* SPDX-License-Identifier: MIT */
#ifndef RESTART_HANDOVER_H
#define RESTART_HANDOVER_H

#include <weft/weft.h>

/* The sockets that go from one process to the next. */
enum { CLIENTS, SUCCESSORS, SOCKETS };

/* Asks the server that listens at an address for its sockets.  Returns a
 * connection to it, for handover_ready(), or -ECONNREFUSED: there is none. */
int handover_take(const char *address, int ret_sockets[SOCKETS]);

/* Tells it that this process takes connections, and closes the connection. */
int handover_ready(int old);

/* Gives the sockets to the next process, which has connected, and closes the
 * connection.  Returns 0 when that one takes connections. */
int handover_give(int next, const int sockets[SOCKETS]);

#endif
