/* SPDX-License-Identifier: MIT */
/*
 * The callbacks with which the session sends, and ends streams, under the lock
 * of the connection.  None of them suspends: output goes into a buffer, which
 * send.c writes afterwards.
 */
#include <string.h>

#include "callbacks.h"
#include "connection.h"
#include "stream.h"

/* A client can make the server reset its streams, which costs as much as resets
 * of its own (CVE-2025-8671).  A refused stream costs less, and a client may
 * have begun many before it saw the limit. */
static const struct allowance_limit resets_limit = { 200, 33 };
static const struct allowance_limit refusals_limit = { 4000, 100 };

static bool resets_too_often(struct connection *connection, uint32_t error)
{
	if (error == NGHTTP2_NO_ERROR)
		return false;
	if (error == NGHTTP2_REFUSED_STREAM)
		return !allowance_use(&connection->refusals, &refusals_limit);
	return !allowance_use(&connection->provoked, &resets_limit);
}

/* An answer that is complete ends its stream, even if the client still sends
 * the content of its request.
 *
 * At the end of the server a first GOAWAY says that there will be a last
 * stream.  When the client answers the PING that follows, it has seen that, and
 * sends no further requests: the second GOAWAY names the last one. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame,
			 void *user_data)
{
	struct connection *connection = user_data;
	int32_t id = frame->hd.stream_id;

	if (frame->hd.type == NGHTTP2_GOAWAY &&
	    frame->goaway.last_stream_id == INT32_MAX)
		nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, NULL);
	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	    resets_too_often(connection, frame->rst_stream.error_code))
		nghttp2_session_terminate_session(session,
						  NGHTTP2_ENHANCE_YOUR_CALM);
	if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	connection->progress_ns = weft_now();
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM &&
	    nghttp2_session_get_stream_remote_close(session, id) == 0)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id,
					  NGHTTP2_NO_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id,
			   uint32_t error_code, void *user_data)
{
	struct stream *stream =
		nghttp2_session_get_stream_user_data(session, stream_id);

	(void)error_code;
	(void)user_data;
	if (stream)
		stream_close(stream);
	return 0;
}

/* Takes what the output has room for. */
static ssize_t on_send(nghttp2_session *session, const uint8_t *data,
		       size_t bytes, int flags, void *user_data)
{
	struct connection *connection = user_data;
	size_t room = OUTPUT_BYTES - connection->output_bytes;

	(void)session;
	(void)flags;
	if (room == 0)
		return NGHTTP2_ERR_WOULDBLOCK;
	if (bytes > room)
		bytes = room;
	memcpy(connection->output + connection->output_bytes, data, bytes);
	connection->output_bytes += bytes;
	return (ssize_t)bytes;
}

void callbacks_set_outgoing(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	nghttp2_session_callbacks_set_on_frame_send_callback(callbacks,
							     on_frame_send);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
							       on_stream_close);
}
