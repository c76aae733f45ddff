/* SPDX-License-Identifier: MIT */
/*
 * Requests - the rings of two workers, for the models of operations.  Thread 0
 * is a task, or polls a future, that reads from descriptor FD; its request goes
 * through ring 0.  Ring 1 is that of thread 2.  The rings carry plain requests;
 * each model has its own code to submit and to complete them.
 */
#ifndef WEFT_TESTS_MODEL_REQUESTS_H
#define WEFT_TESTS_MODEL_REQUESTS_H

#define TASKS_TIME
#include "tests/model/tasks.h"

#include "io/request/call.h"
#include "tests/model/futures.h"

enum { ENTRIES = 4, FD = 3 };

static struct weft__reactor reactor;
static struct weft__shard shards[2];
static unsigned heads[2], tails[2];
/* The entries of the rings. */
static struct asked {
	struct weft__request request;
	uint64_t user_data;
} asked[2][ENTRIES];
static struct weft__fd fds[FD + 1];
static struct weft__fd *fd_chunks[1] = { fds };
static int32_t buffer;

static void requests_setup(void)
{
	tasks_setup(1);
	futures_clear();
	memset(&reactor, 0, sizeof(reactor));
	memset(shards, 0, sizeof(shards));
	memset(heads, 0, sizeof(heads));
	memset(tails, 0, sizeof(tails));
	memset(asked, 0, sizeof(asked));
	memset(fds, 0, sizeof(fds));
	buffer = 0;
	reactor.runtime = &runtime;
	reactor.fds.chunks = fd_chunks;
	runtime.driver = &reactor;
	for (unsigned i = 0; i < 2; i++) {
		pool[2 * i].shard = &shards[i];
		shards[i].ring.mask = ENTRIES - 1;
		shards[i].ring.head = &heads[i];
		shards[i].ring.published = &tails[i];
	}
	/* As after its first wait. */
	weft__scope_link(&records[0]);
	model_name(&records[0].op, "op");
	model_name(&records[0], "task 0");
	model_name(&records[2], "task 2");
	model_name(&fds[FD], "entry");
	model_name(&buffer, "buffer");
}

static void requests_check(void *arg)
{
	(void)arg;
	futures_check();
	model_assert(!(records[0].op & WEFT__OP_PENDING), "nothing is pending");
	model_assert(!fds[FD].waiting && !fds[FD].closing && !fds[FD].going,
		     "nobody is known to wait");
}

static struct weft__request read_request(void)
{
	return (struct weft__request){ .opcode = WEFT__OPCODE_READ,
				       .fd = FD,
				       .memory = &buffer };
}

/* entry: the descriptor's, or NULL if no close is to end it. */
static int32_t operate(struct weft__fd *entry, unsigned flags)
{
	struct weft__request request = read_request();
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r < 0 && !(flags & WEFT__OP_SHIELDED))
		return r;
	return weft__op_run(&request, entry, flags | WEFT__OP_AT_ONCE);
}

/* The same for a future. */
static int32_t operate_await(struct weft__fd *entry, unsigned flags)
{
	struct weft__request request = read_request();
	struct weft__worker *worker;
	struct weft__task *task;
	int r = weft__await_enter(WEFT__AWAITS_OP, NULL, 0, &worker, &task);

	return r < 0 ? r :
		       weft__op_await(WEFT__AWAITS_OP, worker, task, &request,
				      entry, flags | WEFT__OP_AT_ONCE);
}

void weft__ring_prepare(struct weft__ring *ring,
			const struct weft__request *request, uint64_t user_data)
{
	unsigned i = ring == &shards[1].ring;

	asked[i][ring->tail % ENTRIES] =
		(struct asked){ *request, user_data };
}

/*
 * Stand-ins for functions that are not modelled.
 */

bool weft__ring_remembers(const struct weft__ring *ring)
{
	(void)ring;
	return false;
}

void weft__ring_forget(struct weft__ring *ring, int fd, bool closes)
{
	(void)ring, (void)fd, (void)closes;
}

unsigned weft__shard_serve(struct weft__worker *worker,
			   struct weft__shard *shard)
{
	(void)worker, (void)shard;
	return 0;
}

int weft__fd_make(struct weft__fd_table *of, int fd,
		  struct weft__fd **ret_entry)
{
	(void)of, (void)fd, (void)ret_entry;
	return -ENOMEM;
}

#endif
