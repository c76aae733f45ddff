/* SPDX-License-Identifier: MIT */
/*
 * Sending and receiving, for calls that have looked the descriptor up.
 */
#ifndef WEFT_IO_SEND_RECV_H
#define WEFT_IO_SEND_RECV_H

#include "io/request/call.h"

/* Carries out a RECV that may wait, without flags. */
ssize_t weft__receive(struct weft__fd *entry, struct weft__request *request);

/* Carries out a SEND or SENDMSG that may wait; changes its flags. */
ssize_t weft__transmit(struct weft__worker *worker, struct weft__fd *entry,
		       struct weft__request *request);

#endif
