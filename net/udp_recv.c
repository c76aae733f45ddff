/* SPDX-License-Identifier: MIT */
/*
 * Receiving datagrams: a batch with each system call, until one finds less than
 * a batch.
 *
 * The kernel writes names and control messages to the stack of the task; only
 * for messages that came they become fields of the caller's.  An error that is
 * found behind messages ends the call, which returns those, and is kept for the
 * next call, as the kernel does within a batch.
 */
#include <poll.h>
#include <string.h>

#include "io/os/datagrams.h"
#include "net/udp.h"
#include "net/udp_control.h"

struct receipt {
	struct weft_udp_msg *msgs;
	unsigned count, done;
};

struct batch {
	struct mmsghdr messages[WEFT__UDP_BATCH];
	struct iovec pieces[WEFT__UDP_BATCH];
	union weft__udp_name names[WEFT__UDP_BATCH];
	union weft__udp_control_in controls[WEFT__UDP_BATCH];
};

static void batch_describe(struct batch *batch, unsigned i,
			   const struct weft_udp_msg *msg)
{
	batch->pieces[i] = (struct iovec){ msg->buf, msg->room };
	batch->messages[i] = (struct mmsghdr){
		.msg_hdr = {
			.msg_name = &batch->names[i],
			.msg_namelen = sizeof(batch->names[i]),
			.msg_iov = &batch->pieces[i],
			.msg_iovlen = 1,
			.msg_control = &batch->controls[i],
			.msg_controllen = sizeof(batch->controls[i]),
		},
	};
}

/* A socket of another kind may have senders without a name. */
static void addr_take(const struct msghdr *header, struct weft_addr *ret_addr)
{
	if (!header->msg_namelen ||
	    weft_addr_from_sockaddr(header->msg_name, header->msg_namelen,
				    ret_addr) < 0)
		memset(ret_addr, 0, sizeof(*ret_addr));
}

/* Messages of one sender often come together: the name need not be read
 * again. */
static bool is_same_name(const struct msghdr *header, const struct msghdr *last)
{
	return header->msg_namelen == last->msg_namelen &&
	       memcmp(header->msg_name, last->msg_name, header->msg_namelen) ==
		       0;
}

/* Of the i-th of a batch. */
static void message_take(const struct mmsghdr *messages, int i,
			 struct weft_udp_msg *msgs)
{
	const struct msghdr *header = &messages[i].msg_hdr;
	struct weft_udp_msg *msg = &msgs[i];
	size_t bytes = messages[i].msg_len;

	msg->bytes = bytes < msg->room ? bytes : msg->room;
	msg->whole_bytes = bytes;
	msg->sent_bytes = 0;
	msg->segment_bytes = msg->interface = 0;
	msg->traffic_class = 0;
	memset(&msg->local, 0, sizeof(msg->local));
	if (i && is_same_name(header, &messages[i - 1].msg_hdr))
		msg->addr = msgs[i - 1].addr;
	else
		addr_take(header, &msg->addr);
	if (header->msg_controllen)
		weft__udp_control_take(header, msg);
}

/* Receives a batch at most; the number of messages, or an error. */
static int batch_receive(int fd, struct weft_udp_msg *msgs, unsigned count)
{
	struct batch batch;
	size_t bytes = 0;
	int n;

	if (count > WEFT__UDP_BATCH)
		count = WEFT__UDP_BATCH;
	for (unsigned i = 0; i < count; i++)
		batch_describe(&batch, i, &msgs[i]);
	n = weft__datagrams_recv(fd, batch.messages, count);
	if (n <= 0)
		return n;
	for (int i = 0; i < n; i++) {
		message_take(batch.messages, i, msgs);
		bytes += msgs[i].bytes;
	}
	weft__udp_charge((unsigned)n, bytes);
	return n;
}

/* An error behind messages that were received is the next call's. */
static int error_take(struct weft__udp *udp)
{
	/* relaxed: a number; only its value counts. */
	int error = weft__load(&udp->error, relaxed);

	/* relaxed: see above. */
	return error ? weft__swap(&udp->error, 0, relaxed) : 0;
}

static int error_keep(struct weft__udp *udp, int error)
{
	if (error < 0 && error != -EAGAIN)
		/* relaxed: see error_take(). */
		weft__store(&udp->error, error, relaxed);
	return 0;
}

static int receive(struct weft__udp *udp, int fd, void *arg)
{
	struct receipt *receipt = arg;
	int n = receipt->done ? 0 : error_take(udp);

	if (n < 0)
		return n;
	n = batch_receive(fd, receipt->msgs + receipt->done,
			  receipt->count - receipt->done);
	if (n < 0)
		return receipt->done ? error_keep(udp, n) : n;
	receipt->done += (unsigned)n;
	return n == WEFT__UDP_BATCH && receipt->done < receipt->count;
}

int weft_udp_recv(struct weft_udp *udp, struct weft_udp_msg *msgs, int count,
		  int flags)
{
	struct receipt receipt = { .msgs = msgs, .count = (unsigned)count };
	int r;

	if (!msgs || count < 1 || !weft__udp_takes_flags(flags))
		return weft__call_refused(-EINVAL);
	r = weft__udp_run(weft__udp(udp), receive, &receipt, flags, POLLIN);
	return receipt.done ? (int)receipt.done : r;
}
