/* SPDX-License-Identifier: MIT */
/*
 * A pool of connections to PostgreSQL.
 *
 * There is a permit for each connection that may be out; the semaphore serves
 * those that wait in order.  A task with a permit takes the idle connection
 * that was used last, or opens one.
 *
 * A connection comes back in any state.  If it is idle, it is kept.  If a
 * command or a transaction is under way, a task of the runtime ends that, and
 * has the permit until then, so that there are never more connections than
 * permits.
 *
 * **Invariants**
 *   PQPOOL1  Idle connections and permits that are out are at most
 *	      connections_max together.
 *   PQPOOL2  The last thing of the pool that a connection's way back touches
 *	      is the semaphore: weft_pq_pool_close() frees the pool when it has
 *	      all permits.
 *
 * **Concurrency**: the lock guards the idle connections and the text of the
 * last error, and is held in no call of libpq or of weft.
 */
#include <weft/pq.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/pq/connection.h"

#define MEND_NS WEFT_SEC(5)

struct weft_pq_pool {
	char *conninfo;		  /* immutable */
	unsigned connections_max; /* immutable */
	struct weft_sem permits;
	pthread_mutex_t lock;
	/* Under lock: */
	PGconn **idle;
	unsigned idle_count;
	char error[512];
};

/* ---- Life ---- */

static void pool_free(struct weft_pq_pool *pool)
{
	free(pool->conninfo);
	free(pool->idle);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int weft_pq_pool_open(const char *conninfo, unsigned connections_max,
		      struct weft_pq_pool **ret_pool)
{
	struct weft_pq_pool *pool;

	if (!conninfo || connections_max == 0)
		return -EINVAL;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pool->connections_max = connections_max;
	pool->permits = (struct weft_sem)WEFT_SEM_INIT(connections_max);
	pool->conninfo = strdup(conninfo);
	pool->idle = calloc(connections_max, sizeof(PGconn *));
	if (!pool->conninfo || !pool->idle) {
		pool_free(pool);
		return -ENOMEM;
	}
	*ret_pool = pool;
	return 0;
}

int weft_pq_pool_close(struct weft_pq_pool *pool)
{
	int r = weft__pq_may_wait();

	if (!pool)
		return 0;
	if (r == 0)
		r = weft_sem_acquire(&pool->permits, pool->connections_max);
	if (r < 0)
		return r;
	/* An earlier one may still be about to unlock it. */
	pthread_mutex_lock(&pool->lock);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->idle_count; i++)
		PQfinish(pool->idle[i]);
	pool_free(pool);
	return 0;
}

/* ---- Taking ---- */

static PGconn *take_idle(struct weft_pq_pool *pool)
{
	PGconn *conn = NULL;

	pthread_mutex_lock(&pool->lock);
	if (pool->idle_count > 0)
		conn = pool->idle[--pool->idle_count];
	pthread_mutex_unlock(&pool->lock);
	return conn;
}

/* The server may have ended it.  Its last words come first, so that the second
 * look sees the end. */
static bool is_alive(PGconn *conn)
{
	return PQconsumeInput(conn) && PQconsumeInput(conn) &&
	       PQstatus(conn) == CONNECTION_OK;
}

static int pool_connect(struct weft_pq_pool *pool, PGconn **ret_conn)
{
	PGconn *conn;
	int r = weft_pq_connect(pool->conninfo, &conn);

	if (r == -EREMOTEIO) {
		pthread_mutex_lock(&pool->lock);
		snprintf(pool->error, sizeof(pool->error), "%s",
			 PQerrorMessage(conn));
		pthread_mutex_unlock(&pool->lock);
		PQfinish(conn);
	}
	if (r == 0)
		*ret_conn = conn;
	return r;
}

int weft_pq_pool_get(struct weft_pq_pool *pool, PGconn **ret_conn)
{
	PGconn *conn;
	int r = weft__pq_may_wait();

	if (r == 0)
		r = weft_sem_acquire(&pool->permits, 1);
	if (r < 0)
		return r;
	while ((conn = take_idle(pool))) {
		if (is_alive(conn)) {
			*ret_conn = conn;
			return 0;
		}
		PQfinish(conn);
	}
	r = pool_connect(pool, ret_conn);
	if (r < 0)
		weft_sem_release(&pool->permits, 1);
	return r;
}

void weft_pq_pool_error(struct weft_pq_pool *pool, char *text, size_t bytes)
{
	pthread_mutex_lock(&pool->lock);
	snprintf(text, bytes, "%s", pool->error);
	pthread_mutex_unlock(&pool->lock);
}

/* ---- Giving back ---- */

static bool is_idle(const PGconn *conn)
{
	return PQstatus(conn) == CONNECTION_OK &&
	       PQtransactionStatus(conn) == PQTRANS_IDLE &&
	       !weft__pq_is_cancelling(conn) &&
	       PQpipelineStatus(conn) == PQ_PIPELINE_OFF;
}

/* Keeps it, or ends it; either way it is out no more. */
static void give_back(struct weft_pq_pool *pool, PGconn *conn)
{
	if (is_idle(conn)) {
		pthread_mutex_lock(&pool->lock);
		pool->idle[pool->idle_count++] = conn;
		pthread_mutex_unlock(&pool->lock);
	} else {
		PQfinish(conn);
	}
	weft_sem_release(&pool->permits, 1);
}

struct mending {
	struct weft_pq_pool *pool;
	PGconn *conn;
};

/* Ends the command or the transaction that is under way.  A failure leaves a
 * connection that is not idle, and so is closed. */
static int64_t mend(void *arg)
{
	struct mending *mending = arg;
	PGconn *conn = mending->conn;
	int r = 0;

	WEFT_WITHIN (MEND_NS) {
		r = weft_pq_cancel(conn);
		if (r == 0 && PQtransactionStatus(conn) != PQTRANS_IDLE)
			r = weft_pq_exec(conn, "ROLLBACK", NULL, NULL);
	}
	give_back(mending->pool, conn);
	return r;
}

void weft_pq_pool_put(struct weft_pq_pool *pool, PGconn *conn)
{
	struct mending mending = { pool, conn };
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = "libpq mend";
	if (is_idle(conn) || PQstatus(conn) != CONNECTION_OK ||
	    weft_submit(weft_runtime_self(), mend, &mending, sizeof(mending),
			&opts) < 0)
		give_back(pool, conn);
}
