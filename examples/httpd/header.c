/* SPDX-License-Identifier: MIT */
#include "header.h"
#include "mime.h"

static void put_field(struct text *out, const char *name, const char *value)
{
	text_put(out, name);
	text_put(out, value);
	text_put(out, "\r\n");
}

static void put_status(struct text *out, int status)
{
	text_put_number(out, (uint64_t)status);
	text_put(out, " ");
	text_put(out, http_status_str((enum http_status)status));
}

void header_put_note(struct text *out, int status)
{
	put_status(out, status);
	text_put(out, "\n");
}

/* Type and length of the content that is sent, or would be but for HEAD. */
static void put_content(struct text *out, const struct response *response)
{
	uint64_t bytes =
		strlen("404 \n") +
		strlen(http_status_str((enum http_status)response->status));
	const char *type = "text/plain";

	if (response->page) {
		bytes = response->page_bytes;
		type = "text/html; charset=utf-8";
	} else if (response_sends_file(response)) {
		bytes = response->range.bytes;
		type = mime_type(response->path);
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

static void put_range(struct text *out, const struct response *response)
{
	const struct range *range = &response->range;

	text_put(out, "Content-Range: bytes ");
	if (response->status == HTTP_STATUS_PARTIAL_CONTENT) {
		text_put_number(out, range->first);
		text_put(out, "-");
		text_put_number(out, range->first + range->bytes - 1);
	} else {
		text_put(out, "*");
	}
	text_put(out, "/");
	text_put_number(out, (uint64_t)response->file.stat.st_size);
	text_put(out, "\r\n");
}

void header_put(struct text *out, const struct response *response,
		struct connection *connection)
{
	text_put(out, "HTTP/1.1 ");
	put_status(out, response->status);
	put_field(out, "\r\nDate: ", date_text(&connection->now, date_now()));
	if (response->status != HTTP_STATUS_NOT_MODIFIED)
		put_content(out, response);
	switch (response->status) {
	case HTTP_STATUS_PARTIAL_CONTENT:
	case HTTP_STATUS_RANGE_NOT_SATISFIABLE:
		put_range(out, response);
		break;
	case HTTP_STATUS_MOVED_PERMANENTLY:
		text_put(out, "Location: /");
		text_put_url(out, response->path);
		text_put(out, "/\r\n");
		break;
	case HTTP_STATUS_METHOD_NOT_ALLOWED:
		put_field(out, "Allow: ", "GET, HEAD");
		break;
	}
	if (response_sends_file(response) ||
	    response->status == HTTP_STATUS_NOT_MODIFIED)
		put_validators(out, &response->file, &connection->modified);
	put_field(out, "Connection: ",
		  response->keep_alive ? "keep-alive" : "close");
	text_put(out, "\r\n");
}
