/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "file.h"

/* Of text that is kept. */
#define TEXT_BYTES_MAX (16u << 20)

static _Atomic(size_t) text_bytes_all; /* room for text, of all files */

bool text_is_much(void)
{
	return text_bytes_all > TEXT_BYTES_MAX;
}

static void text_free(struct file *file)
{
	free(file->text);
	text_bytes_all -= file->text_room;
	file->text = NULL;
	file->text_bytes = file->text_room = 0;
}

void file_print(struct file *file, const char *data, size_t bytes)
{
	size_t room = file->text_room ? file->text_room : 64;

	while (room - file->text_bytes < bytes)
		room *= 2;
	if (room != file->text_room) {
		char *text = realloc(file->text, room);

		if (!text)
			abort();
		text_bytes_all += room - file->text_room;
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

int text_deliver(struct files *files, struct file *file)
{
	int r = out_add(files, file->text, file->text_bytes);

	text_free(file);
	return r;
}

int file_deliver(struct files *files, struct file *file, bool last)
{
	const char *complaint = file->complaint;
	int r = text_deliver(files, file);

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
