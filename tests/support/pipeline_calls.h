/* SPDX-License-Identifier: MIT */
/*
 * Pipelines, made at a place: of one item, which is a read, and over a file,
 * whose work waits.
 */
#ifndef WEFT_TESTS_SUPPORT_PIPELINE_CALLS_H
#define WEFT_TESTS_SUPPORT_PIPELINE_CALLS_H

#include "tests/support/io_transfers.h"

struct piping {
	struct place *place;
	bool made;
};

static inline int piping_next(void *arg, void *item, size_t *ret_bytes)
{
	struct piping *piping = arg;

	(void)item;
	(void)ret_bytes;
	return !piping->made && (piping->made = true);
}
static inline int piping_work(void *arg, void *item)
{
	(void)item;
	return (int)make_read_all(((struct piping *)arg)->place);
}
static inline ssize_t make_pipeline_run(struct place *place)
{
	struct weft_pipeline pipeline = WEFT_PIPELINE_INIT(char);
	struct piping piping = { .place = place };

	pipeline.next = piping_next;
	pipeline.work = piping_work;
	pipeline.arg = &piping;
	return weft_pipeline_run(&pipeline);
}

static inline int block_wait(void *arg, struct weft_block *block)
{
	(void)block;
	return weft_event_wait(&((struct place *)arg)->event);
}
static inline ssize_t make_pipeline_file(struct place *place)
{
	struct weft_file_pipeline pipeline = WEFT_FILE_PIPELINE_INIT;

	pipeline.from_fd = place->fd;
	pipeline.work = block_wait;
	pipeline.arg = place;
	return weft_pipeline_file(&pipeline);
}

#endif
