/* SPDX-License-Identifier: MIT */
/* Connections to the PostgreSQL that a test program has started. */
#ifndef WEFT_TESTS_SUPPORT_PQ_SCENE_H
#define WEFT_TESTS_SUPPORT_PQ_SCENE_H

#include <libpq-fe.h>
#include <weft/pq.h>

#include "tests/support/io_future.h"
#include "tests/support/pq_kit.h"

static struct server pq_server;
static char pq_database[128];

static inline PGconn *pq_connect(void)
{
	PGconn *conn = NULL;

	ck_assert_int_eq(weft_pq_connect(pq_database, &conn), 0);
	ck_assert_int_eq(PQstatus(conn), CONNECTION_OK);
	return conn;
}

/* A command without a result, which succeeds. */
static inline void pq_do(PGconn *conn, const char *command)
{
	ck_assert_msg(weft_pq_exec(conn, command, NULL, NULL) == 0, "%s: %s",
		      command, PQerrorMessage(conn));
}

/* The value that a command results in, as a number. */
static inline long pq_number(PGconn *conn, const char *command)
{
	PGresult *result;
	long number;

	ck_assert_int_eq(weft_pq_exec(conn, command, NULL, &result), 0);
	ck_assert_msg(PQresultStatus(result) == PGRES_TUPLES_OK, "%s: %s",
		      command, PQresultErrorMessage(result));
	ck_assert_int_eq(PQntuples(result), 1);
	number = atol(PQgetvalue(result, 0, 0));
	PQclear(result);
	return number;
}

/* It works: nothing is left of what was before. */
static inline void pq_expect_usable(PGconn *conn)
{
	ck_assert_int_eq(PQtransactionStatus(conn), PQTRANS_IDLE);
	ck_assert_int_eq(pq_number(conn, "SELECT 17"), 17);
}

/* Waits until the number becomes another's. */
static inline void pq_wait_for(PGconn *conn, const char *command, long wanted)
{
	wait_until(pq_number(conn, command) == wanted);
}

/* main(): the suite with a server, if one is installed. */
static inline int pq_tests_run(Suite *(*make_suite)(void))
{
	char dir[256];
	int status;

	if (!pq_programs(dir)) {
		puts("skipped: PostgreSQL is not installed");
		return 77;
	}
	if (!pq_begin(&pq_server, dir))
		return server_failed(&pq_server, "PostgreSQL");
	pq_conninfo(&pq_server, pq_database);
	status = io_tests_run(make_suite());
	pq_end(&pq_server);
	return status;
}

#endif
