/* SPDX-License-Identifier: MIT */
/*
 * Raw io_uring as its documentation recommends for a server: one ring per
 * thread, SINGLE_ISSUER and DEFER_TASKRUN, registered ring, multishot accept
 * into direct descriptors, multishot receive from a ring of provided buffers,
 * send straight out of the provided buffer, one submit-and-wait per loop turn.
 *
 * A completion carries its operation and the slot of its connection:
 *
 *	bits 32..63	enum op
 *	bits 0..31	slot, the index of the direct descriptor
 */
#include "echo_common.h"

#include <liburing.h>

enum {
	SLOTS = 16384,
	BUFFERS = 4096,
	GROUP = 0,
	SQ_ENTRIES = 4096,
	CQ_ENTRIES = 32768,
};
enum op { ACCEPT, RECV, SEND, CLOSE };

struct conn {
	int32_t head, tail; /* received buffers, oldest first; -1: none */
	uint8_t recv_armed, eof, sending;
};

struct loop {
	struct io_uring ring;
	struct io_uring_buf_ring *group;
	char *buffers;
	int listener;
	int32_t next[BUFFERS];
	uint32_t len[BUFFERS], off[BUFFERS];
	struct conn conns[SLOTS];
};

static struct opts o;

static void die(const char *what, int r)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static struct io_uring_sqe *get_sqe(struct loop *l)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ring);

	if (sqe == NULL) {
		io_uring_submit(&l->ring);
		sqe = io_uring_get_sqe(&l->ring);
	}
	return sqe;
}

static void tag(struct io_uring_sqe *sqe, enum op op, unsigned slot)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)op << 32 | slot);
}

static void arm_accept(struct loop *l)
{
	struct io_uring_sqe *sqe = get_sqe(l);

	io_uring_prep_multishot_accept_direct(sqe, l->listener, NULL, NULL, 0);
	tag(sqe, ACCEPT, 0);
}

static void arm_recv(struct loop *l, unsigned slot)
{
	struct io_uring_sqe *sqe = get_sqe(l);

	io_uring_prep_recv_multishot(sqe, (int)slot, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE;
	sqe->buf_group = GROUP;
	tag(sqe, RECV, slot);
	l->conns[slot].recv_armed = 1;
}

static char *buffer(struct loop *l, int32_t b)
{
	return l->buffers + (size_t)b * (size_t)o.buf;
}

static void arm_send(struct loop *l, unsigned slot)
{
	struct conn *c = &l->conns[slot];
	struct io_uring_sqe *sqe = get_sqe(l);
	int32_t b = c->head;

	io_uring_prep_send(sqe, (int)slot, buffer(l, b) + l->off[b],
			   l->len[b] - l->off[b], MSG_WAITALL | MSG_NOSIGNAL);
	sqe->flags |= IOSQE_FIXED_FILE;
	tag(sqe, SEND, slot);
	c->sending = 1;
}

static void arm_close(struct loop *l, unsigned slot)
{
	struct io_uring_sqe *sqe = get_sqe(l);

	io_uring_prep_close_direct(sqe, slot);
	tag(sqe, CLOSE, slot);
}

static void cancel_recv(struct loop *l, unsigned slot)
{
	struct io_uring_sqe *sqe = get_sqe(l);

	io_uring_prep_cancel64(sqe, (uint64_t)RECV << 32 | slot, 0);
	tag(sqe, CLOSE, slot);
}

static void give_back(struct loop *l, int32_t b)
{
	io_uring_buf_ring_add(l->group, buffer(l, b), (unsigned)o.buf,
			      (unsigned short)b, BUFFERS - 1, 0);
	io_uring_buf_ring_advance(l->group, 1);
}

static void maybe_close(struct loop *l, unsigned slot)
{
	struct conn *c = &l->conns[slot];

	if (!c->eof || c->sending || c->recv_armed)
		return;
	for (; c->head >= 0; c->head = l->next[c->head])
		give_back(l, c->head);
	arm_close(l, slot);
}

static void on_accept(struct loop *l, const struct io_uring_cqe *cqe)
{
	if (cqe->res >= 0) {
		l->conns[cqe->res] = (struct conn){ .head = -1, .tail = -1 };
		arm_recv(l, (unsigned)cqe->res);
	}
	if (!(cqe->flags & IORING_CQE_F_MORE))
		arm_accept(l);
}

static void received(struct loop *l, unsigned slot, int32_t b, uint32_t len)
{
	struct conn *c = &l->conns[slot];

	l->len[b] = len;
	l->off[b] = 0;
	l->next[b] = -1;
	if (c->head < 0)
		c->head = b;
	else
		l->next[c->tail] = b;
	c->tail = b;
	if (!c->sending)
		arm_send(l, slot);
}

static void on_recv(struct loop *l, unsigned slot,
		    const struct io_uring_cqe *cqe)
{
	struct conn *c = &l->conns[slot];

	if (!(cqe->flags & IORING_CQE_F_MORE))
		c->recv_armed = 0;
	if (cqe->res > 0)
		received(l, slot,
			 (int32_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT),
			 (uint32_t)cqe->res);
	else if (cqe->res != -ENOBUFS)
		c->eof = 1;
	if (!c->recv_armed && !c->eof)
		arm_recv(l, slot);
	maybe_close(l, slot);
}

static void on_sent(struct loop *l, unsigned slot, int32_t b)
{
	struct conn *c = &l->conns[slot];

	c->head = l->next[b];
	give_back(l, b);
	if (c->head >= 0)
		arm_send(l, slot);
}

static void on_send(struct loop *l, unsigned slot, int res)
{
	struct conn *c = &l->conns[slot];
	int32_t b = c->head;

	c->sending = 0;
	if (res < 0) {
		c->eof = 1;
		if (c->recv_armed)
			cancel_recv(l, slot);
	} else {
		l->off[b] += (uint32_t)res;
		if (l->off[b] < l->len[b])
			arm_send(l, slot);
		else
			on_sent(l, slot, b);
	}
	maybe_close(l, slot);
}

static void dispatch(struct loop *l, const struct io_uring_cqe *cqe)
{
	unsigned slot = (unsigned)cqe->user_data;

	switch ((enum op)(cqe->user_data >> 32)) {
	case ACCEPT:
		on_accept(l, cqe);
		break;
	case RECV:
		on_recv(l, slot, cqe);
		break;
	case SEND:
		on_send(l, slot, cqe->res);
		break;
	case CLOSE:
		break;
	}
}

static void open_ring(struct loop *l)
{
	struct io_uring_params p = { .cq_entries = CQ_ENTRIES };
	int r;

	p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
		  IORING_SETUP_CQSIZE | IORING_SETUP_SUBMIT_ALL;
	r = io_uring_queue_init_params(SQ_ENTRIES, &l->ring, &p);
	if (r < 0)
		die("io_uring", r);
	r = io_uring_register_files_sparse(&l->ring, SLOTS);
	if (r < 0)
		die("direct descriptors", r);
	r = io_uring_register_ring_fd(&l->ring);
	if (r != 1)
		die("ring descriptor", r);
}

static void provide_buffers(struct loop *l)
{
	size_t group_len = BUFFERS * sizeof(struct io_uring_buf);
	size_t len = BUFFERS * (size_t)o.buf;
	struct io_uring_buf_reg reg = { .ring_entries = BUFFERS,
					.bgid = GROUP };
	int r;

	if (posix_memalign((void **)&l->group, 4096, group_len) != 0 ||
	    posix_memalign((void **)&l->buffers, 4096, len) != 0)
		exit(1);
	memset(l->group, 0, group_len);
	reg.ring_addr = (uint64_t)(uintptr_t)l->group;
	r = io_uring_register_buf_ring(&l->ring, &reg, 0);
	if (r < 0)
		die("buffer ring", r);
	for (int32_t b = 0; b < BUFFERS; b++)
		give_back(l, b);
}

static void *loop(void *arg)
{
	struct loop *l = calloc(1, sizeof(*l));
	struct io_uring_cqe *cqe;
	unsigned head, n;
	int r;

	open_ring(l);
	provide_buffers(l);
	l->listener = listen_on(o.port, 0);
	arm_accept(l);
	for (;;) {
		r = io_uring_submit_and_wait(&l->ring, 1);
		if (r < 0 && r != -EINTR)
			die("submit", r);
		n = 0;
		io_uring_for_each_cqe(&l->ring, head, cqe) {
			dispatch(l, cqe);
			n++;
		}
		io_uring_cq_advance(&l->ring, n);
	}
	return arg;
}

int main(int argc, char **argv)
{
	o = parse_opts(argc, argv);
	prepare_process();
	run_threads(o.threads, loop);
}
