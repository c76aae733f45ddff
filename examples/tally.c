/* SPDX-License-Identifier: MIT */
/*
 * tally ADDR - counts the words of its input in a Redis server, and prints the
 * ten most frequent ones.
 *
 * Shows	libweft-redis: a hundred tasks that use one connection, whose
 *		commands go out without a wait for the replies to others; a
 *		deadline for each; commands that are sent together.
 * Run		redis-server --port 7001 &
 *		build/examples/tally 127.0.0.1:7001 <README.md
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>
#include <weft/redis.h>
#include <weft/weft.h>

#define TASKS_MAX 100
#define DEADLINE_NS WEFT_SEC(5)

struct word {
	struct weft_redis *redis;
	char text[64];
};

static int64_t count(void *arg)
{
	const struct word *word = arg;
	int r = 0;

	WEFT_WITHIN (DEADLINE_NS)
		r = weft_redis_command(word->redis, NULL, "ZINCRBY tally 1 %s",
				       word->text);
	return r;
}

/* Starts a task for each word of a line, and waits while there are too many. */
static int count_words(struct weft_scope *words, struct weft_redis *redis,
		       char *line)
{
	struct word word = { .redis = redis };
	char *text;
	int r = 0;

	while (r == 0 && (text = strsep(&line, " \t\n")))
		if (snprintf(word.text, sizeof(word.text), "%s", text) > 0)
			r = WEFT_GO(words, count, word);
	return r;
}

/* Prints the words, and forgets them. */
static int print_tally(struct weft_redis *redis)
{
	struct weft_redis_batch batch = WEFT_REDIS_BATCH_INIT;
	redisReply *replies[2];
	int r = weft_redis_batch_add(&batch, "ZREVRANGE tally 0 9 WITHSCORES");

	if (r == 0)
		r = weft_redis_batch_add(&batch, "DEL tally");
	if (r == 0)
		r = weft_redis_batch_run(redis, &batch, replies);
	weft_redis_batch_clear(&batch);
	if (r < 0)
		return r;
	for (size_t i = 0; i + 1 < replies[0]->elements; i += 2)
		printf("%6s %s\n", replies[0]->element[i + 1]->str,
		       replies[0]->element[i]->str);
	freeReplyObject(replies[0]);
	freeReplyObject(replies[1]);
	return 0;
}

static int64_t tally(void *arg)
{
	struct weft_stream input = WEFT_STREAM_INIT(STDIN_FILENO);
	struct weft_redis *redis;
	char line[4096];
	int64_t result = 0;
	int r = weft_redis_connect(arg, NULL, &redis);

	if (r < 0)
		return r;
	WEFT_SCOPE (words, &result) {
		r = weft_scope_limit(words, TASKS_MAX);
		while (r == 0 && weft_stream_line(&input, line, 4096) > 0)
			r = count_words(words, redis, line);
	}
	if (result == 0)
		result = r < 0 ? r : print_tally(redis);
	weft_stream_close(&input);
	weft_redis_close(redis);
	return result;
}

int main(int argc, char **argv)
{
	int64_t result;

	if (argc != 2) {
		fprintf(stderr, "Usage: tally ADDR\n");
		return 2;
	}
	result = weft_run(tally, argv[1], NULL);
	if (result < 0)
		fprintf(stderr, "tally: %s: %s\n", argv[1],
			strerror((int)-result));
	return result < 0;
}
