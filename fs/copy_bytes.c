/* SPDX-License-Identifier: MIT */
/*
 * Copy bytes - see the header.
 *
 * A file of which fewer blocks are allocated than its size needs may have
 * holes: SEEK_DATA and SEEK_HOLE then give its data, piece by piece, and the
 * copy gets its size at the end.
 *
 * The size at the beginning is the bound: a file that grows as fast as it is
 * copied comes to an end.  A file without a size is copied to its end, since
 * those of /proc have none.
 */
#include "fs/copy_bytes.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
	/* The kernel copies these from the page cache in about 2 ms. */
	RANGE_BYTES = 8 << 20,
	BLOCK_BYTES = 512, /* of st_blocks */
};

void weft__copy_bytes_begin(struct weft__copy_bytes *bytes, int from, int to,
			    const struct stat *status, uint64_t bytes_max,
			    char *buffer)
{
	uint64_t size = (uint64_t)status->st_size;
	uint64_t allocated = (uint64_t)status->st_blocks * BLOCK_BYTES;

	*bytes = (struct weft__copy_bytes){
		.from = from,
		.to = to,
		.size = size ? size : UINT64_MAX,
		.bytes_max = bytes_max,
		.buffer = buffer,
	};
	bytes->sparse = allocated < size;
	bytes->ranged = size > WEFT__COPY_BUFFER_BYTES;
	if (!bytes->sparse)
		bytes->until = bytes->size;
}

int weft__copy_bytes_clone(struct weft__copy_bytes *bytes)
{
	if (bytes->size == UINT64_MAX || bytes->size > bytes->bytes_max ||
	    ioctl(bytes->to, FICLONE, bytes->from) < 0)
		return 0;
	bytes->done = bytes->size;
	bytes->ended = true;
	return 1;
}

/* ---- Holes --------------------------------------------------------------- */

/* The size of the copy: as much as the original still has. */
static int size_set(struct weft__copy_bytes *bytes)
{
	struct stat status;
	uint64_t size = bytes->size;

	if (fstat(bytes->from, &status) < 0)
		return -errno;
	if ((uint64_t)status.st_size < size)
		size = (uint64_t)status.st_size;
	if (size < bytes->at)
		size = bytes->at;
	return ftruncate(bytes->to, (off_t)size) < 0 ? -errno : 0;
}

static int bytes_end(struct weft__copy_bytes *bytes)
{
	bytes->ended = true;
	return bytes->sparse ? size_set(bytes) : 0;
}

/* Goes to the next data: 1; 0: there is none. */
static int data_find(struct weft__copy_bytes *bytes)
{
	off_t hole, data = lseek(bytes->from, (off_t)bytes->at, SEEK_DATA);

	if (data < 0 && errno == ENXIO)
		return 0;
	if (data < 0) {
		/* The file system cannot tell: all of it is data. */
		bytes->until = bytes->size;
		return 1;
	}
	/* The file grew meanwhile. */
	if ((uint64_t)data >= bytes->size)
		return 0;
	bytes->at = (uint64_t)data;
	hole = lseek(bytes->from, data, SEEK_HOLE);
	bytes->until = bytes->size;
	if (hole > data && (uint64_t)hole < bytes->size)
		bytes->until = (uint64_t)hole;
	return 1;
}

/* ---- Pieces -------------------------------------------------------------- */

static bool is_final(int error)
{
	return error == ENOSPC || error == EDQUOT || error == EIO ||
	       error == EFBIG;
}

/* Bytes that were copied; 0: another way is to be tried. */
static int64_t range_copy(struct weft__copy_bytes *bytes, size_t n)
{
	off_t from = (off_t)bytes->at, to = from;
	ssize_t r;

	do
		r = copy_file_range(bytes->from, &from, bytes->to, &to,
				    n < RANGE_BYTES ? n : RANGE_BYTES, 0);
	while (r < 0 && errno == EINTR);
	if (r > 0)
		return r;
	if (r < 0 && is_final(errno))
		return -errno;
	bytes->ranged = false;
	return 0;
}

static ssize_t piece_read(struct weft__copy_bytes *bytes, size_t n)
{
	ssize_t r;

	do
		r = pread(bytes->from, bytes->buffer, n, (off_t)bytes->at);
	while (r < 0 && errno == EINTR);
	/* Some files of the kernel's are like pipes. */
	while (r < 0 && (errno == ESPIPE || errno == EINTR))
		r = read(bytes->from, bytes->buffer, n);
	return r < 0 ? -errno : r;
}

static int piece_write(const struct weft__copy_bytes *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t r = pwrite(bytes->to, bytes->buffer + done, n - done,
				   (off_t)(bytes->at + done));

		if (r < 0 && errno != EINTR)
			return -errno;
		if (r == 0)
			return -EIO;
		if (r > 0)
			done += (size_t)r;
	}
	return 0;
}

static int64_t buffer_copy(struct weft__copy_bytes *bytes, size_t n)
{
	ssize_t got = piece_read(bytes, n < WEFT__COPY_BUFFER_BYTES ?
						n :
						WEFT__COPY_BUFFER_BYTES);
	int r;

	if (got <= 0)
		return got;
	if ((uint64_t)got > bytes->bytes_max - bytes->done)
		return -EFBIG;
	r = piece_write(bytes, (size_t)got);
	return r < 0 ? r : got;
}

int weft__copy_bytes_step(struct weft__copy_bytes *bytes)
{
	uint64_t left;
	int64_t n = 0;

	if (bytes->ended)
		return 0;
	if (bytes->at >= bytes->size ||
	    (bytes->at >= bytes->until && !data_find(bytes)))
		return bytes_end(bytes);
	left = bytes->until - bytes->at;
	if (left > SIZE_MAX / 2)
		left = SIZE_MAX / 2;
	if (bytes->size != UINT64_MAX && left > bytes->bytes_max - bytes->done)
		return -EFBIG;
	if (bytes->ranged)
		n = range_copy(bytes, (size_t)left);
	if (n == 0)
		n = buffer_copy(bytes, (size_t)left);
	if (n < 0)
		return (int)n;
	bytes->at += (uint64_t)n;
	bytes->done += (uint64_t)n;
	/* It ends here, whatever its size was: it shrank, or is one of /sys. */
	if (n == 0)
		bytes->size = bytes->at;
	return bytes->at == bytes->size ? bytes_end(bytes) : 1;
}
