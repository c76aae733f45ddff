/* SPDX-License-Identifier: MIT */
/* A directory as a sorted page of links. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "entries.h"
#include "listing.h"
#include "text.h"

#define PAGE_BYTES (256u * 1024u)
#define ENTRY_BYTES 4096u /* a name of 255 bytes, each escaped, twice */

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
		     const struct entries *entries)
{
	const char *shown = strcmp(path, "./") == 0 ? "" : path;
	size_t i;

	text_put(page, "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>/");
	text_put_html(page, shown);
	text_put(page, "</title>\n<h1>/");
	text_put_html(page, shown);
	text_put(page, "</h1>\n<ul>\n");
	if (*shown)
		put_link(page, "..", "/");
	for (i = 0; i < entries->count && page->end - page->at > ENTRY_BYTES;
	     i++)
		put_link(page, entries->at[i]->d_name,
			 entries->at[i]->d_type == DT_DIR ? "/" : "");
	if (i < entries->count) {
		text_put(page, "<li>and ");
		text_put_number(page, (uint64_t)(entries->count - i));
		text_put(page, " more\n");
	}
	text_put(page, "</ul>\n");
}

int listing_make(int dir_fd, const char *path, char **ret_page,
		 size_t *ret_bytes)
{
	struct entries entries = { NULL, 0, 0 };
	int r = entries_read(dir_fd, &entries);
	char *bytes = r < 0 ? NULL : malloc(PAGE_BYTES);

	if (bytes) {
		struct text page = { bytes, bytes + PAGE_BYTES };

		put_page(&page, path, &entries);
		*ret_page = bytes;
		*ret_bytes = (size_t)(page.at - bytes);
	}
	entries_free(&entries);
	if (r < 0)
		return r;
	return bytes ? 0 : -ENOMEM;
}
