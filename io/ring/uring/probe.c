/* SPDX-License-Identifier: MIT */
/*
 * Probe: tries out whether ends are reported, for which the kernel has no flag
 * to ask for.  Each try uses descriptors of its own, and closes them.
 */
#include "io/ring/uring/probe.h"

#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * From Linux 6.17 until 7.0 (commit a68ed2df7213) a receive that was woken
 * twice before it ran took the data, and did not look for the end.  With
 * DEFER_TASKRUN it runs when the thread waits for it, and not before; so here
 * it is woken twice.  The data does not fill its buffer: after a full buffer
 * some kernels go on to the next one.
 */
enum { BUFFERS = 2, BUFFER_BYTES = 64, BUFFERS_AT = 1024 };

static bool give_buffers(struct io_uring *ring, char *page)
{
	struct io_uring_buf_ring *buffers = (void *)page;
	struct io_uring_buf_reg reg = {
		.ring_addr = (uint64_t)(uintptr_t)page,
		.ring_entries = BUFFERS,
	};

	if (io_uring_register_buf_ring(ring, &reg, 0) < 0)
		return false;
	io_uring_buf_ring_init(buffers);
	for (unsigned short i = 0; i < BUFFERS; i++)
		io_uring_buf_ring_add(buffers,
				      page + BUFFERS_AT + i * BUFFER_BYTES,
				      BUFFER_BYTES, i, BUFFERS - 1, i);
	io_uring_buf_ring_advance(buffers, BUFFERS);
	return true;
}

static bool receive(struct io_uring *ring, int fd)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);

	io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	return io_uring_submit(ring) == 1;
}

static bool send_and_end(int fd)
{
	return send(fd, "", 1, MSG_NOSIGNAL) == 1 &&
	       shutdown(fd, SHUT_WR) == 0;
}

/* Is that the result of the next completion, which has come by now? */
static bool completed_with(struct io_uring *ring, int result)
{
	struct __kernel_timespec at_once = { 0 };
	struct io_uring_cqe *cqe;
	bool as_said;

	if (io_uring_wait_cqe_timeout(ring, &cqe, &at_once) < 0)
		return false;
	as_said = cqe->res == result;
	io_uring_cqe_seen(ring, cqe);
	return as_said;
}

static bool reports_end_of(struct io_uring *ring, const int fds[2])
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	char *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool reports;

	if (page == MAP_FAILED)
		return false;
	reports = give_buffers(ring, page) && receive(ring, fds[0]) &&
		send_and_end(fds[1]) && completed_with(ring, 1) &&
		completed_with(ring, 0);
	munmap(page, bytes);
	return reports;
}

bool weft__probe_try_ends(void)
{
	struct io_uring ring;
	int fds[2];
	bool reports;

	if (io_uring_queue_init(2, &ring,
				IORING_SETUP_SINGLE_ISSUER |
					IORING_SETUP_DEFER_TASKRUN) < 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		io_uring_queue_exit(&ring);
		return false;
	}
	reports = reports_end_of(&ring, fds);
	close(fds[0]);
	close(fds[1]);
	io_uring_queue_exit(&ring);
	return reports;
}

static bool reports_ends;

static void find_out(void)
{
	reports_ends = weft__probe_try_ends();
}

bool weft__probe_reports_ends(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_out);
	return reports_ends;
}
