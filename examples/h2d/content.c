/* SPDX-License-Identifier: MIT */
/*
 * The content of an answer.  A file is read piece by piece.  The session takes
 * the piece when the client's windows and the output have room for it; when it
 * has taken all, the task reads the next.  If the session comes before that is
 * there, it defers the stream until it is resumed.
 */
#include <errno.h>

#include "../common/http/fields.h"
#include "content.h"

/* Called by the session, under the lock, for the next frame of content. */
ssize_t content_take(nghttp2_session *session, int32_t stream_id, uint8_t *buf,
		     size_t room, uint32_t *ret_flags,
		     nghttp2_data_source *source, void *user_data)
{
	struct stream *stream =
		nghttp2_session_get_stream_user_data(session, stream_id);
	size_t bytes;

	(void)source;
	(void)user_data;
	if (!stream)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (stream->piece_bytes == 0 && stream->left > 0)
		return NGHTTP2_ERR_DEFERRED;
	bytes = stream->piece_bytes < room ? stream->piece_bytes : room;
	memcpy(buf, stream->piece, bytes);
	stream->piece += bytes;
	stream->piece_bytes -= bytes;
	stream->progress_ns = weft_now();
	if (stream->piece_bytes == 0 && stream->left == 0) {
		*ret_flags |= NGHTTP2_DATA_FLAG_EOF;
	} else if (stream->piece_bytes == 0) {
		stream_owe(stream, true);
		weft_notify_one(&stream->wake);
	}
	return (ssize_t)bytes;
}

/* Under the lock.  The session has copied the fields. */
void content_begin(struct stream *stream)
{
	const struct answer *answer = &stream->answer;
	struct text note = { stream->buffer, stream->buffer + BUFFER_BYTES };

	stream->piece = stream->buffer;
	stream->progress_ns = weft_now();
	if (answer_sends_file(answer)) {
		stream->offset = (off_t)answer->range.first;
		stream->left = answer->range.bytes;
	} else if (answer->page) {
		stream->piece = answer->page;
		stream->piece_bytes = answer->page_bytes;
	} else {
		fields_put_note(&note, answer->status);
		stream->piece_bytes = (size_t)(note.at - stream->buffer);
	}
}

enum state {
	STATE_WAITS,
	STATE_TAKEN, /* the piece, and the file has more */
	STATE_OVER,
};

/* A stream of whose piece nothing is taken for too long is reset. */
static enum state look(struct stream *stream, weft_nsec *ret_deadline_ns)
{
	struct connection *connection = stream->connection;
	enum state state = STATE_WAITS;

	connection_lock(connection);
	*ret_deadline_ns = WEFT_NEVER;
	if (stream->piece_bytes > 0)
		*ret_deadline_ns =
			stream->progress_ns + connection->server->idle_ns;
	if (stream->closed) {
		state = STATE_OVER;
	} else if (stream->piece_bytes == 0 && stream->left > 0) {
		state = STATE_TAKEN;
	} else if (weft_now() >= *ret_deadline_ns) {
		stream_reset(stream, NGHTTP2_CANCEL);
		weft_notify_one(&connection->more);
		state = STATE_OVER;
	}
	connection_unlock(connection);
	return state;
}

/* Waits until the piece is taken and the file has more.  Returns false when the
 * stream is over, or the connection ends. */
static bool wait_for_taker(struct stream *stream)
{
	weft_nsec deadline_ns;
	enum state state;
	int r = 0;

	while ((state = look(stream, &deadline_ns)) == STATE_WAITS && r == 0) {
		WEFT_WITHIN_UNTIL (deadline_ns) {
			r = weft_notify_wait(&stream->wake);
			if (r == -ETIMEDOUT && weft_deadline_passed())
				r = 0;
		}
	}
	return state == STATE_TAKEN;
}

/* Returns an error if the file cannot be read, or is no longer as long as was
 * promised. */
static int read_piece(struct stream *stream)
{
	struct connection *connection = stream->connection;
	size_t bytes = stream->left < BUFFER_BYTES ? (size_t)stream->left :
						     BUFFER_BYTES;
	int r = weft_pread_all(stream->answer.file.fd, stream->buffer, bytes,
			       stream->offset, NULL);

	connection_lock(connection);
	/* After an error some of the file is left: the content has no end. */
	if (r == 0) {
		stream->left -= bytes;
		stream->offset += (off_t)bytes;
		stream->piece = stream->buffer;
		stream->piece_bytes = bytes;
		stream->progress_ns = weft_now();
		stream_owe(stream, false);
		nghttp2_session_resume_data(connection->session, stream->id);
	} else if (!stream->closed) {
		stream_reset(stream, NGHTTP2_INTERNAL_ERROR);
	}
	connection_unlock(connection);
	return r;
}

void content_feed(struct stream *stream)
{
	int r = 0;

	/* Otherwise the fields go with the first piece of the file. */
	if (stream->left == 0)
		weft_notify_one(&stream->connection->more);
	while (r == 0 && wait_for_taker(stream)) {
		r = read_piece(stream);
		weft_notify_one(&stream->connection->more);
	}
}
