/* SPDX-License-Identifier: MIT */
/*
 * Commands of PostgreSQL, the data of a COPY, and notifications.
 *
 * Each waits in the same way: libpq sends what it holds, the task waits for the
 * socket, and libpq takes what has come, until libpq has what the caller asked
 * for.  No function of libpq that may wait is called before libpq says that it
 * would not.
 */
#include <weft/pq.h>

#include <errno.h>
#include <poll.h>

#include "adapters/pq/connection.h"

/* So much is given to libpq before it is sent. */
enum { PIECE_BYTES = 65536 };

/* ---- Waiting ---- */

int weft__pq_may_wait(void)
{
	/* Where a wait may begin, this finds that there is no descriptor. */
	int r = weft_poll(-1, 0);

	if (r != -EBADF)
		return r;
	/* A deadline that passed just now need not be noticed yet. */
	return weft_deadline_passed() ? weft_yield() : 0;
}

int weft__pq_flush(PGconn *conn)
{
	int r = PQflush(conn);

	return r < 0 ? -ECONNRESET : r;
}

int weft__pq_step(PGconn *conn)
{
	int fd = PQsocket(conn), r = weft__pq_flush(conn);

	if (r < 0 || fd < 0)
		return -ECONNRESET;
	r = weft_poll(fd, (short)(r ? POLLIN | POLLOUT : POLLIN));
	if (r < 0)
		return r;
	if ((r & ~POLLOUT) && !PQconsumeInput(conn))
		return -ECONNRESET;
	return 0;
}

int weft__pq_refusal(const PGconn *conn)
{
	if (PQstatus(conn) != CONNECTION_OK)
		return -ECONNRESET;
	return PQtransactionStatus(conn) == PQTRANS_ACTIVE ? -EBUSY : -EINVAL;
}

/* ---- Results ---- */

int weft_pq_result(PGconn *conn, PGresult **ret_result)
{
	int r = weft__pq_may_wait();

	if (r == 0)
		r = weft__pq_flush(conn);
	while (r >= 0 && (r > 0 || PQisBusy(conn))) {
		r = weft__pq_step(conn);
		if (r == 0)
			r = weft__pq_flush(conn);
	}
	if (r < 0)
		return r;
	*ret_result = PQgetResult(conn);
	return 0;
}

int weft__pq_last_result(PGconn *conn, PGresult **ret_result)
{
	PGresult *last = NULL, *next = NULL;
	ExecStatusType status;
	int r;

	while ((r = weft_pq_result(conn, &next)) == 0 && next) {
		PQclear(last);
		last = next;
		status = PQresultStatus(last);
		if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
		    status == PGRES_COPY_BOTH ||
		    status == PGRES_PIPELINE_SYNC)
			break;
	}
	if (r == 0 && !last)
		r = weft__pq_refusal(conn);
	if (r < 0) {
		PQclear(last);
		return r;
	}
	*ret_result = last;
	return 0;
}

static bool is_error(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE ||
	       status == PGRES_PIPELINE_ABORTED;
}

int weft__pq_hand_over(PGresult *result, PGresult **ret_result)
{
	int r;

	if (ret_result) {
		*ret_result = result;
		return 0;
	}
	r = is_error(result) ? -EREMOTEIO : 0;
	PQclear(result);
	return r;
}

/* `sent` is what a PQsend...() returned. */
static int finish_command(PGconn *conn, int sent, PGresult **ret_result)
{
	PGresult *result;
	int r = sent ? weft__pq_last_result(conn, &result) :
		       weft__pq_refusal(conn);

	return r < 0 ? r : weft__pq_hand_over(result, ret_result);
}

/* May a command begin? */
static int begin_command(const PGconn *conn)
{
	int r = weft__pq_may_wait();

	return r == 0 && weft__pq_is_cancelling(conn) ? -EBUSY : r;
}

static const struct weft_pq_params NO_PARAMS = { .count = 0 };

int weft_pq_exec(PGconn *conn, const char *command,
		 const struct weft_pq_params *params, PGresult **ret_result)
{
	int sent, r = begin_command(conn);

	if (r < 0)
		return r;
	sent = params ? PQsendQueryParams(conn, command, params->count,
					  params->types, params->values,
					  params->lengths, params->formats,
					  params->result_format) :
			PQsendQuery(conn, command);
	return finish_command(conn, sent, ret_result);
}

int weft_pq_prepare(PGconn *conn, const char *name, const char *command,
		    int types_count, const unsigned *types)
{
	int r = begin_command(conn);

	if (r < 0)
		return r;
	return finish_command(
		conn, PQsendPrepare(conn, name, command, types_count, types),
		NULL);
}

int weft_pq_exec_prepared(PGconn *conn, const char *name,
			  const struct weft_pq_params *params,
			  PGresult **ret_result)
{
	const struct weft_pq_params *p = params ? params : &NO_PARAMS;
	int r = begin_command(conn);

	if (r < 0)
		return r;
	return finish_command(conn,
			      PQsendQueryPrepared(conn, name, p->count,
						  p->values, p->lengths,
						  p->formats,
						  p->result_format),
			      ret_result);
}

/* ---- COPY ---- */

/* Waits until all is sent. */
static int send_all(PGconn *conn)
{
	int r;

	while ((r = weft__pq_flush(conn)) > 0) {
		r = weft__pq_step(conn);
		if (r < 0)
			break;
	}
	return r;
}

/* libpq refuses data: it has no COPY, or no connection. */
static int copy_refusal(const PGconn *conn)
{
	return PQstatus(conn) == CONNECTION_OK ? -EINVAL : -ECONNRESET;
}

int weft_pq_copy_put(PGconn *conn, const void *data, size_t bytes)
{
	const char *at = data;
	int taken, r = weft__pq_may_wait();

	while (r == 0 && bytes > 0) {
		/* libpq copies it, so it is given in pieces. */
		int some = bytes < PIECE_BYTES ? (int)bytes : PIECE_BYTES;

		taken = PQputCopyData(conn, at, some);
		if (taken < 0)
			return copy_refusal(conn);
		if (taken > 0) {
			at += some;
			bytes -= (size_t)some;
		}
		r = send_all(conn);
	}
	return r;
}

int weft_pq_copy_end(PGconn *conn, const char *error, PGresult **ret_result)
{
	PGresult *result;
	int taken = 0, r = weft__pq_may_wait();

	while (r == 0 && taken == 0) {
		taken = PQputCopyEnd(conn, error);
		if (taken < 0)
			return copy_refusal(conn);
		if (taken == 0)
			r = send_all(conn);
	}
	if (r == 0)
		r = weft__pq_last_result(conn, &result);
	return r < 0 ? r : weft__pq_hand_over(result, ret_result);
}

ssize_t weft_pq_copy_get(PGconn *conn, char **ret_row)
{
	char *row = NULL;
	int n, r = weft__pq_may_wait();

	while (r == 0) {
		n = PQgetCopyData(conn, &row, 1);
		if (n > 0) {
			*ret_row = row;
			return n;
		}
		if (n == -1)
			return 0;
		if (n < 0)
			return copy_refusal(conn);
		r = weft__pq_step(conn);
	}
	return r;
}

/* ---- Notifications ---- */

int weft_pq_notification(PGconn *conn, PGnotify **ret_notification)
{
	PGnotify *notification;
	int r = weft__pq_may_wait();

	while (r == 0) {
		notification = PQnotifies(conn);
		if (notification) {
			*ret_notification = notification;
			return 0;
		}
		r = weft__pq_step(conn);
	}
	return r;
}
