/* SPDX-License-Identifier: MIT */
/*
 * pool - counts the words of the files that are named on standard input.
 *
 * Shows	a pool of workers between two channels.  Full channels hold up
 *		who sends: names are read no faster than files, files no faster
 *		than results are printed.  Closing a channel is the end of its
 *		input; when a task fails all others end.
 * Run		find . -name '*.c' | build/examples/pool
 * Needs	Linux 6.1 or newer
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

#define WORKERS 4

struct job {
	uint64_t words;
	int error; /* of the file, if negative */
	char path[4000];
};

static struct job jobs_room[16], results_room[16];
static struct weft_chan jobs = WEFT_CHAN_INIT(jobs_room);
static struct weft_chan results = WEFT_CHAN_INIT(results_room);

/* Names, one a line, to jobs. */
static int64_t read_jobs(void *arg)
{
	struct job job = { 0, 0, { 0 } };
	char text[sizeof(job.path)], *end;
	size_t bytes = 0;
	ssize_t n;
	int r;

	(void)arg;
	do {
		n = weft_read(STDIN_FILENO, text + bytes, sizeof(text) - bytes);
		if (n < 0 || bytes == sizeof(text))
			return n < 0 ? n : -ENAMETOOLONG;
		bytes += (size_t)n;
		if (n == 0 && bytes > 0) /* the last one, without an end */
			text[bytes++] = '\n';
		while ((end = memchr(text, '\n', bytes))) {
			*end++ = '\0';
			memcpy(job.path, text, (size_t)(end - text));
			r = weft_chan_send(&jobs, &job);
			if (r < 0)
				return r;
			bytes -= (size_t)(end - text);
			memmove(text, end, bytes);
		}
	} while (n > 0);
	weft_chan_close(&jobs);
	return 0;
}

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

/* Jobs to results. */
static int64_t work(void *arg)
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
	return r == -EPIPE ? 0 : r; /* closed: there are no more */
}

static int print(const struct job *job)
{
	char text[sizeof(*job) + 32];
	int bytes = snprintf(text, sizeof(text), "%8llu %s\n",
			     (unsigned long long)job->words, job->path);

	return weft_write_all(STDOUT_FILENO, text, (size_t)bytes, NULL);
}

/* Results to standard output; closes them if that fails, so that nobody waits
 * for it in vain. */
static int64_t print_results(void *arg)
{
	unsigned *failures = *(unsigned **)arg;
	struct job job;
	int r = 0;

	while (r == 0 && weft_chan_recv(&results, &job) == 0)
		if (job.error == 0) {
			r = print(&job);
		} else {
			fprintf(stderr, "pool: %s: %s\n", job.path,
				strerror(-job.error));
			++*failures;
		}
	weft_chan_close(&results);
	return r;
}

static int64_t count_all(void *arg)
{
	unsigned *failures = arg;
	int64_t printed = 0, worked = 0;
	int r = 0;

	WEFT_SCOPE(printing, &printed) {
		r = WEFT_GO(printing, print_results, failures);
		WEFT_SCOPE(working, &worked) {
			if (r == 0)
				r = weft_go(working, read_jobs, NULL, 0);
			for (int i = 0; i < WORKERS && r == 0; i++)
				r = weft_go(working, work, NULL, 0);
			if (r < 0)
				weft_scope_cancel(working);
		}
		weft_chan_close(&results);
	}
	/* If printing fails that is why the workers do. */
	return r < 0 ? r : printed < 0 ? printed : worked;
}

int main(void)
{
	unsigned failures = 0;
	int64_t result = weft_run(count_all, &failures, NULL);

	if (result < 0)
		fprintf(stderr, "pool: %s\n", strerror((int)-result));
	return result < 0 || failures > 0;
}
