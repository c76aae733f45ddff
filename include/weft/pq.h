/* SPDX-License-Identifier: MIT */
/*
 * PostgreSQL, by libpq: its connections in tasks.  In libweft-pq; its users
 * also include <libpq-fe.h>.
 *
 *	PGresult *result;
 *
 *	r = weft_pq_exec(conn, "SELECT now()", NULL, &result);
 *	if (r == 0)
 *		PQclear(result);
 *
 * A connection is libpq's own PGconn.  The calls here are in place of libpq's
 * functions that may wait; they suspend the task and block no thread.  All
 * functions that look at a connection or a result are libpq's.  A connection
 * comes from weft_pq_connect() or a pool, and is non-blocking.  One task at a
 * time uses it.
 *
 * Results of calls are about the connection; the server's answer to a command
 * is in its PGresult, also if it is an error.  After -ECANCELED or -ETIMEDOUT
 * the command goes on at the server, and other commands return -EBUSY: call
 * weft_pq_cancel(), or give the connection back to its pool, which does so, or
 * PQfinish() it.
 *
 * Calls that suspend obey WEFT_WITHIN and cancellation, and return -EPERM
 * outside a task or in a future; -ENOMEM; and -ECONNRESET if the connection is
 * lost, with the reason in PQerrorMessage().
 */
#ifndef WEFT_PQ_H
#define WEFT_PQ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weft/config.h>

WEFT_BEGIN_DECLS

/* PGconn, PGresult and PGnotify. */
struct pg_conn;
struct pg_result;
struct pgNotify;

/*
 * Connects, as PQconnectdb(), with the text that it takes.  Names are looked
 * up, and certificates and tickets checked, on a thread of weft_blocking().
 * Suspends; connect_timeout has no effect, use WEFT_WITHIN.  Returns 0, and the
 * caller ends the connection with PQfinish(), which does not block.  Or
 * -EREMOTEIO: no server took it; *ret_conn has the reason, for
 * PQerrorMessage(), and is ended in the same way.  Or -ECANCELED, -ETIMEDOUT.
 */
WEFT_API int weft_pq_connect(const char *conninfo, struct pg_conn **ret_conn)
	WEFT_WARN_UNUSED;

/* The parameters of a command, as of PQexecParams().  Zeroed: none. */
struct weft_pq_params {
	int count;
	int result_format;	   /* 0: text; 1: binary */
	const unsigned *types;	   /* OIDs; NULL: the server finds out */
	const char *const *values; /* a NULL one is SQL's NULL */
	const int *lengths;	   /* of binary values; NULL: all are text */
	const int *formats;	   /* NULL: all are text */
};

/*
 * Carries out a command, and waits for its result, which the caller frees with
 * PQclear().  With params NULL there may be several commands in the text, as of
 * PQexec(); the result is that of the last, or of the first that failed.  A
 * COPY has a result when its data may flow.  A NULL ret_result: the result is
 * not needed, and if it is an error the call returns -EREMOTEIO.  Suspends.
 * Returns 0; -EBUSY: another command is under way; -EINVAL: libpq refuses it,
 * see PQerrorMessage(); or an error as above.
 */
WEFT_API int weft_pq_exec(struct pg_conn *conn, const char *command,
			  const struct weft_pq_params *params,
			  struct pg_result **ret_result);

/* Prepares a statement, and carries one out; types (OIDs) may be NULL.  As
 * weft_pq_exec(). */
WEFT_API int weft_pq_prepare(struct pg_conn *conn, const char *name,
			     const char *command, int types_count,
			     const unsigned *types);
WEFT_API int weft_pq_exec_prepared(struct pg_conn *conn, const char *name,
				   const struct weft_pq_params *params,
				   struct pg_result **ret_result);

/* Waits for the next result, or for the end of the results: NULL.  For commands
 * that were sent by PQsendQuery() and the like: row by row
 * (PQsetSingleRowMode()), in a pipeline (PQenterPipelineMode()).  Suspends.
 * Returns 0 or an error as above. */
WEFT_API int weft_pq_result(struct pg_conn *conn,
			    struct pg_result **ret_result);

/* Ends a command that was given up: asks the server to cancel it, and waits for
 * its end; no result is kept.  Without a command it does nothing.  Suspends.
 * After an interrupted call the request is still under way, other commands
 * return -EBUSY, and the call may be repeated.  Returns 0; -EREMOTEIO: the
 * server did not take the request; -EINVAL: a pipeline or a replication, which
 * only PQfinish() ends; or an error as above. */
WEFT_API int weft_pq_cancel(struct pg_conn *conn);

/*
 * The data of a COPY, after a result of PGRES_COPY_IN or PGRES_COPY_OUT.
 *
 *	put  sends bytes, in pieces of any size: 0 or an error
 *	end  ends the data, or with an error text fails the COPY, and waits for
 *	     its result; as weft_pq_exec()
 *	get  waits for a row, which the caller frees with PQfreemem(): its
 *	     bytes, or 0 after the last; then weft_pq_result() has the result
 *
 * -EINVAL: there is no such COPY.  Suspend.  After an interrupted put the bytes
 * are sent or not, so end with an error or cancel; an interrupted get loses
 * nothing.
 */
WEFT_API int weft_pq_copy_put(struct pg_conn *conn, const void *data,
			      size_t bytes);
WEFT_API int weft_pq_copy_end(struct pg_conn *conn, const char *error,
			      struct pg_result **ret_result);
WEFT_API ssize_t weft_pq_copy_get(struct pg_conn *conn, char **ret_row);

/* Waits for a notification, after LISTEN; the caller frees it with PQfreemem().
 * An interrupted call loses none.  Suspends.  Returns 0 or an error. */
WEFT_API int weft_pq_notification(struct pg_conn *conn,
				  struct pgNotify **ret_notification);

/* A pool of connections to one database. */
struct weft_pq_pool;

/* Makes a pool of at most connections_max connections, none of which is open
 * yet.  The text is copied.  Does not suspend.  Returns 0, -ENOMEM, or -EINVAL
 * (NULL, or a maximum of 0). */
WEFT_API int weft_pq_pool_open(const char *conninfo, unsigned connections_max,
			       struct weft_pq_pool **ret_pool);

/* Takes a connection, which is idle and outside of transactions: one that is
 * open, or a new one.  Callers that wait for one are served in order.  A
 * connection that the server has ended meanwhile is replaced.  Suspends.
 * Returns 0, -EREMOTEIO (the server cannot be reached; see
 * weft_pq_pool_error()), or an error of weft_pq_connect(). */
WEFT_API int weft_pq_pool_get(struct weft_pq_pool *pool,
			      struct pg_conn **ret_conn) WEFT_WARN_UNUSED;

/*
 * Gives a connection back, in any state.  If a command or a transaction is
 * under way, a task of the runtime ends it within 5 seconds, or closes the
 * connection; the caller does not wait for that.  The settings of a session
 * (SET, LISTEN, PREPARE) stay.  Does not suspend.  In a task.
 */
WEFT_API void weft_pq_pool_put(struct weft_pq_pool *pool,
			       struct pg_conn *conn);

/* Writes the reason of the last connection that failed to text, which has that
 * many bytes.  Does not suspend. */
WEFT_API void weft_pq_pool_error(struct weft_pq_pool *pool, char *text,
				 size_t bytes);

/* Waits until all connections are back, closes them, and frees the pool, which
 * no other task may use any more; NULL is none.  Suspends.  Returns 0, or
 * -EPERM, -ECANCELED or -ETIMEDOUT, and the pool is as before. */
WEFT_API int weft_pq_pool_close(struct weft_pq_pool *pool);

WEFT_END_DECLS

#endif
