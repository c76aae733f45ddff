/* SPDX-License-Identifier: MIT */
#ifndef H2D_CONTENT_H
#define H2D_CONTENT_H

#include "stream.h"

/* Begins the content of an answer whose fields the session has copied.  Called
 * under the lock. */
void content_begin(struct stream *stream);

/* The callback of the session for the next frame of content. */
ssize_t content_take(nghttp2_session *session, int32_t stream_id, uint8_t *buf,
		     size_t room, uint32_t *ret_flags,
		     nghttp2_data_source *source, void *user_data);

/* Reads the file, piece by piece, until the stream is closed.  Suspends. */
void content_feed(struct stream *stream);

#endif
