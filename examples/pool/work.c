/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>

#include "pool.h"

static int count_words(const char *path, uint64_t *ret_words)
{
	int fd = weft_open(path, O_RDONLY, 0);
	char buf[16384];
	uint64_t words = 0;
	bool inside = false;
	ssize_t n;

	if (fd < 0)
		return fd;
	while ((n = weft_read(fd, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			bool space = isspace((unsigned char)buf[i]);

			words += !space && !inside;
			inside = !space;
		}
	weft_close(fd);
	*ret_words = words;
	return (int)n;
}

int64_t work(void *arg)
{
	struct job job;
	int r;

	(void)arg;
	while ((r = weft_chan_recv(&jobs, &job)) == 0) {
		job.error = count_words(job.path, &job.words);
		r = weft_chan_send(&results, &job);
		if (r < 0)
			return r;
	}
	return r == -EPIPE ? 0 : r; /* closed: there are no more jobs */
}
