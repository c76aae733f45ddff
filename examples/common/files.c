/* SPDX-License-Identifier: MIT */
/*
 * A pipeline whose items are batches of files, which a task lists beside it.
 * One job of the pool reads the small files of a batch: a job for each would
 * take more time than it waits.  Large files are read by a task each.
 *
 * Memory: 16 MiB of text of all files (see turn.c), what each processor adds to
 * that in one read, and a buffer for each large file that is read.  A line, and
 * what is found in a pipe or a device, are kept as a whole.
 *
 *	task of list() --- channel of batches ---> pipeline
 */
#include <errno.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "batch.h"
#include "file.h"

/* Batches that wait for the pipeline; large files of a batch that are read.
 * Those before one that waits for its turn have begun. */
enum { BATCHES_MAX = 8, LARGE_MAX = 16 };

/* A batch on the way through the pipeline. */
struct item {
	struct files *files;
	struct batch *batch;
};

static struct weft_lane lane = WEFT_LANE_INIT("files", 0);

static int batch_next(void *arg, void *item, size_t *ret_bytes)
{
	struct item *next = item;
	int r;

	(void)ret_bytes;
	next->files = arg;
	r = weft_chan_recv(&next->files->batches, &next->batch);
	if (r < 0)
		return r == -EPIPE ? 0 : r;
	next->batch->number = next->files->batches_taken++;
	return 1;
}

static int64_t read_small(void *arg)
{
	const struct item *item = arg;
	struct batch *batch = item->batch;
	struct room room = { 0 };

	for (unsigned i = 0; i < batch->count; i++)
		file_read_small(item->files, &batch->list[i], &room);
	free(room.data);
	return 0;
}

struct large {
	struct files *files;
	struct file *file;
};

static int64_t read_large(void *arg)
{
	struct large *large = arg;

	return file_read_large(large->files, large->file);
}

static int batch_work(void *arg, void *item)
{
	struct batch *batch = ((struct item *)item)->batch;
	int64_t result = weft_blocking_lane(&lane, read_small, item);

	if (result < 0)
		return (int)result;
	WEFT_SCOPE (reading, &result) {
		int r = weft_scope_limit(reading, LARGE_MAX);

		for (unsigned i = 0; i < batch->count && r == 0; i++) {
			struct large large = { arg, &batch->list[i] };

			if (large.file->large)
				r = WEFT_GO(reading, read_large, large);
		}
		if (r < 0)
			weft_scope_fail(reading, r);
	}
	return (int)result;
}

static int batch_print(void *arg, void *item)
{
	struct batch *batch = ((struct item *)item)->batch;
	int r = 0;

	for (unsigned i = batch->printed; i < batch->count && r == 0; i++)
		r = file_deliver(arg, &batch->list[i], i + 1 == batch->count);
	return r < 0 ? r : turn_end(arg, NULL);
}

static void batch_drop(void *arg, void *item)
{
	(void)arg;
	batch_free(((struct item *)item)->batch);
}

static int pipeline_run(struct files *files)
{
	struct weft_pipeline pipeline = WEFT_PIPELINE_INIT(struct item);

	pipeline.next = batch_next;
	pipeline.work = batch_work;
	pipeline.deliver = batch_print;
	pipeline.drop = batch_drop;
	pipeline.arg = files;
	return weft_pipeline_run(&pipeline);
}

int files_run(struct files *files)
{
	struct batch *room[BATCHES_MAX], *left;
	int64_t result;
	int r;

	files->batches = (struct weft_chan)WEFT_CHAN_INIT(room);
	WEFT_SCOPE (listing, &result) {
		r = WEFT_GO(listing, batches_list, files);
		if (r == 0)
			r = pipeline_run(files);
		if (r < 0)
			weft_scope_fail(listing, r);
	}
	/* After an error. */
	batch_free(files->filling);
	while (weft_chan_try_recv(&files->batches, &left) == 0)
		batch_free(left);
	return (int)result;
}
