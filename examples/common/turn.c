/* SPDX-License-Identifier: MIT */
/*
 * Turns: the text of all files is kept until those before are printed, but if
 * there is much of it, only the first file that is not done goes on, and prints
 * its text as it comes.  All others wait for their turn.
 *
 * The pipeline prints batches in their order, so the oldest batch is printed by
 * no other task while its files are read.
 */
#include <weft/weft.h>

#include "batch.h"
#include "file.h"

static bool is_turn(const struct files *files, const struct batch *batch,
		    unsigned index)
{
	if (batch->number != files->batches_printed)
		return false;
	for (unsigned i = 0; i < index; i++)
		if (batch->list[i].large && !batch->list[i].done)
			return false;
	return true;
}

static int turn_wait(struct files *files, const struct batch *batch,
		     unsigned index)
{
	int r = weft_mutex_lock(&files->turn);

	if (r < 0)
		return r;
	while (r == 0 && !is_turn(files, batch, index))
		r = weft_cond_wait(&files->turned, &files->turn);
	weft_mutex_unlock(&files->turn);
	return r;
}

/* Those that wait look whether it is their turn. */
int turn_end(struct files *files, struct file *file)
{
	int r = weft_mutex_lock(&files->turn);

	if (r < 0)
		return r;
	if (file)
		file->done = true;
	else
		files->batches_printed++;
	weft_cond_broadcast(&files->turned);
	weft_mutex_unlock(&files->turn);
	return 0;
}

int file_print_early(struct files *files, struct file *file)
{
	struct batch *batch = file->batch;
	unsigned index = (unsigned)(file - batch->list);
	int r = text_is_much() ? turn_wait(files, batch, index) : 0;

	if (r < 0 || !text_is_much())
		return r;
	for (; r == 0 && batch->printed < index; batch->printed++)
		r = file_deliver(files, &batch->list[batch->printed], false);
	return r < 0 ? r : text_deliver(files, file);
}
