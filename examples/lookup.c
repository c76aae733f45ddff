/* SPDX-License-Identifier: MIT */
/*
 * lookup NAME... - resolves host names in parallel with getaddrinfo(3), a call
 * that blocks its thread.
 *
 * Shows	weft_blocking_lane() runs a blocking function beside the
 *		workers.  The lane limits the number of lookups at a time, so
 *		that names without an answer leave threads for other work.  A
 *		deadline limits the time that a name waits for its turn.
 * Run		build/examples/lookup localhost example.org
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <weft/weft.h>

enum { NAMES_MAX = 64 };

struct query {
	const char *name;
	int error;		 /* of getaddrinfo() */
	char answer[NI_MAXHOST]; /* the first address */
};

struct queries {
	int count;
	struct query of[NAMES_MAX];
};

static struct weft_lane dns = WEFT_LANE_INIT("dns", 8);

/* Runs on a thread of the pool. */
static int64_t resolve(void *arg)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct query *query = arg;
	struct addrinfo *found;

	query->error = getaddrinfo(query->name, NULL, &hints, &found);
	if (query->error)
		return 0;
	query->error = getnameinfo(found->ai_addr, found->ai_addrlen,
				   query->answer, sizeof(query->answer), NULL,
				   0, NI_NUMERICHOST);
	freeaddrinfo(found);
	return 0;
}

static int64_t look_up(void *arg)
{
	struct query *query = *(struct query **)arg;
	int64_t r = 0;

	WEFT_WITHIN(WEFT_SEC(10))
		r = weft_blocking_lane(&dns, resolve, query);
	if (r < 0)
		query->error = EAI_AGAIN;
	return query->error ? -1 : 0;
}

static int64_t look_up_all(void *arg)
{
	struct queries *queries = arg;
	struct weft_scope all;
	int64_t r = weft_supervisor_begin(&all);

	for (int i = 0; r == 0 && i < queries->count; i++)
		r = WEFT_GO(&all, look_up, &queries->of[i]);
	return weft_scope_end(&all) + (r < 0);
}

int main(int argc, char **argv)
{
	static struct queries queries;
	int64_t failed;

	if (argc < 2 || argc - 1 > NAMES_MAX) {
		fprintf(stderr, "Usage: lookup NAME...\n");
		return 2;
	}
	queries.count = argc - 1;
	for (int i = 0; i < queries.count; i++)
		queries.of[i].name = argv[i + 1];
	failed = weft_run(look_up_all, &queries, NULL);
	if (failed < 0) {
		fprintf(stderr, "lookup: %s\n", strerror((int)-failed));
		return 1;
	}
	for (int i = 0; i < queries.count; i++) {
		const struct query *query = &queries.of[i];

		printf("%s: %s\n", query->name,
		       query->error ? gai_strerror(query->error) :
				      query->answer);
	}
	return failed > 0;
}
