/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fnmatch.h>
#include <string.h>

#include "find.h"

static char letter_of(unsigned char type)
{
	switch (type) {
	case DT_BLK:
		return 'b';
	case DT_CHR:
		return 'c';
	case DT_DIR:
		return 'd';
	case DT_FIFO:
		return 'p';
	case DT_LNK:
		return 'l';
	case DT_REG:
		return 'f';
	case DT_SOCK:
		return 's';
	}
	return '?';
}

static bool has_size(const struct find_options *options, uint64_t bytes)
{
	uint64_t size = (bytes + options->size_unit - 1) / options->size_unit;

	if (options->size_sign == '+')
		return size > options->size;
	if (options->size_sign == '-')
		return size < options->size;
	return size == options->size;
}

static bool is_newer(const struct find_options *options,
		     const struct statx_timestamp *time)
{
	if (time->tv_sec != options->newer_s)
		return time->tv_sec > options->newer_s;
	return time->tv_nsec > options->newer_ns;
}

/* The name of a root is the last part of its path. */
static const char *name_of(const struct weft_walk_entry *entry)
{
	const char *slash = entry->depth ? NULL : strrchr(entry->name, '/');

	return slash && slash[1] ? slash + 1 : entry->name;
}

bool find_matches(const struct find_options *options,
		  const struct weft_walk_entry *entry)
{
	if (options->type && letter_of(entry->type) != options->type)
		return false;
	if (options->name && fnmatch(options->name, name_of(entry), 0) != 0)
		return false;
	if (options->size_sign && !has_size(options, entry->status->stx_size))
		return false;
	return !options->has_newer ||
	       is_newer(options, &entry->status->stx_mtime);
}
