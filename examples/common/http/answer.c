/* SPDX-License-Identifier: MIT */
/*
 * From a request to its answer.  Each function here returns an HTTP status.
 */
#include <errno.h>
#include <stdlib.h>

#include "answer.h"
#include "listing.h"
#include "status.h"

static int status_of_error(int error)
{
	switch (-error) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return STATUS_NOT_FOUND;
	case EACCES:
	case EPERM:
	case EXDEV: /* the path leads out of the root */
	case ELOOP:
	case ENXIO: /* a socket, or a device without a driver */
	case ENODEV:
		return STATUS_FORBIDDEN;
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
		return STATUS_SERVICE_UNAVAILABLE;
	default:
		return STATUS_INTERNAL_SERVER_ERROR;
	}
}

/* Only files and directories are sent, nothing else that a file system
 * holds. */
static int answer_file(const struct asked *asked, struct answer *answer)
{
	const struct file *file = &answer->file;
	uint64_t size = (uint64_t)file->stat.st_size;

	if (!S_ISREG(file->stat.st_mode))
		return STATUS_FORBIDDEN;
	answer->range = (struct range){ 0, size };
	if (!file_expected(file, asked))
		return STATUS_PRECONDITION_FAILED;
	if (file_unchanged(file, asked))
		return STATUS_NOT_MODIFIED;
	if (asked->method != METHOD_GET || !asked->range.at ||
	    !file_range_applies(file, asked))
		return STATUS_OK;
	switch (range_parse(asked->range, size, &answer->range)) {
	case RANGE_PART:
		return STATUS_PARTIAL_CONTENT;
	case RANGE_UNSATISFIABLE:
		return STATUS_RANGE_NOT_SATISFIABLE;
	default:
		return STATUS_OK;
	}
}

/* Answers with the index.html of the directory, or else with a listing.  If its
 * name lacks the slash at the end, relative links in the page would be wrong,
 * so the client is redirected to the name with the slash. */
static int answer_directory(int root_fd, const struct asked *asked,
			    struct answer *answer)
{
	char *end = answer->path + strlen(answer->path);
	struct file directory = answer->file;
	int r;

	if (end[-1] != '/')
		return STATUS_MOVED_PERMANENTLY;
	memcpy(end, PATH_INDEX, sizeof(PATH_INDEX));
	answer->file.fd = -1;
	r = file_open(root_fd, answer->path, &answer->file);
	if (r == -ENOENT) {
		*end = '\0';
		r = listing_make(directory.fd, answer->path, &answer->page,
				 &answer->page_bytes);
	}
	file_close(&directory);
	if (r < 0)
		return status_of_error(r);
	return answer->page ? STATUS_OK : answer_file(asked, answer);
}

static int find(int root_fd, const struct asked *asked, struct answer *answer)
{
	int status, r;

	if (asked->method != METHOD_GET && asked->method != METHOD_HEAD)
		return STATUS_METHOD_NOT_ALLOWED;
	status = path_from_url(asked->path, answer->path);
	if (status)
		return status;
	r = file_open(root_fd, answer->path, &answer->file);
	if (r < 0)
		return status_of_error(r);
	return S_ISDIR(answer->file.stat.st_mode) ?
		       answer_directory(root_fd, asked, answer) :
		       answer_file(asked, answer);
}

void answer_init(struct answer *answer)
{
	answer->file.fd = -1;
	answer->page = NULL;
}

void answer_find(struct answer *answer, int root_fd, const struct asked *asked)
{
	answer->status = find(root_fd, asked, answer);
}

void answer_fini(struct answer *answer)
{
	file_close(&answer->file);
	free(answer->page);
}
