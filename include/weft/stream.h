/* SPDX-License-Identifier: MIT */
/*
 * Streams: bytes that come and go in order, over connections, pipes, terminals,
 * files, or what a table of operations describes.  A connection's data weft
 * receives ahead, into buffers of its own.
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
 * weft_recv() makes a new request to the kernel for each piece, and needs a
 * buffer while it waits.  A stream makes one request, and the data arrives in
 * buffers that all streams of a worker share, where it can be read in place.
 * So a busy connection takes less time, an idle one holds no buffer, and a wait
 * that ends at a deadline has nothing to take back.
 *
 * A stream is a struct that you place where you like, for a connected stream
 * socket; for another descriptor, which is read and written as by weft_read()
 * and weft_write_all() when the stream needs it; or over what
 * weft_stream_init_over() is given.  Until the stream is closed, the struct
 * stays in place, all tasks that use it belong to one runtime, and no other
 * code receives from the descriptor, closes it or polls it for input (the data
 * is in the stream).  Everything else is allowed: weft_send(),
 * weft_sendfile(), weft_shutdown(), options.  They overtake data of
 * weft_stream_put() that was not flushed before.  One task at a time receives;
 * others may send meanwhile.  A peer whose data is not read is held up, at the
 * latest after some hundred KiB.
 *
 * Calls that suspend obey WEFT_WITHIN and cancellation, and return -EPERM
 * outside a task or in a future.
 */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

struct weft_stream {
	uint64_t private_words[22];
};

/* A stream for that descriptor, which belongs to the stream from here on.
 * Makes no system call: the first call that uses the stream reports errors of
 * the descriptor (-EBADF, ...). */
#define WEFT_STREAM_INIT(fd) { { WEFT__NUMBER(uint32_t, fd) } }

/* The same for memory of your own, whatever it contains.  Does not suspend. */
WEFT_API void weft_stream_init(struct weft_stream *stream, int fd);

/*
 * The functions of a stream without a descriptor, such as one that compresses
 * or encrypts; `arg` is that of weft_stream_init_over().  They may suspend.  A
 * stream calls read from one task at a time, and write_all from each task that
 * writes.
 *
 *	read	   waits for input, and stores 1 to `bytes` bytes in buf:
 *		   returns how many; 0 at the end, or a negative error.  NULL:
 *		   none
 *	write_all  writes all bytes: 0, or a negative error; *ret_done, which is
 *		   not NULL, receives how many.  NULL: none
 *	close	   ends it, cancelled or not: 0, or an error.  NULL: nothing
 *	wait	   waits until there may be input, or the end: 0, or a negative
 *		   error.  The stream holds no buffer meanwhile.  Then read does
 *		   not wait, and returns -EAGAIN to have wait called again.
 *		   NULL: read waits
 *
 * After -ECANCELED or -ETIMEDOUT a call may be repeated: no byte may be lost.
 */
struct weft_stream_ops {
	ssize_t (*read)(void *arg, void *buf, size_t bytes);
	int (*write_all)(void *arg, const void *buf, size_t bytes,
			 size_t *ret_done);
	int (*close)(void *arg);
	int (*wait)(void *arg);
};

/* A stream over that; `ops` and `arg` stay until it is closed.  Does not
 * suspend. */
WEFT_API void weft_stream_init_over(struct weft_stream *stream,
				    const struct weft_stream_ops *ops,
				    void *arg);

/* The stream's descriptor, which stays the stream's; or -1.  Does not
 * suspend. */
WEFT_API int weft_stream_fd(const struct weft_stream *stream);

/* Waits until data has been received, and shows it in place: *ret_data is valid
 * until the next call that receives or skips.  Suspends.  Returns the number of
 * bytes; the next peek shows them again unless they are skipped, and more may
 * follow them.  0: the peer sends no more.  Or -ECANCELED, -ETIMEDOUT,
 * -ECONNRESET, -ENOMEM, ...; if there is nothing left to read, also the error
 * of a weft_stream_put().  A connection that was lost has no end: all later
 * calls return -ECONNRESET. */
WEFT_API ssize_t weft_stream_peek(struct weft_stream *stream,
				  const void **ret_data) WEFT_WARN_UNUSED;

/* Skips bytes that the last peek showed; more of them end the process with a
 * message.  Does not suspend. */
WEFT_API void weft_stream_skip(struct weft_stream *stream, size_t bytes);

/* read waits until data has been received, and copies it, as weft_recv();
 * results as of weft_stream_peek().  read_all copies until all bytes are there,
 * as weft_read_all(): 0, or the first error, -ENODATA at the end of the stream.
 * Suspend. */
WEFT_API ssize_t weft_stream_read(struct weft_stream *stream, void *buf,
				  size_t bytes) WEFT_WARN_UNUSED;
WEFT_API int weft_stream_read_all(struct weft_stream *stream, void *buf,
				  size_t bytes, size_t *ret_done);

/*
 * Waits for input up to and including the delimiter, and shows it in one piece:
 * *ret_data is valid as that of weft_stream_peek(), and the bytes are there
 * until they are skipped.  Suspends.  Returns their number, the delimiter's
 * included; 0 at the end.  -EMSGSIZE: the first bytes_max bytes hold none;
 * -ENODATA: the stream ends in bytes without one: in both cases a peek shows
 * them.  -EINVAL: an empty delimiter, or one longer than bytes_max.  Or an
 * error of weft_stream_peek().
 */
WEFT_API ssize_t weft_stream_until(struct weft_stream *stream,
				   const void *delimiter,
				   size_t delimiter_bytes, size_t bytes_max,
				   const void **ret_data) WEFT_WARN_UNUSED;

/* Waits for a line, and takes it: copies it to buf with its "\n", which the
 * last line may lack, and a 0 behind it.  Suspends.  Returns the bytes before
 * the 0; 0 at the end.  -EMSGSIZE: the line does not fit, and nothing is taken;
 * -EINVAL: room for less than two bytes.  Or an error of weft_stream_peek(). */
WEFT_API ssize_t weft_stream_line(struct weft_stream *stream, char *buf,
				  size_t room) WEFT_WARN_UNUSED;

/* Writes what comes from the one stream to the other, until bytes_max
 * (UINT64_MAX: no limit) or the end.  Suspends.  Returns 0, or the first error
 * of either; *ret_done (may be NULL) always receives the bytes written, and no
 * others are taken from `from`. */
WEFT_API int weft_stream_copy(struct weft_stream *to, struct weft_stream *from,
			      uint64_t bytes_max, uint64_t *ret_done);

/* Sends all bytes, as weft_write_all(); buf may be data that a peek shows.
 * Suspends.  Returns 0, or the first error: -EPIPE, -ECONNRESET, -ECANCELED,
 * -ETIMEDOUT, ...; *ret_done always receives the number of bytes sent (ret_done
 * may be NULL). */
WEFT_API int weft_stream_write_all(struct weft_stream *stream, const void *buf,
				   size_t bytes, size_t *ret_done);

/*
 * Sends all bytes, but later: copies them into a buffer of the stream.  The
 * buffer is sent when the stream has nothing more to read and its task waits,
 * when the buffer is full, or when the stream is flushed, written to by the
 * same task, or closed.  So the answers to requests that came together leave
 * together, and the task does not wait for each.  Data longer than the buffer
 * (4 KiB) is sent as by weft_stream_write_all().  To write a file, pass larger
 * pieces to weft_stream_write_all(): they take fewer system calls.  buf may be
 * data that a peek shows.
 *
 * For the task that receives: other tasks do not put meanwhile, and their
 * writes do not wait for data that was put.  Flush before any long pause, such
 * as a sleep, and before another task receives.  Suspends only while the peer
 * is slow to take earlier data.
 *
 * Returns 0, or -ECANCELED or -ETIMEDOUT (and then took nothing, unless the
 * data is longer than the buffer), or the error that stopped earlier data
 * (-EPIPE, -ECONNRESET, ...), which all later puts return, too.
 */
WEFT_API int weft_stream_put(struct weft_stream *stream, const void *buf,
			     size_t bytes);

/* Puts each of the pieces in turn.  Results as of weft_stream_put(), of the
 * first that fails; those before it are put. */
WEFT_API int weft_stream_putv(struct weft_stream *stream,
			      const struct iovec *iov, int count);

/* Waits until everything that was put is sent.  Suspends.  Results as of
 * weft_stream_put(); an interrupted flush may be repeated. */
WEFT_API int weft_stream_flush(struct weft_stream *stream);

/*
 * Ends the stream and closes its descriptor.  Data that was received and not
 * skipped is lost.  Data that was put is sent first; a task that is cancelled
 * does not wait for that, but sends what the kernel takes without a wait, or,
 * if it is no socket, nothing.  No other task may be in a call on the stream:
 * end those calls before, by weft_shutdown() or cancellation.  Suspends, and
 * except for -EPERM, and -EBUSY as of weft_close(), is always done in full,
 * cancelled or not.  Returns 0, an error of weft_close(), or the error that
 * stopped data that was put.  A socket that lingers (SO_LINGER with a time
 * above 0) holds up its worker here, as it does a thread in close(2).
 */
WEFT_API int weft_stream_close(struct weft_stream *stream);

WEFT_END_DECLS

#endif
