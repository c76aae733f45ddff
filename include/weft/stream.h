/* SPDX-License-Identifier: MIT */
/*
 * Streams: connections whose receiving weft does ahead, into buffers of its
 * own.
 *
 *	struct weft_stream stream = WEFT_STREAM_INIT(fd);
 *	const void *data;
 *	ssize_t n;
 *
 *	while ((n = weft_stream_peek(&stream, &data)) > 0) {
 *		weft_stream_put(&stream, data, (size_t)n);
 *		weft_stream_skip(&stream, (size_t)n);
 *	}
 *	weft_stream_close(&stream);
 *
 * weft_recv() asks the kernel anew for each piece, and needs a buffer while it
 * waits.  A stream asks once, and what comes lies in buffers that all streams
 * of a worker share, where it can be read in place.  So a connection that is
 * busy takes less time, one that is idle holds no buffer, and a wait that a
 * deadline ends has nothing to take back.
 *
 * A stream is a struct that you put where you like, for a connected stream
 * socket.  Until it is closed the struct stays where it is, its tasks are of
 * one runtime, and nobody else receives from the descriptor, closes it or polls
 * it for input (what has come is in the stream).  All else may be done with it:
 * weft_send(), weft_sendfile(), weft_shutdown(), options.  One task at a time
 * receives; any number may send meanwhile.  A peer that sends what nobody
 * receives is held up, at the latest after some hundred KiB.
 */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

struct weft_stream {
	uint64_t private_words[16];
};

/* A stream for that descriptor, which belongs to it from here on.  Nothing is
 * asked of the kernel yet: what is wrong with the descriptor (-EBADF,
 * -ENOTSOCK, ...) the first call tells. */
#define WEFT_STREAM_INIT(fd)                     \
	{                                        \
		{                                \
			(uint64_t)(uint32_t)(fd) \
		}                                \
	}

/* The same for memory of your own, whatever is in it. */
WEFT_API void weft_stream_init(struct weft_stream *stream, int fd);

WEFT_API int weft_stream_fd(const struct weft_stream *stream);

/*
 * Waits until something was received, and shows it where it lies: *ret_data is
 * good until the next call on the stream that receives or skips.  Returns how
 * many bytes, which the next call shows again unless they are skipped; there
 * may be more behind them.  0: the peer sends no more.  Or -ECANCELED,
 * -ETIMEDOUT, -ECONNRESET, -ENOMEM, ..., also of what was put, when there is
 * nothing left to read; -EPERM outside a task.
 */
WEFT_API ssize_t weft_stream_peek(struct weft_stream *stream,
				  const void **ret_data) WEFT_WARN_UNUSED;

/* Lets go of so many bytes, of those that the last peek showed.  Does not
 * suspend. */
WEFT_API void weft_stream_skip(struct weft_stream *stream, size_t bytes);

/* Waits until something was received, and copies it, as weft_recv(); results
 * as of weft_stream_peek().  The other copies until all bytes are there, as
 * weft_read_all(): 0, or the first error, -ENODATA at the end. */
WEFT_API ssize_t weft_stream_read(struct weft_stream *stream, void *buf,
				  size_t bytes) WEFT_WARN_UNUSED;
WEFT_API int weft_stream_read_all(struct weft_stream *stream, void *buf,
				  size_t bytes, size_t *ret_done);

/* Sends all, as weft_write_all(); it may be what a peek shows.  0, or the first
 * error: -EPIPE, -ECONNRESET, -ECANCELED, -ETIMEDOUT, ...; *ret_done (may be
 * NULL) always gets the bytes sent. */
WEFT_API int weft_stream_write_all(struct weft_stream *stream, const void *buf,
				   size_t bytes, size_t *ret_done);

/*
 * Sends all, too, but not at once: it is copied into a buffer, which goes out
 * as soon as the stream has nothing more to read and waits for it, or the
 * buffer is full; or when the stream is flushed, written to by the same task,
 * or closed.  So the answers to requests that came together leave together, and
 * the task does not wait for each.  What is too long for the buffer (4 KiB) is
 * sent as by weft_stream_write_all().  It may be what a peek shows.
 *
 * For the task that receives: others do not put meanwhile, and what they write
 * does not wait for what was put; who lets another task receive from now on
 * flushes before.  It suspends only while the peer is slow to take what was put
 * before.  0, or -ECANCELED or -ETIMEDOUT, and then nothing was taken, unless
 * it is too long; or why something that was put could not be sent (-EPIPE,
 * -ECONNRESET, ...), which all puts say from then on; -EPERM outside a task.
 */
WEFT_API int weft_stream_put(struct weft_stream *stream, const void *buf,
			     size_t bytes);

/* Waits until all that was put is sent.  Results as of weft_stream_put(); one
 * that was interrupted may be repeated. */
WEFT_API int weft_stream_flush(struct weft_stream *stream);

/* Ends the stream and closes its descriptor; what was received and not skipped
 * is gone, and what was put is sent before: a task that is cancelled does not
 * wait for that, but sends what the kernel takes at once.  No other task may be
 * in a call on it: end those before, by weft_shutdown() or cancellation.
 * Always done in full, cancelled or not.  Results as of weft_close(), or why
 * what was put could not be sent.  A socket that lingers (SO_LINGER with a time
 * above 0) holds its worker up here, as it does a thread in close(2). */
WEFT_API int weft_stream_close(struct weft_stream *stream);

WEFT_END_DECLS

#endif
