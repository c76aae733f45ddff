/* SPDX-License-Identifier: MIT */
/*
 * Raw io_uring file work on one thread: the figure a runtime should approach.
 *
 *	uring_file rand_cached|rand_direct|rand_direct_each|copy --path F
 *		   [--dst G] [--secs S] [--label L]
 *
 *	rand_	4 KiB reads at depth 32, registered file and buffers; _each
 *		submits every read immediately, not a batch per loop turn
 *	copy	8 chunks of 256 KiB in flight; each is read, then written at the
 *		same offset
 *
 * A slot is a buffer and the state of its request: idle, reading, or writing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "../micro/out.h"

enum {
	RAND_DEPTH = 32,
	COPY_DEPTH = 8,
	CHUNK = 256 << 10,
	BLOCK = 4096,
	SQ_ENTRIES = 64,
};

enum phase { IDLE, READING, WRITING };

static struct {
	const char *what, *path, *dst;
	double secs;
	bool copy, direct, each;
} opt = { .what = "", .secs = 2 };

static struct io_uring ring;
static struct iovec buffers[RAND_DEPTH];
static enum phase phase[RAND_DEPTH];
static uint64_t offset[RAND_DEPTH];
static uint64_t size, next, done, deadline_ns, seed = 0x9e3779b97f4a7c15u;
static int in_flight;

static void die(const char *what, int error)
{
	fprintf(stderr, "%s: %s\n", what, strerror(error));
	exit(1);
}

static uint64_t random_block(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % (size / BLOCK) * BLOCK;
}

static void queue(struct io_uring_sqe *sqe, int slot)
{
	sqe->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data64(sqe, (unsigned)slot);
	in_flight++;
	if (opt.each)
		io_uring_submit(&ring);
}

static void start_read(int slot)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (opt.copy) {
		offset[slot] = next;
		next += CHUNK;
	} else {
		offset[slot] = random_block();
	}
	phase[slot] = READING;
	io_uring_prep_read_fixed(sqe, 0, buffers[slot].iov_base,
				 (unsigned)buffers[slot].iov_len, offset[slot],
				 slot);
	queue(sqe, slot);
}

static void start_write(int slot, unsigned len)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	phase[slot] = WRITING;
	io_uring_prep_write_fixed(sqe, 1, buffers[slot].iov_base, len,
				  offset[slot], slot);
	queue(sqe, slot);
}

static void on_complete(int slot, int res, bool more)
{
	if (res < 0)
		die("io", -res);
	if (opt.copy && phase[slot] == READING) {
		start_write(slot, (unsigned)res);
		return;
	}
	done += (uint64_t)res;
	phase[slot] = IDLE;
	if (more)
		start_read(slot);
}

/* Completions first, then new requests: one submission for the batch. */
static void turn(void)
{
	int slots[RAND_DEPTH], results[RAND_DEPTH], n = 0;
	struct io_uring_cqe *cqe;
	unsigned head;
	bool in_time;
	int r = io_uring_submit_and_wait(&ring, 1);

	if (r < 0 && r != -EINTR)
		die("submit", -r);
	io_uring_for_each_cqe(&ring, head, cqe) {
		if (n == RAND_DEPTH)
			break;
		slots[n] = (int)cqe->user_data;
		results[n++] = cqe->res;
	}
	io_uring_cq_advance(&ring, (unsigned)n);
	in_flight -= n;
	in_time = opt.copy || now_ns() < deadline_ns;
	for (int i = 0; i < n; i++)
		on_complete(slots[i], results[i],
			    opt.copy ? next < size : in_time);
}

static void open_ring(int depth, size_t buffer_len)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SINGLE_ISSUER |
					      IORING_SETUP_DEFER_TASKRUN };
	int r = io_uring_queue_init_params(SQ_ENTRIES, &ring, &p);

	if (r < 0)
		die("ring", -r);
	for (int i = 0; i < depth; i++) {
		if (posix_memalign(&buffers[i].iov_base, 4096, buffer_len) != 0)
			die("buffers", ENOMEM);
		memset(buffers[i].iov_base, 1, buffer_len);
		buffers[i].iov_len = buffer_len;
	}
	r = io_uring_register_buffers(&ring, buffers, (unsigned)depth);
	if (r < 0)
		die("register buffers", -r);
}

static void open_files(int fds[2])
{
	int n = opt.copy ? 2 : 1, r;

	fds[0] = open(opt.path, O_RDONLY | (opt.direct ? O_DIRECT : 0));
	if (opt.copy)
		fds[1] = open(opt.dst, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fds[0] < 0 || fds[n - 1] < 0)
		die("open", errno);
	r = io_uring_register_files(&ring, fds, (unsigned)n);
	if (r < 0)
		die("register files", -r);
	io_uring_register_ring_fd(&ring);
}

static void report(uint64_t t0, int dst)
{
	double secs = (double)(now_ns() - t0) / 1e9;

	if (!opt.copy) {
		emit(opt.direct ? "rand_direct" : "rand_cached",
		     (double)done / BLOCK / secs, "iops");
		return;
	}
	if (done != size)
		die("short copy", EIO);
	emit("copy", (double)done / secs / 1e6, "MB/s");
	fdatasync(dst);
	emit("copy_synced", (double)done * 1e3 / (double)(now_ns() - t0),
	     "MB/s");
}

static void parse_options(int argc, char **argv)
{
	opt.what = argc > 1 ? argv[1] : "";
	for (int i = 2; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--path") == 0)
			opt.path = argv[i + 1];
		else if (strcmp(argv[i], "--dst") == 0)
			opt.dst = argv[i + 1];
		else if (strcmp(argv[i], "--secs") == 0)
			opt.secs = atof(argv[i + 1]);
		else if (strcmp(argv[i], "--label") == 0)
			out_label = argv[i + 1];
	}
	opt.copy = strcmp(opt.what, "copy") == 0;
	opt.each = strcmp(opt.what, "rand_direct_each") == 0;
	opt.direct = opt.each || strcmp(opt.what, "rand_direct") == 0;
}

int main(int argc, char **argv)
{
	int fds[2], depth;
	struct stat st;
	uint64_t t0;

	out_label = "raw-io_uring";
	parse_options(argc, argv);
	if (opt.path == NULL || stat(opt.path, &st) < 0 ||
	    (opt.copy && opt.dst == NULL))
		return 2;
	size = (uint64_t)st.st_size;
	depth = opt.copy ? COPY_DEPTH : RAND_DEPTH;
	open_ring(depth, opt.copy ? CHUNK : BLOCK);
	open_files(fds);
	t0 = now_ns();
	deadline_ns = t0 + (uint64_t)(opt.secs * 1e9);
	for (int i = 0; i < depth; i++)
		start_read(i);
	while (in_flight > 0)
		turn();
	report(t0, fds[1]);
	return 0;
}
