/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "status.h"

static const struct {
	enum status status;
	const char *text;
} texts[] = {
	{ STATUS_OK, "OK" },
	{ STATUS_PARTIAL_CONTENT, "Partial Content" },
	{ STATUS_MOVED_PERMANENTLY, "Moved Permanently" },
	{ STATUS_NOT_MODIFIED, "Not Modified" },
	{ STATUS_BAD_REQUEST, "Bad Request" },
	{ STATUS_FORBIDDEN, "Forbidden" },
	{ STATUS_NOT_FOUND, "Not Found" },
	{ STATUS_METHOD_NOT_ALLOWED, "Method Not Allowed" },
	{ STATUS_REQUEST_TIMEOUT, "Request Timeout" },
	{ STATUS_PRECONDITION_FAILED, "Precondition Failed" },
	{ STATUS_PAYLOAD_TOO_LARGE, "Payload Too Large" },
	{ STATUS_URI_TOO_LONG, "URI Too Long" },
	{ STATUS_RANGE_NOT_SATISFIABLE, "Range Not Satisfiable" },
	{ STATUS_HEADER_TOO_LARGE, "Request Header Fields Too Large" },
	{ STATUS_INTERNAL_SERVER_ERROR, "Internal Server Error" },
	{ STATUS_NOT_IMPLEMENTED, "Not Implemented" },
	{ STATUS_SERVICE_UNAVAILABLE, "Service Unavailable" },
	{ STATUS_VERSION_NOT_SUPPORTED, "HTTP Version Not Supported" },
};

const char *status_text(int status)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if ((int)texts[i].status == status)
			return texts[i].text;
	return "";
}
