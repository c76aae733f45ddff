/* SPDX-License-Identifier: MIT */
/*
 * Opening files, and the conditions of RFC 9110, 13, under which they are not
 * sent.
 *
 * The kernel keeps this server below the root: with RESOLVE_BENEATH neither
 * "..", nor an absolute path, nor a symbolic link on the way leads out of it,
 * even if other programs rename files meanwhile.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <weft/weft.h>

#include "date.h"
#include "file.h"

static int open_beneath(int root_fd, const char *path, struct file *file)
{
	/* O_NONBLOCK: otherwise opening a FIFO waits for a writer. */
	const struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};

	file->fd = weft_openat2(root_fd, path, &how, sizeof(how));
	if (file->fd < 0)
		return file->fd;
	return weft_fstat(file->fd, &file->stat) < 0 ? -EIO : 0;
}

static void set_etag(struct file *file)
{
	struct text text = { file->etag, file->etag + sizeof(file->etag) - 1 };

	text_put(&text, "\"");
	text_put_number(&text, (uint64_t)file->stat.st_mtim.tv_sec);
	text_put(&text, ".");
	text_put_number(&text, (uint64_t)file->stat.st_mtim.tv_nsec);
	text_put(&text, "-");
	text_put_number(&text, (uint64_t)file->stat.st_size);
	text_put(&text, "\"");
	*text.at = '\0';
}

int file_open(int root_fd, const char *path, struct file *file)
{
	int r = open_beneath(root_fd, path, file);

	if (r < 0)
		file_close(file);
	else
		set_etag(file);
	return r;
}

void file_close(struct file *file)
{
	if (file->fd >= 0)
		weft_close(file->fd);
	file->fd = -1;
}

/* The list contains tags in quotes; a tag is in the list if its text is.  One
 * with W/ before it is weak. */
static bool list_has_tag(struct span list, const char *etag, bool weak)
{
	const char *end = list.at + list.bytes, *at = list.at;

	if (span_equals(list, "*"))
		return true;
	while ((at = memmem(at, (size_t)(end - at), etag, strlen(etag)))) {
		if (weak || at - list.at < 2 || memcmp(at - 2, "W/", 2) != 0)
			return true;
		at += strlen(etag);
	}
	return false;
}

static bool lines_have_tag(const struct span *lines, const char *etag,
			   bool weak)
{
	for (unsigned i = 0; i < ASKED_LINES && lines[i].at; i++)
		if (list_has_tag(lines[i], etag, weak))
			return true;
	return false;
}

/* If both header fields are there, the tag decides. */
bool file_expected(const struct file *file, const struct asked *asked)
{
	time_t since;

	if (asked->if_match[0].at)
		return lines_have_tag(asked->if_match, file->etag, false);
	return !asked->if_unmodified_since.at ||
	       !date_parse(asked->if_unmodified_since, &since) ||
	       file->stat.st_mtim.tv_sec <= since;
}

/* The same. */
bool file_unchanged(const struct file *file, const struct asked *asked)
{
	time_t since;

	if (asked->if_none_match[0].at)
		return lines_have_tag(asked->if_none_match, file->etag, true);
	return asked->if_modified_since.at &&
	       date_parse(asked->if_modified_since, &since) &&
	       file->stat.st_mtim.tv_sec <= since;
}

/* A date is not a strong validator if the file may have changed twice in that
 * second.  So only a tag is accepted, and with a date the whole file is
 * sent. */
bool file_range_applies(const struct file *file, const struct asked *asked)
{
	return !asked->if_range.at || span_equals(asked->if_range, file->etag);
}
