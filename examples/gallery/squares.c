/* SPDX-License-Identifier: MIT */
/*
 * squares [SOCKET] - adds up the squares of 1 to 100 with four workers.
 *
 * From outside	A counter on stderr shows that all of the 100 are done.  Then it
 *		neither prints the sum nor ends.
 */
#include <errno.h>
#include <stdio.h>

#include <weft/weft.h>

#define WORKERS 4

static int numbers_room[16];
static struct weft_chan numbers = WEFT_CHAN_INIT(numbers_room);
static struct weft_mutex sum_mutex = WEFT_MUTEX_INIT;
static int sum, done;

static int64_t work(void *arg)
{
	int number, r;

	(void)arg;
	while ((r = weft_chan_recv(&numbers, &number)) == 0) {
		r = weft_mutex_lock(&sum_mutex);
		if (r < 0)
			return r;
		sum += number * number;
		if (++done == 100)
			fprintf(stderr, "%d done\n", done);
		weft_mutex_unlock(&sum_mutex);
	}
	return r == -EPIPE ? 0 : r; /* closed: there are no more numbers */
}

static int64_t add_up(void *arg)
{
	int64_t result = 0;
	int r = 0;

	(void)arg;
	WEFT_SCOPE(workers, &result) {
		for (int i = 0; i < WORKERS && r == 0; i++)
			r = weft_go(workers, work, NULL, 0);
		for (int i = 1; i <= 100 && r == 0; i++)
			r = weft_chan_send(&numbers, &i);
	}
	printf("%d\n", sum);
	return r < 0 ? r : result;
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.dump_path = argc > 1 ? argv[1] : NULL;
	return weft_run(add_up, NULL, &opts) < 0;
}
