/* SPDX-License-Identifier: MIT */
/*
 * From a request to its answer.  Each function here returns an HTTP status.
 */
#include <errno.h>

#include "answer.h"
#include "listing.h"

static int status_of_error(int error)
{
	switch (-error) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return HTTP_STATUS_NOT_FOUND;
	case EACCES:
	case EPERM:
	case EXDEV: /* the path leads out of the root */
	case ELOOP:
	case ENXIO: /* a socket, or a device without a driver */
	case ENODEV:
		return HTTP_STATUS_FORBIDDEN;
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return HTTP_STATUS_SERVICE_UNAVAILABLE;
	default:
		return HTTP_STATUS_INTERNAL_SERVER_ERROR;
	}
}

/* Only files and directories are sent, nothing else that a file system
 * holds. */
static int answer_file(const struct request *request, struct response *response)
{
	const struct file *file = &response->file;
	uint64_t size = (uint64_t)file->stat.st_size;

	if (!S_ISREG(file->stat.st_mode))
		return HTTP_STATUS_FORBIDDEN;
	response->range = (struct range){ 0, size };
	if (file_unchanged(file, request))
		return HTTP_STATUS_NOT_MODIFIED;
	if (request->parser.method != HTTP_GET || !request->range.at ||
	    !file_range_applies(file, request))
		return HTTP_STATUS_OK;
	switch (range_parse(request->range, size, &response->range)) {
	case RANGE_PART:
		return HTTP_STATUS_PARTIAL_CONTENT;
	case RANGE_UNSATISFIABLE:
		return HTTP_STATUS_RANGE_NOT_SATISFIABLE;
	default:
		return HTTP_STATUS_OK;
	}
}

/* Answers with the index.html of the directory, or else with a listing.  If its
 * name lacks the slash at the end, relative links in the page would be wrong,
 * so the client is redirected to the name with the slash. */
static int answer_directory(int root_fd, const struct request *request,
			    struct response *response)
{
	char *end = response->path + strlen(response->path);
	struct file directory = response->file;
	int r;

	if (end[-1] != '/')
		return HTTP_STATUS_MOVED_PERMANENTLY;
	memcpy(end, PATH_INDEX, sizeof(PATH_INDEX));
	response->file.fd = -1;
	r = file_open(root_fd, response->path, &response->file);
	if (r == -ENOENT) {
		*end = '\0';
		r = listing_make(directory.fd, response->path, &response->page,
				 &response->page_bytes);
	}
	file_close(&directory);
	if (r < 0)
		return status_of_error(r);
	return response->page ? HTTP_STATUS_OK : answer_file(request, response);
}

static int find(int root_fd, const struct request *request,
		struct response *response)
{
	int status, r;

	if (request->parser.method != HTTP_GET &&
	    request->parser.method != HTTP_HEAD)
		return HTTP_STATUS_METHOD_NOT_ALLOWED;
	status = path_from_target(request->target, response->path);
	if (status)
		return status;
	r = file_open(root_fd, response->path, &response->file);
	if (r < 0)
		return status_of_error(r);
	return S_ISDIR(response->file.stat.st_mode) ?
		       answer_directory(root_fd, request, response) :
		       answer_file(request, response);
}

void answer(int root_fd, const struct request *request,
	    struct response *response)
{
	response->status = find(root_fd, request, response);
}
