/* SPDX-License-Identifier: MIT */
/*
 * Content types by the extension of the name, frequent ones first.
 */
#include <string.h>
#include <strings.h>

#include "mime.h"

static const struct {
	const char *extension;
	const char *type;
} types[] = {
	{ "html", "text/html; charset=utf-8" },
	{ "css", "text/css; charset=utf-8" },
	{ "js", "text/javascript; charset=utf-8" },
	{ "png", "image/png" },
	{ "jpg", "image/jpeg" },
	{ "svg", "image/svg+xml" },
	{ "json", "application/json" },
	{ "txt", "text/plain; charset=utf-8" },
	{ "md", "text/markdown; charset=utf-8" },
	{ "htm", "text/html; charset=utf-8" },
	{ "mjs", "text/javascript; charset=utf-8" },
	{ "jpeg", "image/jpeg" },
	{ "gif", "image/gif" },
	{ "webp", "image/webp" },
	{ "avif", "image/avif" },
	{ "ico", "image/vnd.microsoft.icon" },
	{ "woff2", "font/woff2" },
	{ "woff", "font/woff" },
	{ "ttf", "font/ttf" },
	{ "xml", "application/xml" },
	{ "csv", "text/csv; charset=utf-8" },
	{ "pdf", "application/pdf" },
	{ "wasm", "application/wasm" },
	{ "mp3", "audio/mpeg" },
	{ "ogg", "audio/ogg" },
	{ "mp4", "video/mp4" },
	{ "webm", "video/webm" },
	{ "gz", "application/gzip" },
	{ "zip", "application/zip" },
	{ "tar", "application/x-tar" },
};

const char *mime_type(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash : path, '.');

	for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcasecmp(dot + 1, types[i].extension) == 0)
			return types[i].type;
	return "application/octet-stream";
}
