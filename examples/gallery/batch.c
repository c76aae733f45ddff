/* SPDX-License-Identifier: MIT */
/*
 * batch [SOCKET] - has a worker compute 100 cubes, and prints their sum.
 *
 * From outside	With up to nine numbers it printed the right sum.  With 100 it
 *		prints nothing, and does not end.
 */
#include <errno.h>
#include <stdio.h>

#include <weft/weft.h>

static int jobs_room[4], results_room[4];
static struct weft_chan jobs = WEFT_CHAN_INIT(jobs_room);
static struct weft_chan results = WEFT_CHAN_INIT(results_room);

static int64_t work(void *arg)
{
	int n, r;

	(void)arg;
	while ((r = weft_chan_recv(&jobs, &n)) == 0) {
		n *= n * n;
		r = weft_chan_send(&results, &n);
		if (r < 0)
			return r;
	}
	weft_chan_close(&results);
	return r == -EPIPE ? 0 : r; /* closed: there are no more jobs */
}

/* Hands n to the worker, unless the worker has ended and cannot take it. */
static int submit(struct weft_task worker, int n)
{
	struct weft_case cases[] = {
		WEFT_SEND(&jobs, &n),
		WEFT_JOINED(worker),
	};
	int which = weft_select(cases, 2);

	return which == 1 ? -EPIPE : which;
}

static int64_t run_batch(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct weft_task worker;
	int64_t result = 0;
	int r = 0, cube, sum = 0;

	(void)arg;
	opts.name = "worker";
	opts.ret_task = &worker;
	WEFT_SCOPE(all, &result) {
		r = weft_go_opts(all, work, NULL, 0, &opts);
		for (int n = 1; n <= 100 && r == 0; n++)
			r = submit(worker, n);
		weft_chan_close(&jobs);
		while (r == 0 && weft_chan_recv(&results, &cube) == 0)
			sum += cube;
	}
	printf("%d\n", sum);
	return r < 0 ? r : result;
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.dump_path = argc > 1 ? argv[1] : NULL;
	return weft_run(run_batch, NULL, &opts) < 0;
}
