/* SPDX-License-Identifier: MIT */
/*
 * A directory as a sorted page of links, without the names that begin with a
 * dot.
 *
 * scandirat() blocks the thread.  io_uring cannot read directories, so a call
 * that suspends would gain nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "listing.h"
#include "text.h"

#define PAGE_BYTES (256u * 1024u)
#define ENTRY_BYTES 4096u /* a name of 255 bytes, each escaped, twice */

static int is_shown(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void put_link(struct text *page, const char *name, const char *suffix)
{
	text_put(page, "<li><a href=\"./");
	text_put_url(page, name);
	text_put(page, suffix);
	text_put(page, "\">");
	text_put_html(page, name);
	text_put(page, suffix);
	text_put(page, "</a>\n");
}

static void put_page(struct text *page, const char *path,
		     struct dirent *const *entries, int count)
{
	const char *shown = strcmp(path, "./") == 0 ? "" : path;
	int i;

	text_put(page, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>/");
	text_put_html(page, shown);
	text_put(page, "</title>\n<h1>/");
	text_put_html(page, shown);
	text_put(page, "</h1>\n<ul>\n");
	if (*shown)
		put_link(page, "..", "/");
	for (i = 0; i < count && page->end - page->at > ENTRY_BYTES; i++)
		put_link(page, entries[i]->d_name,
			 entries[i]->d_type == DT_DIR ? "/" : "");
	if (i < count) {
		text_put(page, "<li>and ");
		text_put_number(page, (uint64_t)(count - i));
		text_put(page, " more\n");
	}
	text_put(page, "</ul>\n");
}

/* Not inlined: a compiler may keep the address of errno across a call that
 * suspends, and the task may resume on another thread. */
__attribute__((noinline)) static int scan(int dir_fd, struct dirent ***entries)
{
	int count = scandirat(dir_fd, ".", entries, is_shown, alphasort);

	return count < 0 ? -errno : count;
}

int listing_make(int dir_fd, const char *path, char **ret_page,
		 size_t *ret_bytes)
{
	struct dirent **entries;
	int count = scan(dir_fd, &entries);
	char *bytes;

	if (count < 0)
		return count;
	bytes = malloc(PAGE_BYTES);
	if (bytes) {
		struct text page = { bytes, bytes + PAGE_BYTES };

		put_page(&page, path, entries, count);
		*ret_page = bytes;
		*ret_bytes = (size_t)(page.at - bytes);
	}
	while (count > 0)
		free(entries[--count]);
	free(entries);
	return bytes ? 0 : -ENOMEM;
}
