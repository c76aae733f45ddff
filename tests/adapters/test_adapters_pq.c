/* SPDX-License-Identifier: MIT */
/*
 * PostgreSQL as it is: commands, deadlines, cancellation, COPY, notifications
 * and lost connections, with a server that this program starts.  Skipped where
 * none is installed.
 */
#include "tests/support/pq_scene.h"

/* ---- Connecting ---- */

IO_TEST(connection_that_fails_has_its_reason)
{
	char text[WEFT_ADDR_TEXT_BYTES], conninfo[160];
	PGconn *conn = NULL;
	int fd;

	snprintf(conninfo, sizeof(conninfo), "%s dbname=none", pq_database);
	ck_assert_int_eq(weft_pq_connect(conninfo, &conn), -EREMOTEIO);
	ck_assert_ptr_nonnull(strstr(PQerrorMessage(conn), "\"none\""));
	PQfinish(conn);
	ck_assert_int_eq(weft_pq_connect("nonsense", &conn), -EREMOTEIO);
	ck_assert_ptr_nonnull(strstr(PQerrorMessage(conn), "nonsense"));
	PQfinish(conn);
	/* Nothing listens there any more. */
	fd = tcp_listener(text);
	ck_assert_int_eq(weft_close(fd), 0);
	snprintf(conninfo, sizeof(conninfo), "host=127.0.0.1 port=%s",
		 strrchr(text, ':') + 1);
	ck_assert_int_eq(weft_pq_connect(conninfo, &conn), -EREMOTEIO);
	ck_assert_ptr_nonnull(strstr(PQerrorMessage(conn), "refused"));
	PQfinish(conn);
	return 0;
}

/* The server of that port takes the connection, and says nothing. */
IO_TEST(deadline_ends_a_connect)
{
	char text[WEFT_ADDR_TEXT_BYTES], conninfo[160];
	int fd = tcp_listener(text), r = 0;
	PGconn *conn = NULL;

	snprintf(conninfo, sizeof(conninfo), "host=127.0.0.1 port=%s",
		 strrchr(text, ':') + 1);
	WEFT_WITHIN (WEFT_MS(50))
		r = weft_pq_connect(conninfo, &conn);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_ptr_null(conn);
	WEFT_WITHIN (0)
		r = weft_pq_connect(conninfo, &conn);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_eq(weft_close(fd), 0);
	return 0;
}

static int64_t poll_connection(void *arg)
{
	PGconn *conn = *(PGconn **)arg, *other;
	PGresult *result;
	PGnotify *notification;
	char *row;

	ck_assert_int_eq(weft_pq_connect(pq_database, &other), -EPERM);
	ck_assert_int_eq(weft_pq_exec(conn, "SELECT 1", NULL, NULL), -EPERM);
	ck_assert_int_eq(weft_pq_result(conn, &result), -EPERM);
	ck_assert_int_eq(weft_pq_cancel(conn), -EPERM);
	ck_assert_int_eq(weft_pq_copy_put(conn, "a", 1), -EPERM);
	ck_assert_int_eq(weft_pq_copy_end(conn, NULL, NULL), -EPERM);
	ck_assert_int_eq(weft_pq_copy_get(conn, &row), -EPERM);
	ck_assert_int_eq(weft_pq_notification(conn, &notification), -EPERM);
	return 0;
}

static void *in_a_thread(void *arg)
{
	(void)poll_connection(&arg);
	return NULL;
}

IO_TEST(futures_and_threads_cannot_wait)
{
	PGconn *conn = pq_connect();
	pthread_t thread;

	WEFT_SUPERVISE (scope)
		ck_assert_int_eq(join(start_future(scope, poll_connection,
						   &conn, sizeof(conn))),
				 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, in_a_thread, conn), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	pq_expect_usable(conn);
	PQfinish(conn);
	return 0;
}

/* ---- Commands ---- */

IO_TEST(commands_have_results)
{
	const char *values[] = { "20", "22" };
	struct weft_pq_params params = { .count = 2, .values = values };
	PGconn *conn = pq_connect();
	PGresult *result;

	ck_assert_int_eq(pq_number(conn, "SELECT 1; SELECT 2"), 2);
	ck_assert_int_eq(weft_pq_exec(conn, "SELECT $1::int + $2::int",
				      &params, &result),
			 0);
	ck_assert_str_eq(PQgetvalue(result, 0, 0), "42");
	PQclear(result);
	ck_assert_int_eq(weft_pq_prepare(conn, "sum",
					 "SELECT $1::int + $2::int", 0, NULL),
			 0);
	params.result_format = 1;
	ck_assert_int_eq(weft_pq_exec_prepared(conn, "sum", &params, &result),
			 0);
	ck_assert_mem_eq(PQgetvalue(result, 0, 0), "\0\0\0*", 4);
	PQclear(result);
	ck_assert_int_eq(weft_pq_exec_prepared(conn, "sum", NULL, NULL),
			 -EREMOTEIO);
	pq_expect_usable(conn);
	PQfinish(conn);
	return 0;
}

IO_TEST(error_of_the_server_is_a_result)
{
	PGconn *conn = pq_connect();
	PGresult *result;

	ck_assert_int_eq(weft_pq_exec(conn, "SELECT 1/0", NULL, &result), 0);
	ck_assert_int_eq(PQresultStatus(result), PGRES_FATAL_ERROR);
	ck_assert_str_eq(PQresultErrorField(result, PG_DIAG_SQLSTATE),
			 "22012");
	PQclear(result);
	ck_assert_int_eq(weft_pq_exec(conn, "SELECT 1/0", NULL, NULL),
			 -EREMOTEIO);
	ck_assert_int_eq(weft_pq_prepare(conn, "x", "nonsense", 0, NULL),
			 -EREMOTEIO);
	pq_expect_usable(conn);
	PQfinish(conn);
	return 0;
}

/* More than sockets hold, in both directions at the same time. */
IO_TEST(large_values_come_and_go)
{
	enum { BYTES = 16 << 20 };
	char *text = malloc(BYTES + 1);
	const char *values[] = { text };
	struct weft_pq_params params = { .count = 1, .values = values };
	PGconn *conn = pq_connect();
	PGresult *result;

	ck_assert_ptr_nonnull(text);
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (char)('a' + i % 23);
	text[BYTES] = '\0';
	ck_assert_int_eq(weft_pq_exec(conn, "SELECT $1::text", &params,
				      &result),
			 0);
	ck_assert_int_eq(PQgetlength(result, 0, 0), BYTES);
	ck_assert(strcmp(PQgetvalue(result, 0, 0), text) == 0);
	PQclear(result);
	free(text);
	PQfinish(conn);
	return 0;
}

IO_TEST(rows_come_one_by_one)
{
	PGconn *conn = pq_connect();
	PGresult *result;
	int rows = 0;

	ck_assert_int_eq(PQsendQuery(conn, "SELECT generate_series(1, 5000)"),
			 1);
	ck_assert_int_eq(PQsetSingleRowMode(conn), 1);
	for (;; rows++) {
		ck_assert_int_eq(weft_pq_result(conn, &result), 0);
		if (PQresultStatus(result) != PGRES_SINGLE_TUPLE)
			break;
		ck_assert_int_eq(atoi(PQgetvalue(result, 0, 0)), rows + 1);
		PQclear(result);
	}
	ck_assert_int_eq(rows, 5000);
	PQclear(result);
	ck_assert_int_eq(weft_pq_result(conn, &result), 0);
	ck_assert_ptr_null(result);
	pq_expect_usable(conn);
	PQfinish(conn);
	return 0;
}

static int64_t take_lock(void *arg)
{
	PGconn *conn = *(PGconn **)arg;

	return weft_pq_exec(conn, "SELECT pg_advisory_lock(1)", NULL, NULL);
}

/* Else the lock would never be given up, with one worker. */
IO_TEST(query_that_waits_holds_no_worker)
{
	PGconn *conn = pq_connect(), *other = pq_connect();

	pq_do(conn, "SELECT pg_advisory_lock(1)");
	WEFT_SUPERVISE (scope) {
		struct weft_task waits = start(scope, take_lock, 0, &other,
					       sizeof(other));

		pq_wait_for(conn, "SELECT count(*) FROM pg_locks WHERE "
				  "locktype = 'advisory' AND NOT granted",
			    1);
		pq_do(conn, "SELECT pg_advisory_unlock(1)");
		ck_assert_int_eq(join(waits), 0);
	}
	PQfinish(conn);
	PQfinish(other);
	return 0;
}

/* ---- Deadlines ---- */

/* When it has been sent, however long that takes. */
static void give_up(PGconn *conn, const char *command)
{
	PGresult *result = NULL;
	weft_nsec ns = WEFT_MS(20);
	int r = 0;

	do {
		WEFT_WITHIN (ns)
			r = weft_pq_exec(conn, command, NULL, &result);
		ck_assert_int_eq(r, -ETIMEDOUT);
		ck_assert_ptr_null(result);
		ns *= 4;
	} while (PQtransactionStatus(conn) != PQTRANS_ACTIVE);
}

IO_TEST(query_that_was_given_up_is_cancelled)
{
	PGconn *conn = pq_connect(), *other = pq_connect();

	ck_assert_int_eq(weft_pq_cancel(conn), 0);
	give_up(conn, "SELECT pg_sleep(600) /* mine */");
	ck_assert_int_eq(weft_pq_exec(conn, "SELECT 1", NULL, NULL), -EBUSY);
	ck_assert_int_eq(weft_pq_cancel(conn), 0);
	pq_expect_usable(conn);
	ck_assert_int_eq(pq_number(other,
				   "SELECT count(*) FROM pg_stat_activity "
				   "WHERE state = 'active' AND "
				   "query LIKE '%/* mine%' AND "
				   "pid != pg_backend_pid()"),
			 0);
	PQfinish(conn);
	PQfinish(other);
	return 0;
}

/* Results that were under way are thrown away, and so is a COPY. */
IO_TEST(cancel_ends_what_was_half_done)
{
	PGconn *conn = pq_connect();
	PGresult *result;
	char *row;

	give_up(conn, "SELECT generate_series(1, 300000); "
		      "SELECT pg_sleep(600)");
	ck_assert_int_eq(weft_pq_cancel(conn), 0);
	pq_expect_usable(conn);
	ck_assert_int_eq(weft_pq_exec(conn, "COPY (SELECT repeat('x', 1000) "
					    "FROM generate_series(1, 300000)) "
					    "TO STDOUT",
				      NULL, &result),
			 0);
	PQclear(result);
	ck_assert_int_eq(weft_pq_copy_get(conn, &row), 1001);
	PQfreemem(row);
	ck_assert_int_eq(weft_pq_cancel(conn), 0);
	pq_expect_usable(conn);
	pq_do(conn, "CREATE TEMP TABLE t (a int)");
	pq_do(conn, "COPY t FROM STDIN");
	ck_assert_int_eq(weft_pq_copy_put(conn, "1\n2\n", 4), 0);
	ck_assert_int_eq(weft_pq_cancel(conn), 0);
	pq_expect_usable(conn);
	ck_assert_int_eq(pq_number(conn, "SELECT count(*) FROM t"), 0);
	PQfinish(conn);
	return 0;
}

IO_TEST(pipeline_cannot_be_cancelled)
{
	PGconn *conn = pq_connect();

	ck_assert_int_eq(PQenterPipelineMode(conn), 1);
	ck_assert_int_eq(PQsendQueryParams(conn, "SELECT 1", 0, NULL, NULL,
					   NULL, NULL, 0),
			 1);
	ck_assert_int_eq(weft_pq_cancel(conn), -EINVAL);
	PQfinish(conn);
	return 0;
}

/* The server is stopped, so that PQcancel() waits for it, and its thread goes
 * on after the caller has left.  The late request must not hit the next
 * command. */
IO_TEST(deadline_ends_a_cancel)
{
	PGconn *conn = pq_connect();
	int r = 0;

	give_up(conn, "SELECT pg_sleep(600)");
	ck_assert_int_eq(kill(pq_server.pid, SIGSTOP), 0);
	WEFT_WITHIN (WEFT_MS(50))
		r = weft_pq_cancel(conn);
	ck_assert_int_eq(kill(pq_server.pid, SIGCONT), 0);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_eq(weft_pq_exec(conn, "SELECT 1", NULL, NULL), -EBUSY);
	ck_assert_int_eq(weft_pq_cancel(conn), 0);
	for (int i = 0; i < 20; i++)
		pq_expect_usable(conn);
	PQfinish(conn);
	return 0;
}

/* Neither is left behind. */
IO_TEST(connection_is_finished_while_a_request_is_under_way)
{
	PGconn *conn = pq_connect();
	int r = 0;

	give_up(conn, "SELECT pg_sleep(600)");
	ck_assert_int_eq(kill(pq_server.pid, SIGSTOP), 0);
	WEFT_WITHIN (WEFT_MS(20))
		r = weft_pq_cancel(conn);
	PQfinish(conn);
	ck_assert_int_eq(kill(pq_server.pid, SIGCONT), 0);
	ck_assert_int_eq(r, -ETIMEDOUT);
	return 0;
}

/* ---- COPY and notifications ---- */

enum { ROWS = 50000 };

static void copy_in(PGconn *conn)
{
	char line[64];

	pq_do(conn, "COPY t FROM STDIN");
	for (int i = 0; i < ROWS; i++) {
		snprintf(line, sizeof(line), "%d\trow %d of the table\n", i, i);
		ck_assert_int_eq(weft_pq_copy_put(conn, line, strlen(line)),
				 0);
	}
	ck_assert_int_eq(weft_pq_copy_end(conn, NULL, NULL), 0);
}

IO_TEST(rows_are_copied_in_and_out)
{
	PGconn *conn = pq_connect();
	PGresult *result;
	char *row;
	int n, rows = 0;

	pq_do(conn, "CREATE TEMP TABLE t (a int, b text)");
	copy_in(conn);
	ck_assert_int_eq(pq_number(conn, "SELECT count(*) FROM t"), ROWS);
	ck_assert_int_eq(weft_pq_exec(conn, "COPY t TO STDOUT", NULL, &result),
			 0);
	ck_assert_int_eq(PQresultStatus(result), PGRES_COPY_OUT);
	PQclear(result);
	while ((n = (int)weft_pq_copy_get(conn, &row)) > 0) {
		ck_assert_int_eq(atoi(row), rows++);
		PQfreemem(row);
	}
	ck_assert_int_eq(n, 0);
	ck_assert_int_eq(rows, ROWS);
	ck_assert_int_eq(weft_pq_result(conn, &result), 0);
	ck_assert_int_eq(PQresultStatus(result), PGRES_COMMAND_OK);
	PQclear(result);
	ck_assert_int_eq(weft_pq_result(conn, &result), 0);
	ck_assert_ptr_null(result);
	pq_expect_usable(conn);
	PQfinish(conn);
	return 0;
}

IO_TEST(copy_fails_with_a_reason)
{
	PGconn *conn = pq_connect();
	PGresult *result;
	char *row;

	pq_do(conn, "CREATE TEMP TABLE t (a int)");
	ck_assert_int_eq(weft_pq_copy_put(conn, "1\n", 2), -EINVAL);
	ck_assert_int_eq(weft_pq_copy_end(conn, NULL, NULL), -EINVAL);
	ck_assert_int_eq(weft_pq_copy_get(conn, &row), -EINVAL);
	pq_do(conn, "COPY t FROM STDIN");
	ck_assert_int_eq(weft_pq_copy_put(conn, "1\n", 2), 0);
	ck_assert_int_eq(weft_pq_copy_end(conn, "my reason", &result), 0);
	ck_assert_int_eq(PQresultStatus(result), PGRES_FATAL_ERROR);
	ck_assert_ptr_nonnull(strstr(PQresultErrorMessage(result),
				     "my reason"));
	PQclear(result);
	pq_do(conn, "COPY t FROM STDIN");
	ck_assert_int_eq(weft_pq_copy_put(conn, "no number\n", 10), 0);
	ck_assert_int_eq(weft_pq_copy_end(conn, NULL, NULL), -EREMOTEIO);
	ck_assert_int_eq(pq_number(conn, "SELECT count(*) FROM t"), 0);
	PQfinish(conn);
	return 0;
}

IO_TEST(interrupted_wait_loses_no_notification)
{
	PGconn *conn = pq_connect(), *other = pq_connect();
	PGnotify *notification = NULL;
	weft_nsec within_ns = WEFT_US(200);
	char channel[32], command[96];
	int r = 0;

	snprintf(channel, sizeof(channel), "c%d", (int)getpid());
	snprintf(command, sizeof(command), "LISTEN %s", channel);
	pq_do(conn, command);
	WEFT_WITHIN (WEFT_MS(10))
		r = weft_pq_notification(conn, &notification);
	ck_assert_int_eq(r, -ETIMEDOUT);
	for (int i = 0; i < 100; i++) {
		snprintf(command, sizeof(command), "NOTIFY %s, '%d'", channel,
			 i);
		pq_do(other, command);
	}
	/* Those that come with a result are kept, too. */
	pq_expect_usable(conn);
	for (int i = 0; i < 100;) {
		WEFT_WITHIN (within_ns)
			r = weft_pq_notification(conn, &notification);
		/* A slow machine has more time in the end. */
		within_ns = r == 0 ? WEFT_US(200) : 2 * within_ns;
		if (r == -ETIMEDOUT)
			continue;
		ck_assert_int_eq(r, 0);
		ck_assert_int_eq(atoi(notification->extra), i++);
		PQfreemem(notification);
	}
	PQfinish(conn);
	PQfinish(other);
	return 0;
}

/* ---- Lost connections ---- */

static int64_t wait_long(void *arg)
{
	PGconn *conn = *(PGconn **)arg;

	return weft_pq_exec(conn, "SELECT pg_sleep(600)", NULL, NULL);
}

IO_TEST(lost_connection_is_reported_with_its_reason)
{
	PGconn *conn = pq_connect(), *other = pq_connect();
	char command[96];

	snprintf(command, sizeof(command), "SELECT pg_terminate_backend(%d)",
		 PQbackendPID(conn));
	WEFT_SUPERVISE (scope) {
		struct weft_task waits = start(scope, wait_long, 0, &conn,
					       sizeof(conn));

		pq_do(other, command);
		ck_assert_int_eq(join(waits), -ECONNRESET);
	}
	ck_assert_ptr_nonnull(strstr(PQerrorMessage(conn),
				     "administrator command"));
	ck_assert_int_eq(weft_pq_exec(conn, "SELECT 1", NULL, NULL),
			 -ECONNRESET);
	ck_assert_int_eq(weft_pq_cancel(conn), -ECONNRESET);
	PQfinish(conn);
	PQfinish(other);
	return 0;
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/pq");
	TCase *tc = tcase_create("commands");

	io_add_test(tc, connection_that_fails_has_its_reason);
	io_add_test(tc, deadline_ends_a_connect);
	io_add_test(tc, futures_and_threads_cannot_wait);
	io_add_test(tc, commands_have_results);
	io_add_test(tc, error_of_the_server_is_a_result);
	io_add_test(tc, large_values_come_and_go);
	io_add_test(tc, rows_come_one_by_one);
	io_add_test(tc, query_that_waits_holds_no_worker);
	suite_add_tcase(s, tc);

	tc = tcase_create("ends");
	io_add_test(tc, query_that_was_given_up_is_cancelled);
	io_add_test(tc, cancel_ends_what_was_half_done);
	io_add_test(tc, pipeline_cannot_be_cancelled);
	io_add_test(tc, deadline_ends_a_cancel);
	io_add_test(tc, connection_is_finished_while_a_request_is_under_way);
	io_add_test(tc, lost_connection_is_reported_with_its_reason);
	suite_add_tcase(s, tc);

	tc = tcase_create("data");
	io_add_test(tc, rows_are_copied_in_and_out);
	io_add_test(tc, copy_fails_with_a_reason);
	io_add_test(tc, interrupted_wait_loses_no_notification);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return pq_tests_run(suite);
}
