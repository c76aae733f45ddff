/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "batch.h"

void batch_free(struct batch *batch)
{
	for (unsigned i = 0; batch && i < batch->count; i++) {
		free(batch->list[i].path);
		free(batch->list[i].note);
		free(batch->list[i].text);
	}
	free(batch);
}

static int batch_send(struct files *files)
{
	int r = weft_chan_send(&files->batches, &files->filling);

	if (r == 0)
		files->filling = NULL;
	return r;
}

int files_add(struct files *files, char *path, char *note, int error)
{
	struct batch *batch = files->filling;

	if (!batch)
		batch = files->filling = calloc(1, sizeof(*batch));
	if (!batch || !path) {
		free(path);
		free(note);
		return -ENOMEM;
	}
	batch->list[batch->count++] = (struct file){
		.batch = batch,
		.path = path,
		.note = note,
		.error = error,
	};
	return batch->count == BATCH_FILES_MAX ? batch_send(files) : 0;
}

int64_t batches_list(void *arg)
{
	struct files *files = *(struct files **)arg;
	int r = files->list(files);

	if (r == 0 && files->filling)
		r = batch_send(files);
	weft_chan_close(&files->batches);
	return r;
}
