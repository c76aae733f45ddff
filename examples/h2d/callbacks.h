/* SPDX-License-Identifier: MIT */
#ifndef H2D_CALLBACKS_H
#define H2D_CALLBACKS_H

#include "server.h"

/* Sets the callbacks and the options that the sessions of a server have.
 * Returns false if there is no memory; free them in either case. */
bool callbacks_new(struct server *server);
void callbacks_free(struct server *server);

/* Those of incoming.c and of outgoing.c. */
void callbacks_set_incoming(nghttp2_session_callbacks *callbacks);
void callbacks_set_outgoing(nghttp2_session_callbacks *callbacks);

#endif
