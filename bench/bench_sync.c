/* SPDX-License-Identifier: MIT */
/*
 * How much time do a channel, a mutex and a semaphore take?
 *
 *	bench_sync pingpong|channel|mutex|skynet [--workers N] [--label L]
 *
 * Method: as in the peers' programs (peers/go/micro.go and
 * peers/tokio/src/micro.rs): loops of many operations; the figure is the time
 * of the loop divided by their number.  The first task starts the others, and
 * sums are checked.
 *
 * What would fool it: with one worker the tasks never contend for a lock.  With
 * two workers both tasks of a channel may still run on the same worker, with
 * weft as with the peers.
 */
#include "bench/bench.h"
#include "bench/bench_body.h"

enum {
	TRIPS = 300000,
	MESSAGES = 2000000,
	ROOM = 1024,
	LOCKS = 5000000,
	LOCKS_SHARED = 2000000,
	LOCKS_YIELD = 1000000,
	TASKS = 8,
	LEAVES = 1000000,
	BRANCHES = 10,
};

/* ---- Round trips -------------------------------------------------------- */

struct trips {
	struct weft_chan there, back;
};

static int64_t answer(void *arg)
{
	struct trips *t = *(struct trips **)arg;
	uint64_t v;

	while (weft_chan_recv(&t->there, &v) == 0)
		bench_must("weft_chan_send", weft_chan_send(&t->back, &v));
	return 0;
}

static int64_t ask(void *arg)
{
	struct trips *t = *(struct trips **)arg;

	for (uint64_t i = 0, v; i < TRIPS; i++) {
		bench_must("weft_chan_send", weft_chan_send(&t->there, &i));
		bench_must("weft_chan_recv", weft_chan_recv(&t->back, &v));
	}
	weft_chan_close(&t->there);
	return 0;
}

static void pingpong(void)
{
	uint64_t there[1], back[1], t0 = now_ns();
	struct trips trips = { WEFT_CHAN_INIT(there), WEFT_CHAN_INIT(back) };
	struct trips *t = &trips;

	WEFT_SUPERVISE(scope) {
		bench_go(scope, answer, &t, sizeof(t));
		bench_go(scope, ask, &t, sizeof(t));
	}
	per_op("pingpong_chan", t0, TRIPS);
}

/* A request is the address of the channel for its reply. */
static int64_t serve(void *arg)
{
	struct weft_chan *requests = *(struct weft_chan **)arg, *reply;
	const uint64_t one = 1;

	while (weft_chan_recv(requests, &reply) == 0)
		bench_must("weft_chan_send", weft_chan_send(reply, &one));
	return 0;
}

static int64_t request(void *arg)
{
	struct weft_chan *requests = *(struct weft_chan **)arg;

	for (int i = 0; i < TRIPS; i++) {
		uint64_t room[1], v;
		struct weft_chan oneshot = WEFT_CHAN_INIT(room);
		struct weft_chan *reply = &oneshot;

		bench_must("weft_chan_send", weft_chan_send(requests, &reply));
		bench_must("weft_chan_recv", weft_chan_recv(reply, &v));
	}
	weft_chan_close(requests);
	return 0;
}

static void oneshot(void)
{
	struct weft_chan *room[1];
	uint64_t t0 = now_ns();
	struct weft_chan chan = WEFT_CHAN_INIT(room), *requests = &chan;

	WEFT_SUPERVISE(scope) {
		bench_go(scope, serve, &requests, sizeof(requests));
		bench_go(scope, request, &requests, sizeof(requests));
	}
	per_op("request_oneshot", t0, TRIPS);
}

static int64_t trips(void *arg)
{
	(void)arg;
	pingpong();
	oneshot();
	return 0;
}

/* ---- Throughput --------------------------------------------------------- */

struct crowd {
	struct weft_chan chan;
	struct weft_wait_group producers;
	weft__atomic(uint64_t) got;
	uint64_t each;
};

static int64_t produce(void *arg)
{
	struct crowd *c = *(struct crowd **)arg;

	for (uint64_t i = 0; i < c->each; i++)
		bench_must("weft_chan_send", weft_chan_send(&c->chan, &i));
	weft_wait_group_done(&c->producers);
	return 0;
}

static int64_t consume(void *arg)
{
	struct crowd *c = *(struct crowd **)arg;
	uint64_t n = 0, v;

	while (weft_chan_recv(&c->chan, &v) == 0)
		n++;
	/* relaxed: read after the end of the scope. */
	weft__add(&c->got, n, relaxed);
	return 0;
}

static void channel(const char *bench, uint32_t producers, uint32_t consumers)
{
	static uint64_t room[ROOM];
	struct crowd crowd = {
		.chan = WEFT_CHAN_INIT(room),
		.producers = WEFT_WAIT_GROUP_INIT(producers),
		.each = MESSAGES / producers,
	};
	struct crowd *c = &crowd;
	uint64_t t0 = now_ns();

	WEFT_SUPERVISE(scope) {
		for (uint32_t i = 0; i < producers; i++)
			bench_go(scope, produce, &c, sizeof(c));
		for (uint32_t i = 0; i < consumers; i++)
			bench_go(scope, consume, &c, sizeof(c));
		bench_must("weft_wait_group_wait",
			   weft_wait_group_wait(&c->producers));
		weft_chan_close(&c->chan);
	}
	/* relaxed: all tasks have ended. */
	if (weft__load(&c->got, relaxed) != MESSAGES)
		bench_die(bench, -EIO);
	per_op(bench, t0, MESSAGES);
}

static int64_t channels(void *arg)
{
	(void)arg;
	channel("chan_1p1c", 1, 1);
	channel("chan_4p1c", 4, 1);
	channel("chan_4p4c", 4, 4);
	return 0;
}

/* ---- Locks -------------------------------------------------------------- */

struct locked {
	struct weft_mutex mutex;
	struct weft_sem sem;
	uint64_t value, each;
	bool yields;
};

static int64_t lock(void *arg)
{
	struct locked *l = *(struct locked **)arg;

	for (uint64_t i = 0; i < l->each; i++) {
		bench_must("weft_mutex_lock", weft_mutex_lock(&l->mutex));
		l->value++;
		if (l->yields)
			bench_must("weft_yield", weft_yield());
		weft_mutex_unlock(&l->mutex);
	}
	return 0;
}

static int64_t acquire(void *arg)
{
	struct locked *l = *(struct locked **)arg;

	for (uint64_t i = 0; i < l->each; i++) {
		bench_must("weft_sem_acquire", weft_sem_acquire(&l->sem, 1));
		if (l->yields)
			bench_must("weft_yield", weft_yield());
		weft_sem_release(&l->sem, 1);
	}
	return 0;
}

static void locks(const char *bench, weft_fn body, uint64_t tasks,
		  uint64_t total, bool yields)
{
	struct locked locked = {
		.sem = WEFT_SEM_INIT(tasks > 1 ? 2 : 1),
		.each = total / tasks,
		.yields = yields,
	};
	struct locked *l = &locked;
	uint64_t t0 = now_ns();

	WEFT_SUPERVISE(scope)
		for (uint64_t i = 0; i < tasks; i++)
			bench_go(scope, body, &l, sizeof(l));
	if (body == lock && locked.value != total)
		bench_die(bench, -EIO);
	per_op(bench, t0, total);
}

static int64_t mutexes(void *arg)
{
	(void)arg;
	locks("mutex_uncontended", lock, 1, LOCKS, false);
	locks("mutex_8tasks", lock, TASKS, LOCKS_SHARED, false);
	locks("mutex_8tasks_yield", lock, TASKS, LOCKS_YIELD, true);
	locks("sem_uncontended", acquire, 1, LOCKS, false);
	locks("sem2_8tasks_yield", acquire, TASKS, LOCKS_YIELD, true);
	return 0;
}

/* ---- Skynet ------------------------------------------------------------- */

struct node {
	struct weft_chan *up;
	uint64_t number, leaves;
};

static int64_t skynet(void *arg)
{
	struct node *node = arg;
	uint64_t room[BRANCHES], sum = 0, v;
	struct weft_chan chan = WEFT_CHAN_INIT(room);

	if (node->leaves == 1)
		return weft_chan_send(node->up, &node->number);
	WEFT_SUPERVISE(scope) {
		struct node child = {
			.up = &chan,
			.leaves = node->leaves / BRANCHES,
		};

		for (uint64_t i = 0; i < BRANCHES; i++) {
			child.number = node->number + i * child.leaves;
			bench_go(scope, skynet, &child, sizeof(child));
		}
		for (int i = 0; i < BRANCHES; i++) {
			bench_must("weft_chan_recv",
				   weft_chan_recv(&chan, &v));
			sum += v;
		}
	}
	return weft_chan_send(node->up, &sum);
}

static int64_t skynet_run(void *arg)
{
	uint64_t room[1], sum, t0 = now_ns();
	struct weft_chan chan = WEFT_CHAN_INIT(room);
	struct node root = { .up = &chan, .number = 0, .leaves = LEAVES };

	(void)arg;
	bench_must("skynet", skynet(&root));
	bench_must("weft_chan_recv", weft_chan_recv(&chan, &sum));
	if (sum != (uint64_t)LEAVES * (LEAVES - 1) / 2)
		bench_die("skynet", -EIO);
	emit("skynet_1M", (double)(now_ns() - t0) / 1e6, "ms");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct bench_option none[] = { { NULL, NULL, false } };
	static const struct {
		const char *what;
		weft_fn run;
	} table[] = {
		{ "pingpong", trips },
		{ "channel", channels },
		{ "mutex", mutexes },
		{ "skynet", skynet_run },
	};
	const char *what = bench_parse(argc, argv, none);

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (strcmp(what, table[i].what) == 0) {
			bench_run(table[i].run, NULL);
			return 0;
		}
	fprintf(stderr, "bench_sync: no bench \"%s\"\n", what);
	return 2;
}
