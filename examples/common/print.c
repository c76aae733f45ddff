/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "file.h"

void file_print(struct file *file, const char *data, size_t bytes)
{
	size_t room = file->text_room ? file->text_room : 64;

	while (room - file->text_bytes < bytes)
		room *= 2;
	if (room != file->text_room) {
		char *text = realloc(file->text, room);

		if (!text)
			abort();
		file->text = text;
		file->text_room = room;
	}
	memcpy(file->text + file->text_bytes, data, bytes);
	file->text_bytes += bytes;
}

static int out_flush(struct files *files)
{
	int r = weft_write_all(STDOUT_FILENO, files->out, files->out_bytes,
			       NULL);

	files->out_bytes = 0;
	return r;
}

static int out_add(struct files *files, const char *data, size_t bytes)
{
	int r = 0;

	if (bytes > sizeof(files->out) - files->out_bytes)
		r = out_flush(files);
	if (r == 0 && bytes > sizeof(files->out))
		return weft_write_all(STDOUT_FILENO, data, bytes, NULL);
	if (r == 0 && bytes > 0) {
		memcpy(files->out + files->out_bytes, data, bytes);
		files->out_bytes += bytes;
	}
	return r;
}

int file_deliver(struct files *files, struct file *file, bool last)
{
	const char *complaint = file->complaint;
	int r = out_add(files, file->text, file->text_bytes);

	files->printed++;
	files->found += file->found;
	files->failures += file->error < 0 || file->failed;
	if (file->error < 0)
		complaint = strerror(-file->error);
	if (r == 0 && (complaint || last))
		r = out_flush(files);
	if (complaint)
		fprintf(stderr, "%s: %s: %s\n", files->tool, file->path,
			complaint);
	return r;
}
