/* SPDX-License-Identifier: MIT */
#ifndef SOCKS5_ANSWER_H
#define SOCKS5_ANSWER_H

#include <weft/weft.h>

/* The client is connected, by the address of that socket; or it is not, because
 * of that error.  Results as of weft_stream_put(). */
int answer_granted(struct weft_stream *client, int upstream);
int answer_refused(struct weft_stream *client, int error);

#endif
