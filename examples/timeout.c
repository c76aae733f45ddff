/* SPDX-License-Identifier: MIT */
/*
 * Deadlines: a read that gives up, a retry loop, and a deadline around both.
 *
 * Shows	WEFT_WITHIN holds for every call inside, however deep.  A call
 *		reports the deadline of its own block as -ETIMEDOUT and that of
 *		an outer block as -ECANCELED, so that the outer deadline ends
 *		the retry loop.
 * Run		build/examples/timeout
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

/* Reads an answer, and waits up to 100 ms for it in each attempt.  It need not
 * know of a deadline of the caller. */
static ssize_t ask(int fd, char *answer, size_t bytes)
{
	ssize_t n = -ETIMEDOUT;

	for (int attempt = 1; n == -ETIMEDOUT; attempt++) {
		WEFT_WITHIN(WEFT_MS(100))
			n = weft_read(fd, answer, bytes);
		if (n == -ETIMEDOUT)
			printf("  attempt %d: nothing in 100 ms\n", attempt);
	}
	return n;
}

static int64_t answer_late(void *arg)
{
	int fd = *(int *)arg;
	int r = weft_sleep(WEFT_MS(250));

	return r < 0 ? r : weft_write_all(fd, "pong", 4, NULL);
}

/* The peer answers after 250 ms, in time. */
static int64_t patient(int reader, int writer)
{
	int64_t result = 0;

	puts("within 2 s, an answer after 250 ms:");
	WEFT_SCOPE(peer, &result) {
		char text[16];
		ssize_t n = -ECANCELED;

		if (WEFT_GO(peer, answer_late, writer) < 0)
			return -EAGAIN;
		WEFT_WITHIN(WEFT_SEC(2))
			n = ask(reader, text, sizeof(text));
		if (n > 0)
			printf("  answered: %.*s\n", (int)n, text);
	}
	return result;
}

/* No answer: the outer deadline ends the loop within the third attempt. */
static int64_t impatient(int reader)
{
	puts("within 250 ms, no answer:");
	WEFT_WITHIN(WEFT_MS(250)) {
		char text[16];
		ssize_t n = ask(reader, text, sizeof(text));

		if (n == -ECANCELED && weft_deadline_passed())
			puts("  gave up: the outer deadline has passed");
	}
	/* After the block nothing is cancelled: */
	return weft_sleep(WEFT_MS(1));
}

static int64_t demonstrate(void *arg)
{
	const int *ends = arg;
	int64_t r = patient(ends[0], ends[1]);

	return r < 0 ? r : impatient(ends[0]);
}

int main(void)
{
	int64_t result;
	int ends[2];

	if (pipe(ends) < 0) {
		perror("timeout: pipe");
		return 1;
	}
	result = weft_run(demonstrate, ends, NULL);
	if (result < 0)
		fprintf(stderr, "timeout: %s\n", strerror((int)-result));
	return result < 0;
}
