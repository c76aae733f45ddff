/* SPDX-License-Identifier: MIT */
/*
 * fetches [SOCKET] - fetches 40 files, at most 4 at a time.
 *
 * From outside	It reports that some files could not be fetched, which happens.
 *		Later it fetches no more files.  With fewer failures it ends.
 */
#include <errno.h>
#include <stdio.h>

#include <weft/weft.h>

static struct weft_sem places = WEFT_SEM_INIT(4);

/* As in a network: one in five does not answer. */
static int transfer(int number)
{
	int r = weft_sleep(WEFT_MS(1));

	return r == 0 && number % 5 == 0 ? -ETIMEDOUT : r;
}

static int64_t fetch(void *arg)
{
	int number = *(int *)arg;
	int r = weft_sem_acquire(&places, 1);

	if (r < 0)
		return r;
	r = transfer(number);
	if (r < 0) {
		fprintf(stderr, "file %d: no answer\n", number);
		return r;
	}
	printf("file %d\n", number);
	weft_sem_release(&places, 1);
	return 0;
}

static int64_t fetch_all(void *arg)
{
	int r = 0;

	(void)arg;
	WEFT_SUPERVISE(files)
		for (int i = 1; i <= 40 && r == 0; i++)
			r = WEFT_GO(files, fetch, i);
	return r;
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.dump_path = argc > 1 ? argv[1] : NULL;
	return weft_run(fetch_all, NULL, &opts) < 0;
}
