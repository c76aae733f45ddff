/* SPDX-License-Identifier: MIT */
/*
 * Connecting to PostgreSQL, and the request to cancel a command.
 *
 * PQconnectStart() and PQconnectPoll() do not wait for the server, but look up
 * names, read files of passwords and certificates, and ask Kerberos; PQcancel()
 * makes a connection of its own and waits for its end.  So each runs on a
 * thread, and between two steps of a connection the task waits for its socket.
 * libpq may close the socket in a step, and open another of the same number:
 * no task waits for it meanwhile.
 */
#include <weft/pq.h>

#include <errno.h>
#include <libpq-events.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/aside/aside.h"
#include "adapters/pq/connection.h"

/* ---- Connecting ---- */

struct connecting {
	struct aside aside; /* first: it is the address of the whole */
	char *conninfo;
	PGconn *conn; /* NULL before the first step */
	PostgresPollingStatusType status;
};

static void connecting_step(struct aside *aside)
{
	struct connecting *c = (struct connecting *)aside;

	if (c->conn) {
		c->status = PQconnectPoll(c->conn);
		return;
	}
	c->conn = PQconnectStart(c->conninfo);
	c->status = c->conn && PQstatus(c->conn) != CONNECTION_BAD ?
			    PGRES_POLLING_WRITING :
			    PGRES_POLLING_FAILED;
}

static void connecting_free(struct connecting *c)
{
	weft__aside_fini(&c->aside);
	free(c->conninfo);
	free(c);
}

static void connecting_drop(struct aside *aside)
{
	struct connecting *c = (struct connecting *)aside;

	PQfinish(c->conn);
	connecting_free(c);
}

static int connecting_step_aside(struct connecting *c)
{
	int r = weft__aside_start(&c->aside);

	if (r == 0)
		r = weft__aside_wait(&c->aside);
	return r < 0 ? r : c->aside.error;
}

/* Until there is a connection, or none can be. */
static int connecting_run(struct connecting *c)
{
	int r = connecting_step_aside(c);

	while (r >= 0 && (c->status == PGRES_POLLING_READING ||
			  c->status == PGRES_POLLING_WRITING)) {
		r = weft_poll(PQsocket(c->conn),
			      c->status == PGRES_POLLING_READING ? POLLIN :
								   POLLOUT);
		if (r >= 0)
			r = connecting_step_aside(c);
	}
	return r < 0 ? r : 0;
}

static int connecting_result(struct connecting *c, PGconn **ret_conn)
{
	if (!c->conn)
		return -ENOMEM;
	*ret_conn = c->conn;
	return c->status == PGRES_POLLING_OK &&
			       PQsetnonblocking(c->conn, 1) == 0 ?
		       0 :
		       -EREMOTEIO;
}

int weft_pq_connect(const char *conninfo, PGconn **ret_conn)
{
	struct connecting *c;
	int r = weft__pq_may_wait();

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	weft__aside_init(&c->aside, connecting_step, connecting_drop);
	c->conninfo = strdup(conninfo);
	r = c->conninfo ? connecting_run(c) : -ENOMEM;
	if (!weft__aside_leave(&c->aside))
		return r;
	if (r < 0) {
		connecting_drop(&c->aside);
		return r;
	}
	r = connecting_result(c, ret_conn);
	connecting_free(c);
	return r;
}

/* ---- Cancelling ---- */

/* A request to cancel, which is the connection's until it is done: one that is
 * still under way could hit a later command. */
struct request {
	struct aside aside; /* first: it is the address of the whole */
	PGcancel *cancel;
	bool taken;
};

static void request_send(struct aside *aside)
{
	struct request *request = (struct request *)aside;
	char why[256];

	request->taken = PQcancel(request->cancel, why, sizeof(why));
}

static void request_drop(struct aside *aside)
{
	struct request *request = (struct request *)aside;

	weft__aside_fini(&request->aside);
	PQfreeCancel(request->cancel);
	free(request);
}

/* libpq calls it when the connection is finished. */
static int connection_event(PGEventId id, void *info, void *arg)
{
	PGEventConnDestroy *destroy = info;
	struct request *request;

	(void)arg;
	if (id != PGEVT_CONNDESTROY)
		return 1;
	request = PQinstanceData(destroy->conn, connection_event);
	if (request && weft__aside_leave(&request->aside))
		request_drop(&request->aside);
	return 1;
}

static struct request *request_of(const PGconn *conn)
{
	return PQinstanceData(conn, connection_event);
}

bool weft__pq_is_cancelling(const PGconn *conn)
{
	return request_of(conn);
}

/* Asks the server to cancel the command. */
static int request_begin(PGconn *conn)
{
	struct request *request = calloc(1, sizeof(*request));
	int r = -ENOMEM;

	if (!request)
		return r;
	weft__aside_init(&request->aside, request_send, request_drop);
	request->cancel = PQgetCancel(conn);
	/* It fails if it is registered. */
	(void)PQregisterEventProc(conn, connection_event, "weft", NULL);
	if (request->cancel &&
	    PQsetInstanceData(conn, connection_event, request)) {
		r = weft__aside_start(&request->aside);
		if (r < 0)
			PQsetInstanceData(conn, connection_event, NULL);
	}
	if (r < 0)
		request_drop(&request->aside);
	return r;
}

/* Waits for the request.  An interrupted wait leaves it to the connection. */
static int request_end(PGconn *conn)
{
	struct request *request = request_of(conn);
	int r = weft__aside_wait(&request->aside);

	if (r < 0)
		return r;
	(void)weft__aside_leave(&request->aside);
	PQsetInstanceData(conn, connection_event, NULL);
	r = request->aside.error;
	if (r == 0 && !request->taken)
		r = -EREMOTEIO;
	request_drop(&request->aside);
	return r;
}

/* Throws the rows of a COPY away. */
static int drain_rows(PGconn *conn)
{
	ssize_t n;
	char *row;

	while ((n = weft_pq_copy_get(conn, &row)) > 0)
		PQfreemem(row);
	return (int)n;
}

/* Goes past all results.  A COPY has to be ended by this side as well. */
static int drain(PGconn *conn)
{
	PGresult *result;
	ExecStatusType status;
	int r;

	while ((r = weft_pq_result(conn, &result)) == 0 && result) {
		status = PQresultStatus(result);
		PQclear(result);
		if (status == PGRES_COPY_BOTH)
			return -EINVAL;
		if (status == PGRES_COPY_OUT)
			r = drain_rows(conn);
		else if (status == PGRES_COPY_IN)
			r = weft_pq_copy_end(conn, "cancelled", NULL);
		if (r < 0 && r != -EREMOTEIO)
			return r;
	}
	return r;
}

/* Asks, and goes past all results if they come within that time: 1 if they do
 * not, 0, or an error. */
static int cancel_within(PGconn *conn, weft_nsec length_ns)
{
	int r = request_of(conn) ? 0 : request_begin(conn);

	if (r == 0)
		r = request_end(conn);
	if (r < 0 || PQtransactionStatus(conn) != PQTRANS_ACTIVE)
		return r;
	WEFT_WITHIN (length_ns)
		r = drain(conn);
	if (r != -ETIMEDOUT && r != -ECANCELED)
		return r;
	/* The caller's own interruption? */
	r = weft__pq_may_wait();
	return r < 0 ? r : 1;
}

int weft_pq_cancel(PGconn *conn)
{
	int r = weft__pq_may_wait();

	if (r < 0)
		return r;
	if (PQstatus(conn) != CONNECTION_OK)
		return -ECONNRESET;
	if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
		return -EINVAL;
	if (!request_of(conn) && PQtransactionStatus(conn) != PQTRANS_ACTIVE)
		return 0;
	/* A server that has not begun the command ignores the request. */
	r = 1;
	for (weft_nsec ns = WEFT_MS(100); r > 0; ns *= 2)
		r = cancel_within(conn, ns);
	return r;
}
