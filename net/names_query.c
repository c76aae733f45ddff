/* SPDX-License-Identifier: MIT */
/*
 * Names, their queries - the questions that c-ares has, and its answers.
 *
 * c-ares answers for both families when it has both answers, or has given one
 * up.  Some networks drop the queries for one: a look-up there takes as long as
 * c-ares tries.  To ask for each family apart would not be the same question:
 * where a name has no address of that family, c-ares goes on to the next search
 * domain, and another host answers.
 *
 * Invariants, besides those of names.c
 *   NA1  A question is in `under_way` from weft__query_begin() to its callback,
 *       which comes from within a call of c-ares.  One whose callback never
 *       came is taken from there when the channel is destroyed.
 */
#include "net/names_query.h"

#include <errno.h>
#include <netinet/in.h>

enum {
	TTL_MAX_S = 86400,
	TTL_ONE_FAMILY_S = 60,
	TTL_NEGATIVE_S = 5,
};

void weft__query_remove(struct weft__names_engine *engine,
			struct weft__question *question)
{
	struct weft__question **link = question->before ?
					       &question->before->next_asked :
					       &engine->under_way;

	*link = question->next_asked;
	if (question->next_asked)
		question->next_asked->before = question->before;
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

static void on_answer(void *arg, int status,
		      int timeouts __attribute__((unused)),
		      struct ares_addrinfo *info)
{
	struct weft__question *question = arg;
	struct weft__names_engine *engine = question->names->engine;
	struct weft_addr addrs[WEFT_RESOLVE_MAX];
	int error = weft__names_status_error(status), ttl_s = 0;
	unsigned count = 0;

	weft__query_remove(engine, question);
	if (engine->gives_up) {
		/* An answer for one family is not the whole. */
		error = -ECANCELED;
	} else if (error == 0 && info) {
		ttl_s = nodes_take(info, question->family, addrs, &count);
		error = count > 0 ? 0 : -ENODATA;
		weft__names_order(&engine->sources, addrs, count, weft_now());
	} else if (error == -ENOENT || error == -ENODATA) {
		ttl_s = TTL_NEGATIVE_S;
	}
	if (info)
		ares_freeaddrinfo(info);
	weft__names_answer(question, error, addrs, count, WEFT_SEC(ttl_s),
			   engine->gives_up);
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

void weft__query_begin(struct weft__names_engine *engine,
		       struct weft__question *question)
{
	struct ares_addrinfo_hints hints = {
		.ai_flags = ARES_AI_NOSORT,
		.ai_family = question->family,
		.ai_socktype = SOCK_STREAM,
	};

	question->version = engine->version;
	if (ask_hosts(engine, question))
		return;
	question->before = NULL;
	question->next_asked = engine->under_way;
	if (engine->under_way)
		engine->under_way->before = question;
	engine->under_way = question;
	ares_getaddrinfo(engine->channel, question->name, NULL, &hints,
			 on_answer, question);
}
