/* SPDX-License-Identifier: MIT */
#include "fields.h"
#include "mime.h"

static void put_field(struct text *out, const char *name, const char *value)
{
	text_put(out, name);
	text_put(out, value);
	text_put(out, "\r\n");
}

void fields_put_status(struct text *out, int status)
{
	text_put_number(out, (uint64_t)status);
	text_put(out, " ");
	text_put(out, status_text(status));
}

void fields_put_note(struct text *out, int status)
{
	fields_put_status(out, status);
	text_put(out, "\n");
}

/* Type and length of the content that is sent, or would be but for HEAD. */
static void put_content(struct text *out, const struct answer *answer)
{
	uint64_t bytes = strlen("404 \n") + strlen(status_text(answer->status));
	const char *type = "text/plain";

	if (answer->page) {
		bytes = answer->page_bytes;
		type = "text/html; charset=utf-8";
	} else if (answer_sends_file(answer)) {
		bytes = answer->range.bytes;
		type = mime_type(answer->path);
	}
	put_field(out, "Content-Type: ", type);
	text_put(out, "Content-Length: ");
	text_put_number(out, bytes);
	text_put(out, "\r\n");
}

/* The values with which the client may later ask whether the file has
 * changed. */
static void put_validators(struct text *out, const struct file *file,
			   struct date *cache)
{
	const char *date = date_text(cache, file->stat.st_mtim.tv_sec);

	if (*date)
		put_field(out, "Last-Modified: ", date);
	put_field(out, "ETag: ", file->etag);
	put_field(out, "Accept-Ranges: ", "bytes");
}

static void put_range(struct text *out, const struct answer *answer)
{
	const struct range *range = &answer->range;

	text_put(out, "Content-Range: bytes ");
	if (answer->status == STATUS_PARTIAL_CONTENT) {
		text_put_number(out, range->first);
		text_put(out, "-");
		text_put_number(out, range->first + range->bytes - 1);
	} else {
		text_put(out, "*");
	}
	text_put(out, "/");
	text_put_number(out, (uint64_t)answer->file.stat.st_size);
	text_put(out, "\r\n");
}

void fields_put(struct text *out, const struct answer *answer,
		struct dates *dates)
{
	put_field(out, "Date: ", date_text(&dates->now, date_now()));
	if (answer->status != STATUS_NOT_MODIFIED)
		put_content(out, answer);
	switch (answer->status) {
	case STATUS_PARTIAL_CONTENT:
	case STATUS_RANGE_NOT_SATISFIABLE:
		put_range(out, answer);
		break;
	case STATUS_MOVED_PERMANENTLY:
		text_put(out, "Location: /");
		text_put_url(out, answer->path);
		text_put(out, "/\r\n");
		break;
	case STATUS_METHOD_NOT_ALLOWED:
		put_field(out, "Allow: ", "GET, HEAD");
		break;
	}
	if (answer_sends_file(answer) || answer->status == STATUS_NOT_MODIFIED)
		put_validators(out, &answer->file, &dates->modified);
}
