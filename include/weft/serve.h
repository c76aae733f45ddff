/* SPDX-License-Identifier: MIT */
/*
 * Serving: behind a proxy, under systemd, by several listeners.
 *
 * A proxy that passes connections on can write a header before the first byte,
 * which says who the client is (the PROXY protocol, versions 1 and 2).  A
 * server reads it before all else, and only from proxies that it trusts: any
 * other peer can claim anything.
 *
 *	struct weft_proxy_header header;
 *	ssize_t n = weft_proxy_read(&stream, 4096, &header);
 *
 *	if (n > 0)
 *		weft_stream_skip(&stream, (size_t)n);
 *
 * systemd passes open sockets to a service (systemd.socket(5)), and the service
 * reports that it is ready (sd_notify(3)).  Without systemd these calls report
 * that there is nothing, and do nothing.
 */
#ifndef WEFT_SERVE_H
#define WEFT_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/addr.h>
#include <weft/config.h>
#include <weft/net.h>
#include <weft/stream.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

/* The header of a connection. */
struct weft_proxy_header {
	int version;		 /* 1 or 2 */
	int type;		 /* SOCK_STREAM, SOCK_DGRAM; 0: unknown */
	bool local;		 /* by the proxy for itself: a health check */
	struct weft_addr source; /* the client; no address: unknown */
	struct weft_addr target; /* that it connected to */
	const void *tlvs;	 /* further fields, of version 2 */
	size_t tlvs_bytes;
};

/* A further field: PP2_TYPE_... in the protocol's document. */
struct weft_proxy_tlv {
	uint8_t type;
	const void *value;
	size_t bytes;
};

/*
 * Waits for the header that begins a stream, and shows it: like the data of
 * weft_stream_until(), it is there until it is skipped, and `tlvs` points into
 * it.  Suspends.  Returns the header's bytes; 0 if the stream ends before the
 * first byte; -EBADMSG: there is no valid header, as soon as a byte comes that
 * no header has there (addresses of version 1 and further fields are looked at
 * once all are there); -EMSGSIZE: it is longer than bytes_max (one of version 1
 * has 107 bytes at most, one of version 2 without further fields 232, and gives
 * its length in its first 16); -ENODATA: the stream ends in it.  Or an error of
 * weft_stream_peek().  On an error nothing is taken, and *ret_header is
 * unchanged.
 */
WEFT_API ssize_t weft_proxy_read(struct weft_stream *stream, size_t bytes_max,
				 struct weft_proxy_header *ret_header)
	WEFT_WARN_UNUSED;

/* The same for bytes in memory.  Does not suspend; from any thread.  Returns
 * the header's bytes, -EBADMSG, or -EAGAIN: more bytes are needed. */
WEFT_API ssize_t weft_proxy_parse(const void *data, size_t bytes,
				  struct weft_proxy_header *ret_header)
	WEFT_WARN_UNUSED;

/* The next further field, from *at on, which begins with 0.  Does not suspend.
 * Returns false behind the last. */
WEFT_API bool weft_proxy_tlv_next(const struct weft_proxy_header *header,
				  size_t *at, struct weft_proxy_tlv *ret_tlv);

/* Writes a header.  Without addresses, or for a health check, they are left
 * out.  Does not suspend; from any thread.  Returns the header's bytes,
 * -EMSGSIZE (no room for it), or -EINVAL: another version or type, addresses of
 * two families, fields that are not whole or longer than 65,535 bytes with the
 * addresses; in version 1 a Unix address, datagrams, or fields. */
WEFT_API ssize_t weft_proxy_format(const struct weft_proxy_header *header,
				   void *buf, size_t room) WEFT_WARN_UNUSED;

/* A descriptor from systemd, and its FileDescriptorName=. */
struct weft_systemd_socket {
	int fd;
	char name[256];
};

/* Finds the sockets that systemd has passed to this process ($LISTEN_FDS,
 * $LISTEN_PID, $LISTEN_FDNAMES), and makes them close-on-exec.  They are the
 * caller's; a second call returns the same.  Does not suspend; from any thread.
 * Returns their number, 0 if there are none or they are for another process;
 * -EINVAL (the variables are not as systemd writes them), -EBADF (one is not
 * open), -EMSGSIZE (more than room): then nothing is stored. */
WEFT_API int weft_systemd_sockets(struct weft_systemd_socket *ret_sockets,
				  size_t room) WEFT_WARN_UNUSED;

/* Sends a message to the service manager ($NOTIFY_SOCKET): "READY=1",
 * "STOPPING=1", "STATUS=...", "WATCHDOG=1", several with "\n" between them.
 * Does not suspend; from any thread.  Returns 1, or 0 if there is no manager;
 * -EINVAL (no or an empty message; a wrong address), -EAGAIN (the manager is
 * slow), -ECONNREFUSED, -ENOENT, or another error of sendmsg(2). */
WEFT_API int weft_systemd_notify(const char *message);

/* How often the service manager expects "WATCHDOG=1" ($WATCHDOG_USEC,
 * $WATCHDOG_PID); send it twice as often.  Does not suspend; from any thread.
 * Returns 1, 0 if it does not, or -EINVAL (NULL, or no number). */
WEFT_API int weft_systemd_watchdog(weft_nsec *ret_interval_ns);

/* Opens several listeners of one address (SO_REUSEPORT): the kernel spreads
 * connections over them, so that a task for each need not share one queue.  For
 * port 0 all get the same.  A connection that waits in the queue of one that is
 * closed is reset.  Does not suspend; from any thread.  Returns 0, or an error
 * of weft_tcp_listen(), with nothing left open; -EINVAL also for a count of
 * 0. */
WEFT_API int weft_tcp_listen_group(const char *address,
				   const struct weft_socket_opts *opts,
				   int *ret_fds, unsigned count)
	WEFT_WARN_UNUSED;

WEFT_END_DECLS

#endif
