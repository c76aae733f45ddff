/* SPDX-License-Identifier: MIT */
/*
 * Names, their queries - the questions that c-ares has, and its answers.
 *
 * c-ares answers for both families when it has both answers.  Some networks
 * drop the queries for one: then c-ares has the answer for the other, and
 * repeats in vain for a minute and more.  So a question that has no answer for
 * a while is also asked for each family apart, and the first addresses are its
 * answer.
 * (RFC 8305, section 3, waits for 50 ms after one answer, but c-ares does not
 * show that it has one.)
 *
 * Invariants, besides those of names.c
 *   NA1  A question is in `under_way` from weft__query_begin() to its answer,
 *       which comes from within a call of c-ares.  One without an answer is
 *       taken from there when the channel is destroyed.
 *   NA2  `queries` is how many of a question c-ares has.  Those that it has
 *       when the question is answered have a reference each, and are counted
 *       in `idle_queries`.
 *   NA3  APART_MAX questions at most have queries for each family apart: with
 *       those in their places (NM4) they use three quarters of the IDs.
 */
#include "net/names_query.h"

#include <errno.h>
#include <netinet/in.h>

enum {
	TTL_MAX_S = 86400,
	TTL_ONE_FAMILY_S = 60,
	TTL_NEGATIVE_S = 5,
	APART_MAX = 4096,
};

/* Tests have other times. */
weft_nsec weft__names_apart_ns = WEFT_MS(500);

/* ---- Lists --------------------------------------------------------------- */

static void waits_begin(struct weft__names_engine *engine,
			struct weft__question *question)
{
	question->waits = true;
	question->asked_ns = weft_now();
	question->later = NULL;
	question->sooner = engine->last;
	*(engine->last ? &engine->last->later : &engine->first) = question;
	engine->last = question;
}

static void waits_end(struct weft__names_engine *engine,
		      struct weft__question *question)
{
	if (!question->waits)
		return;
	question->waits = false;
	*(question->later ? &question->later->sooner : &engine->last) =
		question->sooner;
	*(question->sooner ? &question->sooner->later : &engine->first) =
		question->later;
}

void weft__query_remove(struct weft__names_engine *engine,
			struct weft__question *question)
{
	struct weft__question **link = question->before ?
					       &question->before->next_asked :
					       &engine->under_way;

	*link = question->next_asked;
	if (question->next_asked)
		question->next_asked->before = question->before;
	waits_end(engine, question);
}

/* ---- Answers ------------------------------------------------------------- */

/* If there is no room for all, each family has half, or what the other
 * leaves. */
static void shares(const struct ares_addrinfo *info, unsigned ret_max[2])
{
	enum { HALF = WEFT_RESOLVE_MAX / 2 };
	unsigned counts[2] = { 0, 0 };

	for (const struct ares_addrinfo_node *node = info->nodes; node;
	     node = node->ai_next)
		counts[node->ai_family == AF_INET6]++;
	for (int i = 0; i < 2; i++)
		ret_max[i] = WEFT_RESOLVE_MAX -
			     (counts[!i] < HALF ? counts[!i] : HALF);
}

/* Takes the addresses, and returns the shortest TTL.  Of two families c-ares
 * does not say if one has none or its query failed. */
static int nodes_take(const struct ares_addrinfo *info, int family,
		      struct weft_addr addrs[WEFT_RESOLVE_MAX],
		      unsigned *ret_count)
{
	bool seen[2] = { family == AF_INET6, family == AF_INET };
	unsigned left[2], count = 0;
	int ttl_s = TTL_MAX_S;

	shares(info, left);
	for (const struct ares_addrinfo_cname *cname = info->cnames; cname;
	     cname = cname->next)
		if (cname->ttl < ttl_s)
			ttl_s = cname->ttl;
	for (const struct ares_addrinfo_node *node = info->nodes; node;
	     node = node->ai_next) {
		bool six = node->ai_family == AF_INET6;

		seen[six] = true;
		if (node->ai_ttl < ttl_s)
			ttl_s = node->ai_ttl;
		if (left[six] == 0 ||
		    weft_addr_from_sockaddr(node->ai_addr, node->ai_addrlen,
					    &addrs[count]) < 0)
			continue;
		left[six]--;
		count++;
	}
	*ret_count = count;
	if (!(seen[0] && seen[1]) && ttl_s > TTL_ONE_FAMILY_S)
		ttl_s = TTL_ONE_FAMILY_S;
	return ttl_s > 0 ? ttl_s : 0;
}

/* It has an answer, whatever c-ares will still find. */
static void question_end(struct weft__question *question, int error,
			 const struct weft_addr *addrs, unsigned count,
			 int ttl_s)
{
	struct weft__names_engine *engine = question->names->engine;

	weft__query_remove(engine, question);
	question->over = question->queries > 0;
	if (question->over) {
		engine->idle_queries += question->queries;
		weft__question_ref(question, question->queries);
	}
	weft__names_answer(question, error, addrs, count, WEFT_SEC(ttl_s),
			   false);
}

/* A query has ended.  False: its question has its answer, or is taken from
 * those under way when the channel has gone. */
static bool query_end(struct weft__question *question)
{
	struct weft__names_engine *engine = question->names->engine;

	question->queries--;
	if (question->apart && question->queries == 0) {
		question->apart = false;
		engine->apart--;
	}
	if (!question->over)
		return !engine->gives_up;
	engine->idle_queries--;
	weft__question_unref(question);
	return false;
}

/* Addresses, if there are some: their number, and the TTL. */
static unsigned addrs_take(struct weft__question *question, int status,
			   const struct ares_addrinfo *info,
			   struct weft_addr addrs[WEFT_RESOLVE_MAX],
			   int *ret_ttl_s)
{
	struct weft__names_engine *engine = question->names->engine;
	unsigned count = 0;

	*ret_ttl_s = 0;
	if (status != ARES_SUCCESS || !info)
		return 0;
	*ret_ttl_s = nodes_take(info, question->family, addrs, &count);
	weft__names_order(&engine->sources, addrs, count, weft_now());
	return count;
}

static void on_answer(void *arg, int status,
		      int timeouts __attribute__((unused)),
		      struct ares_addrinfo *info)
{
	struct weft__question *question = arg;
	struct weft_addr addrs[WEFT_RESOLVE_MAX];
	int error = weft__names_status_error(status), ttl_s = 0;
	unsigned count = 0;

	if (query_end(question)) {
		count = addrs_take(question, status, info, addrs, &ttl_s);
		if (error == 0 && count == 0)
			error = -ENODATA;
		if (error == -ENOENT || error == -ENODATA)
			ttl_s = TTL_NEGATIVE_S;
		question_end(question, error, addrs, count, ttl_s);
	}
	if (info)
		ares_freeaddrinfo(info);
}

/* For one family of two: whether there is a name, or an address, the answer for
 * both will tell. */
static void on_part(void *arg, int status, int timeouts __attribute__((unused)),
		    struct ares_addrinfo *info)
{
	struct weft__question *question = arg;
	struct weft_addr addrs[WEFT_RESOLVE_MAX];
	unsigned count;
	int ttl_s;

	if (query_end(question)) {
		count = addrs_take(question, status, info, addrs, &ttl_s);
		if (count > 0)
			question_end(question, 0, addrs, count, ttl_s);
	}
	if (info)
		ares_freeaddrinfo(info);
}

/* ---- Questions ----------------------------------------------------------- */

/* Answers by the hosts file, or where no server may be asked.  Such an answer
 * is good until the file changes: then all are forgotten. */
static bool ask_hosts(struct weft__names_engine *engine,
		      struct weft__question *question)
{
	struct weft_addr addrs[WEFT_RESOLVE_MAX];
	unsigned count = 0;

	if (engine->order.hosts_first)
		count = weft__hosts_find(engine->hosts, question->name,
					 question->family, addrs,
					 WEFT_RESOLVE_MAX);
	if (count == 0 && engine->order.servers)
		return false;
	weft__names_order(&engine->sources, addrs, count, weft_now());
	weft__names_answer(question, count > 0 ? 0 : -ENOENT, addrs, count,
			   WEFT_SEC(TTL_MAX_S), false);
	return true;
}

static void query(struct weft__names_engine *engine,
		  struct weft__question *question, int family,
		  ares_addrinfo_callback callback)
{
	struct ares_addrinfo_hints hints = {
		.ai_flags = ARES_AI_NOSORT,
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
	};

	ares_getaddrinfo(engine->channel, question->name, NULL, &hints,
			 callback, question);
}

void weft__query_begin(struct weft__names_engine *engine,
		       struct weft__question *question)
{
	question->version = engine->version;
	if (ask_hosts(engine, question))
		return;
	question->before = NULL;
	question->next_asked = engine->under_way;
	if (engine->under_way)
		engine->under_way->before = question;
	engine->under_way = question;
	if (question->family == AF_UNSPEC)
		waits_begin(engine, question);
	question->queries = 1;
	query(engine, question, question->family, on_answer);
}

uint64_t weft__query_apart_at(const struct weft__names_engine *engine)
{
	if (!engine->first || engine->apart == APART_MAX)
		return WEFT_NEVER;
	return engine->first->asked_ns + weft__names_apart_ns;
}

/* A query may call back at once; the question is there until both have. */
void weft__query_apart(struct weft__names_engine *engine)
{
	while (weft__query_apart_at(engine) <= weft_now()) {
		struct weft__question *question = engine->first;

		waits_end(engine, question);
		question->queries += 2;
		question->apart = true;
		engine->apart++;
		query(engine, question, AF_INET, on_part);
		query(engine, question, AF_INET6, on_part);
	}
}
