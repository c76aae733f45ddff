/* SPDX-License-Identifier: MIT */
/*
 * A pipeline whose items are batches of files.  One job of the pool lists the
 * files of a batch, and another reads the small ones: a job for each would take
 * more time than it waits.  Large files are read by a task each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "file.h"

enum { FILES_MAX = 128 };

struct batch {
	struct files *files;
	unsigned count;
	struct file list[FILES_MAX];
};

static struct weft_lane lane = WEFT_LANE_INIT("files", 0);

static int64_t list_some(void *arg)
{
	struct batch *batch = arg;
	struct files *files = batch->files;
	int r = 1;

	while (batch->count < FILES_MAX && r > 0) {
		r = files->next(files, &batch->list[batch->count]);
		batch->count += r > 0;
	}
	/* An error behind the first is found again by the next call. */
	return batch->count ? 1 : r;
}

static int batch_next(void *arg, void *item, size_t *ret_bytes)
{
	struct batch *batch = item;

	(void)ret_bytes;
	batch->files = arg;
	return (int)weft_blocking_lane(&lane, list_some, batch);
}

static int64_t read_small(void *arg)
{
	struct batch *batch = arg;
	struct room room = { 0 };

	for (unsigned i = 0; i < batch->count; i++)
		file_read_small(batch->files, &batch->list[i], &room);
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
	struct batch *batch = item;
	int64_t result = weft_blocking_lane(&lane, read_small, batch);

	if (result < 0)
		return (int)result;
	WEFT_SCOPE (reading, &result)
		for (unsigned i = 0; i < batch->count; i++) {
			struct large large = { arg, &batch->list[i] };
			int r = large.file->large ?
					WEFT_GO(reading, read_large, large) :
					0;

			if (r < 0)
				weft_scope_fail(reading, r);
		}
	return (int)result;
}

static int batch_print(void *arg, void *item)
{
	struct batch *batch = item;
	struct files *files = arg;
	int r = 0;

	for (unsigned i = 0; i < batch->count && r == 0; i++)
		r = file_deliver(files, &batch->list[i], i + 1 == batch->count);
	return r;
}

static void batch_drop(void *arg, void *item)
{
	struct batch *batch = item;

	(void)arg;
	for (unsigned i = 0; i < batch->count; i++) {
		free(batch->list[i].path);
		free(batch->list[i].note);
		free(batch->list[i].text);
	}
}

int files_run(struct files *files)
{
	struct weft_pipeline pipeline = WEFT_PIPELINE_INIT(struct batch);

	pipeline.next = batch_next;
	pipeline.work = batch_work;
	pipeline.deliver = batch_print;
	pipeline.drop = batch_drop;
	pipeline.arg = files;
	return weft_pipeline_run(&pipeline);
}
