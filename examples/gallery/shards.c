/* SPDX-License-Identifier: MIT */
/*
 * shards [SOCKET] - loads three parts of a table, and serves each of them once
 * all are loaded.
 *
 * From outside	It prints that it loads three shards, and then nothing: it
 *		never prints that it serves.
 */
#include <stdio.h>

#include <weft/weft.h>

static struct weft_event all_loaded = WEFT_EVENT_INIT;

static int load(int number)
{
	return weft_sleep(WEFT_MS(number)); /* it would read a file */
}

static int64_t run_shard(void *arg)
{
	int number = *(int *)arg;
	int r = load(number);

	if (r == 0)
		r = weft_event_wait(&all_loaded);
	if (r == 0)
		printf("shard %d serves\n", number);
	return r;
}

static int64_t run_table(void *arg)
{
	int64_t result = 0;
	int r = 0;

	(void)arg;
	puts("loading 3 shards");
	fflush(stdout);
	WEFT_SCOPE(shards, &result)
		for (int i = 1; i <= 3 && r == 0; i++)
			r = WEFT_GO(shards, run_shard, i);
	weft_event_set(&all_loaded);
	return r < 0 ? r : result;
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.dump_path = argc > 1 ? argv[1] : NULL;
	return weft_run(run_table, NULL, &opts) < 0;
}
