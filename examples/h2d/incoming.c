/* SPDX-License-Identifier: MIT */
/*
 * The callbacks that report what the client has sent, under the lock of the
 * connection.  None of them suspends: a request that is complete is marked, and
 * receive.c starts its task afterwards.
 */
#include "callbacks.h"
#include "connection.h"
#include "stream.h"

/* A request that is soon reset costs the server more than the client
 * (CVE-2023-44487), and the limit of streams does not count it. */
static const struct allowance_limit resets_limit = { 200, 33 };
/* Frames without use for a request, and fields of trailers, which are as
 * useless; the session answers some of them (CVE-2019-9512, CVE-2019-9515). */
static const struct allowance_limit others_limit = { 1000, 100 };
/* A connection whose client sends such a header is ended. */
#define HEADER_BYTES_ENDLESS (8 * HEADER_BYTES_MAX)

static bool is_useless(const nghttp2_frame_hd *hd)
{
	switch (hd->type) {
	case NGHTTP2_HEADERS:
	case NGHTTP2_RST_STREAM: /* has its own limit */
	case NGHTTP2_GOAWAY:
	case NGHTTP2_WINDOW_UPDATE:
		return false;
	case NGHTTP2_SETTINGS:
	case NGHTTP2_PING:
		return !(hd->flags & NGHTTP2_FLAG_ACK);
	case NGHTTP2_DATA:
		return hd->length == 0 &&
		       !(hd->flags & NGHTTP2_FLAG_END_STREAM);
	default:
		return true;
	}
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd,
			  void *user_data)
{
	struct connection *connection = user_data;

	(void)session;
	if (hd->type == NGHTTP2_RST_STREAM &&
	    !allowance_use(&connection->resets, &resets_limit))
		connection->flooded = true;
	if (is_useless(hd) &&
	    !allowance_use(&connection->others, &others_limit))
		connection->flooded = true;
	return 0;
}

static bool begins_request(const nghttp2_frame *frame)
{
	return frame->hd.type == NGHTTP2_HEADERS &&
	       frame->headers.cat == NGHTTP2_HCAT_REQUEST;
}

static int on_begin_headers(nghttp2_session *session,
			    const nghttp2_frame *frame, void *user_data)
{
	struct stream *stream;

	if (!begins_request(frame))
		return 0;
	stream = stream_new(user_data, frame->hd.stream_id);
	if (!stream)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return nghttp2_session_set_stream_user_data(
		session, frame->hd.stream_id, stream);
}

/* The server uses no trailers.  Each field counts: one of 4 KB may have come as
 * one byte. */
static int drop_trailer(struct connection *connection)
{
	if (allowance_use(&connection->others, &others_limit))
		return 0;
	connection->flooded = true;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
		     const uint8_t *name, size_t name_bytes,
		     const uint8_t *value, size_t value_bytes, uint8_t flags,
		     void *user_data)
{
	struct connection *connection = user_data;
	struct stream *stream;

	(void)flags;
	if (!begins_request(frame))
		return drop_trailer(connection);
	stream = nghttp2_session_get_stream_user_data(session,
						      frame->hd.stream_id);
	if (!stream)
		return 0;
	stream_add_field(stream,
			 (struct span){ (const char *)name, name_bytes },
			 (struct span){ (const char *)value, value_bytes });
	if (stream->header_bytes <= HEADER_BYTES_ENDLESS)
		return 0;
	connection->flooded = true;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame,
			 void *user_data)
{
	struct connection *connection = user_data;
	struct stream *stream;

	if (begins_request(frame)) {
		stream = nghttp2_session_get_stream_user_data(
			session, frame->hd.stream_id);
		if (stream) {
			stream->complete = true;
			stream_owe(stream, true);
		}
		connection->progress_ns = weft_now();
	}
	if (connection->draining && frame->hd.type == NGHTTP2_PING &&
	    frame->hd.flags & NGHTTP2_FLAG_ACK)
		nghttp2_submit_goaway(
			session, NGHTTP2_FLAG_NONE,
			nghttp2_session_get_last_proc_stream_id(session),
			NGHTTP2_NO_ERROR, NULL, 0);
	return 0;
}

/* The content of a request is dropped.  The client may go on to send that of
 * others, but no more of this one than a first window. */
static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id,
		   const uint8_t *data, size_t bytes, void *user_data)
{
	(void)flags;
	(void)stream_id;
	(void)data;
	(void)user_data;
	return nghttp2_session_consume_connection(session, bytes);
}

void callbacks_set_incoming(nghttp2_session_callbacks *callbacks)
{
	nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks,
							      on_begin_frame);
	nghttp2_session_callbacks_set_on_begin_headers_callback(
		callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
							     on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
								  on_data);
}
