/* SPDX-License-Identifier: MIT */
/*
 * Sending datagrams.
 *
 * A *part* is what one message of sendmmsg(2) holds.  With segments it is as
 * many datagrams of a struct weft_udp_msg as the kernel cuts apart; without,
 * one datagram.  A batch of parts is one system call:
 *
 *	msgs      [ 3 datagrams ][ 1 ][ 70                 ]
 *	parts     [ 3           ][ 1 ][ 46      ][ 24      ]	with segments
 *	parts     [1][1][1]      [ 1 ][1][1][1] ...		without
 *
 * Invariants
 *   SEND1  `at` and the sent_bytes of that message are what was sent.  They
 *       advance with the result of a system call and in no other way, and the
 *       next batch begins there.  So nothing is lost, or sent twice.
 *
 * A device may refuse segments that the socket has taken: it cannot compute
 * their checksums, or an option of the socket forbids them.  Then the message
 * goes on in parts of one datagram.  If the kernel takes those, the segments
 * were at fault, and the socket does without them from then on.  That does not
 * hold for -EMSGSIZE, which is about the way to one peer; nor for -EINVAL where
 * it may be: older kernels (before Linux 6.14) say so if a segment is longer
 * than the way takes.
 *
 * Of the addresses that are no source the kernel alone knows the broadcasts of
 * its networks.  It is asked once it has refused such a source, and the message
 * goes on without.
 */
#include <poll.h>

#include "io/os/datagrams.h"
#include "net/udp.h"
#include "net/udp_control.h"

enum {
	SEGMENTS_MAX = 64,	/* that the kernel cuts: UDP_MAX_SEGMENTS */
	PART_BYTES_MAX = 65507, /* of an IPv4 datagram */
	SEGMENT_BYTES_MAX = 65535,
	SURE_BYTES = 1232, /* that each way takes: 1280, less the headers */
};

struct sending {
	struct weft_udp_msg *msgs;
	unsigned count;
	unsigned at;	 /* messages before it were sent */
	int refused;	 /* why that message goes without segments, or 0 */
	bool sourceless; /* and without its source, which is none */
	size_t bytes;	 /* of the last batch */
};

struct batch {
	struct mmsghdr messages[WEFT__UDP_BATCH];
	struct iovec parts[WEFT__UDP_BATCH];
	union weft__udp_control controls[WEFT__UDP_BATCH];
};

/* ---- Parts --------------------------------------------------------------- */

/* The length of the part of a message that begins at an offset. */
static size_t part_bytes(const struct weft_udp_msg *msg, size_t offset,
			 bool segments)
{
	size_t left = msg->bytes - offset, each = msg->segment_bytes, most;

	if (!each || left <= each)
		return left;
	most = segments ? PART_BYTES_MAX / each : 0;
	if (most < 2)
		return each;
	if (most > SEGMENTS_MAX)
		most = SEGMENTS_MAX;
	return left < most * each ? left : most * each;
}

static bool part_is_cut(const struct weft_udp_msg *msg, size_t bytes)
{
	return msg->segment_bytes && bytes > msg->segment_bytes;
}

static void part_describe(struct batch *batch, unsigned i,
			  const struct weft_udp_msg *msg, size_t offset,
			  size_t bytes)
{
	struct msghdr *header = &batch->messages[i].msg_hdr;

	batch->parts[i] = (struct iovec){ (char *)msg->buf + offset, bytes };
	batch->messages[i] = (struct mmsghdr){
		.msg_hdr = { .msg_iov = &batch->parts[i], .msg_iovlen = 1 },
	};
	if (msg->addr.bytes) {
		/* The kernel only reads through this pointer. */
		header->msg_name =
			(void *)(uintptr_t)weft_addr_sockaddr(&msg->addr);
		header->msg_namelen = weft_addr_sockaddr_bytes(&msg->addr);
	}
	weft__udp_control_begin(header, &batch->controls[i]);
}

static void controls_put(struct msghdr *header, struct weft__udp *udp,
			 const struct weft_udp_msg *msg, bool sourceless)
{
	struct weft_udp_msg asks;

	if (sourceless) {
		asks = *msg;
		asks.local = (struct weft_addr){ .bytes = 0 };
		msg = &asks;
	}
	if (weft__udp_control_has(msg))
		weft__udp_control_put(header, msg, weft__udp_fd(udp),
				      udp->is_ipv6);
}

/* Describes the next parts; returns how many. */
static unsigned batch_describe(struct batch *batch, struct weft__udp *udp,
			       const struct sending *sending)
{
	/* relaxed: a hint; a call that does not see it finds out itself. */
	bool segments = weft__load(&udp->segments, relaxed);
	const struct weft_udp_msg *msg = &sending->msgs[sending->at];
	const struct weft_udp_msg *end = &sending->msgs[sending->count];
	size_t offset = msg->sent_bytes;
	unsigned i;

	if (sending->refused)
		segments = false;
	for (i = 0; i < WEFT__UDP_BATCH && msg < end; i++) {
		size_t bytes = part_bytes(msg, offset, segments);
		struct msghdr *header = &batch->messages[i].msg_hdr;

		part_describe(batch, i, msg, offset, bytes);
		controls_put(header, udp, msg, sending->sourceless);
		if (part_is_cut(msg, bytes))
			weft__udp_control_put_segment(header,
						      msg->segment_bytes);
		offset += bytes;
		if (offset < msg->bytes)
			continue;
		/* The refusal was of this message alone. */
		if (sending->refused || sending->sourceless)
			return i + 1;
		msg++;
		offset = msg < end ? msg->sent_bytes : 0;
	}
	return i;
}

/* ---- Results ------------------------------------------------------------- */

/* So many parts were sent; see SEND1. */
static void sending_advance(struct sending *sending, const struct batch *batch,
			    unsigned parts)
{
	sending->bytes = 0;
	for (unsigned i = 0; i < parts; i++) {
		struct weft_udp_msg *msg = &sending->msgs[sending->at];
		size_t bytes = batch->parts[i].iov_len;

		sending->bytes += bytes;
		msg->sent_bytes += bytes;
		if (msg->sent_bytes < msg->bytes)
			continue;
		msg->sent_bytes = 0;
		sending->at++;
		sending->refused = 0;
		sending->sourceless = false;
	}
}

static bool is_refusal(int error)
{
	return error == -EIO || error == -EINVAL || error == -EMSGSIZE ||
	       error == -EOPNOTSUPP || error == -ENOPROTOOPT;
}

/* Parts of one datagram go where segments of that size did not. */
static void segments_forget(struct weft__udp *udp, int refused, unsigned bytes)
{
	if (refused == -EINVAL && bytes > SURE_BYTES)
		return;
	if (refused && refused != -EMSGSIZE)
		/* relaxed: a hint, see batch_describe(). */
		weft__store(&udp->segments, false, relaxed);
}

static int send_batch(struct weft__udp *udp, int fd, void *arg)
{
	struct sending *sending = arg;
	struct batch batch;
	unsigned parts = batch_describe(&batch, udp, sending);
	bool is_cut = part_is_cut(&sending->msgs[sending->at],
				  batch.parts[0].iov_len);
	int n = weft__datagrams_send(fd, batch.messages, parts);

	if ((n == -EINVAL || n == -ENETUNREACH) && !sending->sourceless &&
	    weft__udp_is_broadcast(&sending->msgs[sending->at].local)) {
		sending->sourceless = true;
		return 1;
	}
	if (n < 0 && is_cut && is_refusal(n)) {
		sending->refused = n;
		return 1;
	}
	if (n < 0)
		return n;
	segments_forget(udp, sending->refused,
			sending->msgs[sending->at].segment_bytes);
	sending_advance(sending, &batch, (unsigned)n);
	weft__udp_charge((unsigned)n, sending->bytes);
	return sending->at < sending->count;
}

/* ---- The call ------------------------------------------------------------ */

/* 0, or what is wrong with a message. */
static int message_check(const struct weft__udp *udp,
			 const struct weft_udp_msg *msg)
{
	if (msg->segment_bytes > SEGMENT_BYTES_MAX ||
	    (msg->sent_bytes && msg->sent_bytes >= msg->bytes))
		return -EINVAL;
	return weft__udp_check_family(udp, &msg->addr);
}

int weft_udp_send(struct weft_udp *udp, struct weft_udp_msg *msgs, int count,
		  int flags)
{
	struct sending sending = { .msgs = msgs };
	int r = 0;

	if (!msgs || count < 1 || !weft__udp_takes_flags(flags))
		return weft__call_refused(-EINVAL);
	/* The messages before a wrong one are sent. */
	while (r == 0 && sending.count < (unsigned)count) {
		r = message_check(weft__udp(udp), &msgs[sending.count]);
		sending.count += r == 0;
	}
	if (!sending.count)
		return weft__call_refused(r);
	r = weft__udp_run(weft__udp(udp), send_batch, &sending, flags, POLLOUT);
	return sending.at ? (int)sending.at : r;
}
