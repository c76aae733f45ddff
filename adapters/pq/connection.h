/* SPDX-License-Identifier: MIT */
/* The functions that the files of libweft-pq share. */
#ifndef WEFT_ADAPTERS_PQ_CONNECTION_H
#define WEFT_ADAPTERS_PQ_CONNECTION_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <weft/weft.h>

/* Whether the caller may wait: 0, or -EPERM, -ECANCELED, -ETIMEDOUT. */
int weft__pq_may_wait(void);

/* Sends what libpq holds: 0 when all is sent, 1, or -ECONNRESET. */
int weft__pq_flush(PGconn *conn);

/* Waits until the server can be read from, or written to if something is to be
 * sent, and lets libpq do so. */
int weft__pq_step(PGconn *conn);

/* Is a request to cancel under way, which could hit the next command? */
bool weft__pq_is_cancelling(const PGconn *conn);

/* Why libpq does not take a command now. */
int weft__pq_refusal(const PGconn *conn);

/* Waits for the last result of a command, or the first that is of a COPY. */
int weft__pq_last_result(PGconn *conn, PGresult **ret_result);

/* The end of a call with a result that may not be wanted. */
int weft__pq_hand_over(PGresult *result, PGresult **ret_result);

#endif
