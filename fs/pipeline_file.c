/* SPDX-License-Identifier: MIT */
/*
 * Pipeline over the blocks of a file: weft_pipeline_run() with steps that read
 * and write.
 *
 *	next	 takes a buffer.  Up to the size that the file has at the start
 *		 it only reckons the offset, and beyond that it reads
 *	work	 reads the block, if next() has not; the caller's work()
 *	deliver	 the caller's deliver(); writes
 *	drop	 gives the buffer back
 *
 * The buffer that was given back last is taken first: it is in the caches, and
 * no more buffers are touched than blocks were in flight together.
 *
 * A block of which bytes are missing is the last: the file has become shorter.
 * It is known before a later block is delivered, since the deliveries are in
 * order.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/file.h>
#include <weft/io.h>

#include "fs/pipeline.h"
#include "runtime/base/memory.h"
#include "runtime/sched/wait.h"

#define BLOCK_BYTES_MAX ((size_t)1 << 30)

/* While a buffer is free, its first bytes. */
struct buffer {
	struct buffer *next;
};

struct item {
	struct weft_block block;
	struct buffer *buffer;
	bool is_read;
};

struct files {
	struct weft_file_pipeline with; /* immutable */
	struct weft_lane lane;		/* of the work, if that blocks */
	int fd;				/* immutable: it is read from */
	bool is_regular;		/* immutable */
	struct weft__lock lock;
	struct buffer *free; /* under lock */
	uint64_t last;	     /* under lock: the index of the last block */
	uint64_t index;	     /* of next(): of the next block */
	uint64_t at, sized;  /* likewise: its offset; the size */
	bool at_end;	     /* likewise */
	struct weft_replace to;
	uint64_t written; /* of deliver() */
};

/* ---- Buffers ------------------------------------------------------------- */

static size_t buffer_bytes(const struct weft_file_pipeline *with)
{
	size_t align = _Alignof(max_align_t);
	size_t bytes = with->block_bytes;

	bytes = (bytes + align - 1) & ~(align - 1);
	bytes += (with->out_bytes_max + align - 1) & ~(align - 1);
	return bytes;
}

static char *buffer_out(const struct files *files, struct buffer *buffer)
{
	size_t align = _Alignof(max_align_t);

	return (char *)buffer +
	       ((files->with.block_bytes + align - 1) & ~(align - 1));
}

static void buffer_put(struct files *files, struct buffer *buffer)
{
	weft__lock_take(&files->lock);
	buffer->next = files->free;
	files->free = buffer;
	weft__lock_drop(&files->lock);
}

/* There is one for each block in flight. */
static struct buffer *buffer_take(struct files *files)
{
	struct buffer *buffer;

	weft__lock_take(&files->lock);
	buffer = files->free;
	files->free = buffer->next;
	weft__lock_drop(&files->lock);
	return buffer;
}

/* ---- Steps --------------------------------------------------------------- */

/* Lowers the index of the last block; returns it. */
static uint64_t last_lower(struct files *files, uint64_t index)
{
	uint64_t last;

	weft__lock_take(&files->lock);
	if (index < files->last)
		files->last = index;
	last = files->last;
	weft__lock_drop(&files->lock);
	return last;
}

static bool is_beyond(struct files *files, uint64_t index)
{
	return index > last_lower(files, UINT64_MAX);
}

/* Reads on from `at`: the bytes that came, fewer than asked for only at the
 * end. */
static ssize_t read_on(struct files *files, char *data, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n =
			files->is_regular ?
				weft_pread(files->fd, data + done, bytes - done,
					   (off_t)(files->at + done)) :
				weft_read(files->fd, data + done, bytes - done);

		if (n < 0)
			return n;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	files->at_end = done < bytes;
	return (ssize_t)done;
}

static int block_read_on(struct files *files, struct item *item)
{
	ssize_t n;

	if (files->at_end)
		return 0;
	n = read_on(files, item->block.data, files->with.block_bytes);
	item->is_read = true;
	item->block.bytes = n > 0 ? (size_t)n : 0;
	return n < 0 ? (int)n : n > 0;
}

/* 1, 0 at the end, or an error. */
static int block_find(struct files *files, struct item *item)
{
	uint64_t left = files->sized - files->at;

	if (is_beyond(files, files->index))
		return 0;
	if (left == 0)
		return block_read_on(files, item);
	item->block.bytes = left < files->with.block_bytes ?
				    (size_t)left :
				    files->with.block_bytes;
	/* Only the last block may be smaller. */
	if (left < files->with.block_bytes)
		return block_read_on(files, item);
	return 1;
}

static int step_next(void *arg, void *of, size_t *ret_bytes)
{
	struct files *files = arg;
	struct item *item = of;
	struct weft_block *block = &item->block;
	int r;

	item->buffer = buffer_take(files);
	block->data = item->buffer;
	block->index = files->index;
	block->offset = files->at;
	r = block_find(files, item);
	if (r <= 0) {
		buffer_put(files, item->buffer);
		return r;
	}
	files->index++;
	files->at += block->bytes;
	if (files->at > files->sized)
		files->sized = files->at;
	*ret_bytes = block->bytes;
	return 1;
}

static int block_read(struct files *files, struct weft_block *block)
{
	size_t done;
	int r = weft_pread_all(files->fd, block->data, block->bytes,
			       (off_t)block->offset, &done);

	if (r == -ENODATA) {
		(void)last_lower(files, block->index);
		block->bytes = done;
		return 0;
	}
	return r;
}

static int call_work(void *arg, void *block)
{
	struct files *files = arg;

	return files->with.work(files->with.arg, block);
}

static int step_work(void *arg, void *of)
{
	struct files *files = arg;
	struct item *item = of;
	struct weft_block *block = &item->block;
	int r = item->is_read ? 0 : block_read(files, block);

	if (r < 0 || block->bytes == 0 || is_beyond(files, block->index))
		return r;
	block->out = block->data;
	block->out_bytes = block->bytes;
	if (files->with.out_bytes_max) {
		block->out = buffer_out(files, item->buffer);
		block->out_bytes = 0;
	}
	if (!files->with.work)
		return 0;
	if (files->with.flags & WEFT_PIPELINE_BLOCKING)
		return weft__pipeline_blocking(&files->lane, call_work, files,
					       block);
	return call_work(files, block);
}

static int step_deliver(void *arg, void *of)
{
	struct files *files = arg;
	struct weft_block *block = &((struct item *)of)->block;
	int r = 0;

	if (block->bytes == 0 || is_beyond(files, block->index))
		return 0;
	if (files->with.deliver)
		r = files->with.deliver(files->with.arg, block);
	if (r < 0 || !files->with.to)
		return r;
	r = weft_pwrite_all(files->to.fd, block->out, block->out_bytes,
			    (off_t)files->written, NULL);
	files->written += block->out_bytes;
	return r;
}

static void step_drop(void *arg, void *of)
{
	buffer_put(arg, ((struct item *)of)->buffer);
}

static void step_progress(void *arg, uint64_t items, uint64_t bytes)
{
	struct files *files = arg;

	files->with.progress(files->with.arg, items, bytes);
}

/* ---- The call ------------------------------------------------------------ */

static int steps_complete(const struct weft_runtime *runtime,
			  struct files *files, struct weft_pipeline *ret_steps)
{
	const struct weft_file_pipeline *with = &files->with;

	if (with->block_bytes < sizeof(struct buffer) ||
	    with->block_bytes > BLOCK_BYTES_MAX ||
	    with->out_bytes_max > BLOCK_BYTES_MAX || with->reserved ||
	    with->to_mode > 07777 ||
	    (with->to && (with->flags & WEFT_PIPELINE_UNORDERED)) ||
	    (with->flags & ~(WEFT_PIPELINE_UNORDERED | WEFT_PIPELINE_BLOCKING)))
		return -EINVAL;
	*ret_steps = (struct weft_pipeline)WEFT_PIPELINE_INIT(struct item);
	ret_steps->next = step_next;
	ret_steps->work = step_work;
	ret_steps->deliver = step_deliver;
	ret_steps->drop = step_drop;
	ret_steps->progress = with->progress ? step_progress : NULL;
	ret_steps->arg = files;
	ret_steps->items_max = with->blocks_max;
	ret_steps->tasks = with->tasks;
	ret_steps->flags = with->flags & WEFT_PIPELINE_UNORDERED;
	return weft__pipeline_complete(runtime, ret_steps);
}

/* The kernel reads ahead by itself, and further if it is told. */
static int from_look(struct files *files)
{
	struct stat status;
	int r = weft_fstat(files->fd, &status);

	if (r < 0)
		return r;
	files->is_regular = S_ISREG(status.st_mode);
	files->sized = files->is_regular ? (uint64_t)status.st_size : 0;
	if (files->is_regular)
		(void)posix_fadvise(files->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return 0;
}

static int run_with_buffers(struct files *files, struct weft_pipeline *steps)
{
	const struct weft_allocator *from =
		weft__worker_self()->runtime->memory;
	size_t bytes = buffer_bytes(&files->with);
	char *memory;
	int r;

	if (bytes > SIZE_MAX / steps->items_max)
		return -ENOMEM;
	memory = weft__memory_new(from, bytes * steps->items_max);
	if (!memory)
		return -ENOMEM;
	for (unsigned i = steps->items_max; i-- > 0;)
		buffer_put(files, (void *)(memory + i * bytes));
	r = weft_pipeline_run(steps);
	weft__memory_free(from, memory, bytes * steps->items_max);
	return r;
}

static int run_to(struct files *files, struct weft_pipeline *steps)
{
	struct weft_replace_opts opts = WEFT_REPLACE_OPTS_INIT;
	int r = from_look(files);

	if (r < 0 || !files->with.to)
		return r < 0 ? r : run_with_buffers(files, steps);
	opts.mode = files->with.to_mode;
	r = weft_replace_begin(&files->to, AT_FDCWD, files->with.to, &opts);
	if (r < 0)
		return r;
	r = run_with_buffers(files, steps);
	if (r == 0)
		r = weft_replace_commit(&files->to);
	(void)weft_replace_abort(&files->to);
	return r;
}

int weft_pipeline_file(const struct weft_file_pipeline *pipeline)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);
	struct files files = {
		.last = UINT64_MAX,
		.lane = WEFT_LANE_INIT("pipeline", 0),
	};
	struct weft_pipeline steps;
	int r;

	if (!task)
		return -EPERM;
	r = weft__interrupted(worker, task);
	if (r < 0)
		return r;
	if (!pipeline || pipeline->size != sizeof(*pipeline))
		return -EINVAL;
	files.with = *pipeline;
	files.fd = pipeline->from_fd;
	r = steps_complete(worker->runtime, &files, &steps);
	if (r < 0)
		return r;
	if (!pipeline->from)
		return run_to(&files, &steps);
	files.fd = weft_open(pipeline->from, O_RDONLY, 0);
	if (files.fd < 0)
		return files.fd;
	r = run_to(&files, &steps);
	(void)weft_close(files.fd);
	return r;
}
