/* SPDX-License-Identifier: MIT */
/*
 * The two messages of a client.
 *
 *	greeting	05, n, n methods
 *	request		05, command, 00, kind of address, address, port
 */
#ifndef SOCKS5_REQUEST_H
#define SOCKS5_REQUEST_H

#include "target.h"

/* Reads the greeting, and answers that no authentication is needed, or that no
 * method is accepted.  Suspends.  Returns 0, -EPROTO (it is no client of this
 * protocol), -EACCES (it knows no such method; it was answered), or an error of
 * the stream. */
int request_greet(struct weft_stream *client);

/* Reads the request.  Suspends.  Returns 0; an error for answer_refused():
 * -EOPNOTSUPP (another command than CONNECT) or -EAFNOSUPPORT (an unknown kind
 * of address, or a name that cannot be one); -EPROTO; or an error of the
 * stream. */
int request_read(struct weft_stream *client, struct target *ret_target);

#endif
