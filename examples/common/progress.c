/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/time.h>

enum { WIDTH = 24, MARK = 4 };
#define DRAW_NS WEFT_MS(100)

void progress_begin(struct progress *progress)
{
	*progress = (struct progress){ .on = isatty(STDERR_FILENO) != 0,
				       .began_ns = weft_now() };
}

/* The part of the bar that is filled. */
static void bar_range(const struct progress *progress, uint64_t done,
		      uint64_t total, unsigned *ret_from, unsigned *ret_to)
{
	if (total == 0) {
		*ret_from = progress->turns % (WIDTH - MARK + 1);
		*ret_to = *ret_from + MARK;
		return;
	}
	*ret_from = 0;
	*ret_to = done >= total ?
			  WIDTH :
			  (unsigned)((double)done / (double)total * WIDTH);
}

void progress_show(struct progress *progress, uint64_t done, uint64_t total,
		   const char *text)
{
	char bar[WIDTH + 1];
	unsigned from, to;
	uint64_t now_ns = weft_now();

	if (!progress->on || now_ns - progress->drawn_ns < DRAW_NS)
		return;
	progress->drawn_ns = now_ns;
	progress->turns++;
	progress->drawn = true;
	bar_range(progress, done, total, &from, &to);
	for (unsigned i = 0; i < WIDTH; i++)
		bar[i] = i >= from && i < to ? '#' : '.';
	bar[WIDTH] = '\0';
	fprintf(stderr, "\r[%s] %s\033[K", bar, text);
}

void progress_clear(struct progress *progress)
{
	if (progress->drawn)
		fputs("\r\033[K", stderr);
	progress->drawn = false;
	progress->drawn_ns = 0;
}
