/* SPDX-License-Identifier: MIT */
/*
 * Dial - connects to the first address that answers (RFC 8305).
 *
 * The addresses are tried in a race (<weft/scope.h>), each by a task.  The
 * caller starts the tasks, and waits after each until one has ended or the
 * delay is over.  It learns from `won` that a task has a connection: for the
 * race that counts no earlier than when the task has returned.
 *
 * Orderings
 *   [dial.won]  `won` store release by an attempt -> load acquire by the
 *       caller, before it starts another one.
 */
#include "net/dial.h"

#include <errno.h>
#include <string.h>
#include <weft/io.h>
#include <weft/scope.h>
#include <weft/sync.h>
#include <weft/task.h>

#include "io/request/call.h"
#include "net/resolve.h"
#include "net/socket.h"

#define DELAY_DEFAULT_NS WEFT_MS(250)

static const struct weft_dial_opts defaults = WEFT_DIAL_OPTS_INIT;

/* One call; it lives on the caller's stack until all attempts have ended. */
struct dial {
	const struct weft_addr *addrs;
	const struct weft_addr *local;
	const struct weft_socket_opts *opts;
	struct weft_sem ended; /* counts attempts that have */
	weft__atomic(bool) won;
};

struct attempt {
	struct dial *dial;
	int index;
};

void weft__dial_order(struct weft_addr *addrs, int count)
{
	for (int i = 1; i < count; i++) {
		int last = weft_addr_family(&addrs[i - 1]), next = i;
		struct weft_addr addr;

		while (next < count && weft_addr_family(&addrs[next]) == last)
			next++;
		if (next == count)
			return;
		addr = addrs[next];
		memmove(&addrs[i + 1], &addrs[i],
			(size_t)(next - i) * sizeof(*addrs));
		addrs[i] = addr;
	}
}

static int64_t attempt(void *arg)
{
	struct attempt *attempt = arg;
	struct dial *dial = attempt->dial;
	int r = weft__socket_connect_any(&dial->addrs[attempt->index],
					 dial->local, dial->opts);

	if (r >= 0)
		/* pairs: [dial.won] */
		weft__store(&dial->won, true, release);
	weft_sem_release(&dial->ended, 1);
	return r;
}

static void close_late(int64_t fd)
{
	weft_close((int)fd);
}

/* Starts attempts until one has won, or all have begun. */
static int attempts_start(struct weft_scope *race, struct dial *dial, int count,
			  weft_nsec delay_ns)
{
	/* pairs: [dial.won] */
	for (int i = 0; i < count && !weft__load(&dial->won, acquire); i++) {
		struct attempt next = { dial, i };
		int r = WEFT_GO(race, attempt, next);

		/* Won, or cancelled; the race knows. */
		if (r == -ECANCELED)
			return 0;
		if (r == 0 && i + 1 < count)
			WEFT_WITHIN(delay_ns)
				r = weft_sem_acquire(&dial->ended, 1);
		if (r < 0 && r != -ETIMEDOUT)
			return r;
	}
	return 0;
}

int weft__dial_addrs(const struct weft_addr *addrs, int count,
		     const struct weft_addr *local,
		     const struct weft_dial_opts *opts)
{
	struct dial dial = { addrs, local, opts->socket, WEFT_SEM_INIT(0),
			     false };
	struct weft__worker *worker;
	int64_t result = 0;
	int r, error = 0;

	if (count == 1)
		return weft__socket_connect_any(addrs, local, opts->socket);
	WEFT_RACE(race, &result) {
		(void)weft_race_drop(race, close_late);
		error = attempts_start(race, &dial, count,
				       opts->delay_ns ? opts->delay_ns :
							DELAY_DEFAULT_NS);
		if (error < 0)
			weft_scope_cancel(race);
	}
	if (result >= 0)
		return (int)result;
	/* The attempts report a deadline of the caller as a cancellation.  Its
	 * own alarm may not have fired yet. */
	worker = weft__worker_self();
	if (weft__task_is(worker->current, WEFT__TASK_WITHIN))
		weft__within_look(worker, worker->current);
	r = weft__call_begin(&worker);
	if (r < 0)
		return r;
	return error < 0 && error != -ECANCELED ? error : (int)result;
}

static int opts_check(const struct weft_dial_opts *opts)
{
	if (opts->size != sizeof(*opts) || opts->reserved)
		return -EINVAL;
	for (int i = 0; i < 4; i++)
		if (opts->reserved_words[i])
			return -EINVAL;
	return 0;
}

/* Keeps the addresses that can be reached from the local one; returns their
 * number. */
static int addrs_keep(struct weft_addr *addrs, int count, int family)
{
	int kept = 0;

	for (int i = 0; i < count; i++)
		if (weft_addr_family(&addrs[i]) == family)
			addrs[kept++] = addrs[i];
	return kept > 0 ? kept : -EAFNOSUPPORT;
}

int weft_dial(const char *address, const struct weft_dial_opts *opts)
{
	struct weft_resolve_opts resolve = WEFT_RESOLVE_OPTS_INIT;
	struct weft_addr addrs[WEFT_RESOLVE_MAX], local;
	int count, r;

	opts = opts ? opts : &defaults;
	r = opts_check(opts);
	if (r == 0 && opts->local)
		r = weft_addr_parse(opts->local, &local);
	if (r < 0)
		return weft__call_refused(r);
	resolve.family = opts->family;
	count = weft_resolve(address, &resolve, addrs, WEFT_RESOLVE_MAX);
	if (count > 0 && opts->local)
		count = addrs_keep(addrs, count, weft_addr_family(&local));
	if (count < 0)
		return count;
	/* First in turn, so that the best of one family are not all. */
	weft__dial_order(addrs, count);
	if (count > WEFT__DIAL_ADDRS_MAX)
		count = WEFT__DIAL_ADDRS_MAX;
	return weft__dial_addrs(addrs, count, opts->local ? &local : NULL,
				opts);
}
