/* SPDX-License-Identifier: MIT */
/*
 * Calls of weft/pq.h, each interrupted while it waits: by a cancellation, and
 * by its deadline.  The server waits for a lock or sleeps; it is one that this
 * program starts.  Skipped where none is installed.
 */
#include "tests/support/interrupt_kit.h"
#include "tests/support/pq_scene.h"

#define SLEEP "pg_sleep(600)::text"

/* ---- Connecting ---------------------------------------------------------- */

static int64_t connect_in_vain(void *arg)
{
	PGconn *conn = NULL;
	int r = weft_pq_connect(*(char **)arg, &conn);

	ck_assert_ptr_null(conn);
	return r;
}

/* To a server that takes the connection, and says nothing. */
IO_TEST(connect_is_interrupted)
{
	char text[WEFT_ADDR_TEXT_BYTES], conninfo[160];
	int fd = tcp_listener(text);

	snprintf(conninfo, sizeof(conninfo), "host=127.0.0.1 port=%s",
		 strrchr(text, ':') + 1);
	expect_interrupted(connect_in_vain, conninfo);
	return weft_close(fd);
}

/* ---- Commands ------------------------------------------------------------ */

/* After each the command is cancelled, and the connection works. */
static void expect_ends(PGconn *conn, weft_fn fn)
{
	for (int i = 0; i < 2; i++) {
		int64_t r = i ? too_late(fn, conn) : cancelled(fn, conn);

		ck_assert_int_eq(r, i ? -ETIMEDOUT : -ECANCELED);
		ck_assert_int_eq(weft_pq_cancel(conn), 0);
		pq_expect_usable(conn);
	}
}

static int64_t exec_in_vain(void *arg)
{
	return weft_pq_exec(*(PGconn **)arg, "SELECT " SLEEP, NULL, NULL);
}

static int64_t prepared_in_vain(void *arg)
{
	return weft_pq_exec_prepared(*(PGconn **)arg, "long", NULL, NULL);
}

static int64_t result_in_vain(void *arg)
{
	PGconn *conn = *(PGconn **)arg;
	PGresult *result = NULL;
	int r;

	ck_assert_int_eq(PQsendQuery(conn, "SELECT " SLEEP), 1);
	r = weft_pq_result(conn, &result);
	ck_assert_ptr_null(result);
	return r;
}

IO_TEST(wait_for_a_result_is_interrupted)
{
	PGconn *conn = pq_connect();

	ck_assert_int_eq(weft_pq_prepare(conn, "long", "SELECT " SLEEP, 0,
					 NULL),
			 0);
	expect_ends(conn, exec_in_vain);
	expect_ends(conn, prepared_in_vain);
	expect_ends(conn, result_in_vain);
	PQfinish(conn);
	return 0;
}

static char locked[32];

static int64_t prepare_in_vain(void *arg)
{
	char command[64];

	snprintf(command, sizeof(command), "SELECT * FROM %s", locked);
	return weft_pq_prepare(*(PGconn **)arg, "", command, 0, NULL);
}

/* Of a table that another connection has locked. */
IO_TEST(prepare_is_interrupted)
{
	PGconn *conn = pq_connect(), *other = pq_connect();
	char command[96];

	snprintf(locked, sizeof(locked), "locked_%d", (int)getpid());
	snprintf(command, sizeof(command), "CREATE TABLE %s (a int)", locked);
	pq_do(other, command);
	snprintf(command, sizeof(command),
		 "BEGIN; LOCK TABLE %s IN ACCESS EXCLUSIVE MODE", locked);
	pq_do(other, command);
	expect_ends(conn, prepare_in_vain);
	snprintf(command, sizeof(command), "DROP TABLE %s; COMMIT", locked);
	pq_do(other, command);
	PQfinish(conn);
	PQfinish(other);
	return 0;
}

static int64_t cancel_in_vain(void *arg)
{
	return weft_pq_cancel(*(PGconn **)arg);
}

/* The server is stopped. */
IO_TEST(cancel_is_interrupted)
{
	PGconn *conn = pq_connect();
	int64_t r;

	(void)cancelled(exec_in_vain, conn);
	ck_assert_int_eq(kill(pq_server.pid, SIGSTOP), 0);
	r = cancelled(cancel_in_vain, conn);
	ck_assert_int_eq(kill(pq_server.pid, SIGCONT), 0);
	ck_assert_int_eq(r, -ECANCELED);
	ck_assert_int_eq(weft_pq_cancel(conn), 0);
	pq_expect_usable(conn);
	PQfinish(conn);
	return 0;
}

/* ---- COPY, notifications ------------------------------------------------- */

/* One row that fills the server's buffer, and no other. */
static int64_t get_in_vain(void *arg)
{
	PGconn *conn = *(PGconn **)arg;
	char *row = NULL;
	int64_t r = weft_pq_exec(conn,
				 "COPY (SELECT repeat('x', 100000) UNION ALL "
				 "SELECT " SLEEP ") TO STDOUT",
				 NULL, NULL);

	if (r == 0)
		r = weft_pq_copy_get(conn, &row);
	if (r < 0)
		return r;
	ck_assert_int_eq(r, 100001);
	PQfreemem(row);
	return weft_pq_copy_get(conn, &row);
}

/* The server sleeps at the first row. */
static int64_t put_in_vain(void *arg)
{
	static char rows[1 << 20];
	PGconn *conn = *(PGconn **)arg;
	int64_t r = weft_pq_exec(conn, "COPY slow FROM STDIN", NULL, NULL);

	for (size_t i = 0; i < sizeof(rows); i++)
		rows[i] = i % 2 ? '\n' : '1';
	for (int i = 0; i < 64 && r == 0; i++)
		r = weft_pq_copy_put(conn, rows, sizeof(rows));
	return r;
}

static int64_t end_in_vain(void *arg)
{
	PGconn *conn = *(PGconn **)arg;
	int64_t r = weft_pq_exec(conn, "COPY slow FROM STDIN", NULL, NULL);

	if (r == 0)
		r = weft_pq_copy_put(conn, "1\n", 2);
	return r < 0 ? r : weft_pq_copy_end(conn, NULL, NULL);
}

IO_TEST(copy_is_interrupted)
{
	PGconn *conn = pq_connect();

	pq_do(conn, "CREATE TEMP TABLE slow "
		    "(a int CHECK (" SLEEP " IS NOT NULL))");
	expect_ends(conn, get_in_vain);
	expect_ends(conn, put_in_vain);
	expect_ends(conn, end_in_vain);
	ck_assert_int_eq(pq_number(conn, "SELECT count(*) FROM slow"), 0);
	PQfinish(conn);
	return 0;
}

static int64_t notification_in_vain(void *arg)
{
	PGnotify *notification;

	return weft_pq_notification(*(PGconn **)arg, &notification);
}

IO_TEST(wait_for_a_notification_is_interrupted)
{
	PGconn *conn = pq_connect();

	pq_do(conn, "LISTEN quiet");
	expect_interrupted(notification_in_vain, conn);
	pq_expect_usable(conn);
	PQfinish(conn);
	return 0;
}

/* ---- Pools --------------------------------------------------------------- */

static int64_t take_in_vain(void *arg)
{
	PGconn *conn = NULL;
	int r = weft_pq_pool_get(*(struct weft_pq_pool **)arg, &conn);

	ck_assert_ptr_null(conn);
	return r;
}

static int64_t close_in_vain(void *arg)
{
	return weft_pq_pool_close(*(struct weft_pq_pool **)arg);
}

/* Its only connection is in use. */
IO_TEST(wait_for_a_connection_is_interrupted)
{
	struct weft_pq_pool *pool;
	PGconn *conn;

	ck_assert_int_eq(weft_pq_pool_open(pq_database, 1, &pool), 0);
	ck_assert_int_eq(weft_pq_pool_get(pool, &conn), 0);
	expect_interrupted(take_in_vain, pool);
	expect_interrupted(close_in_vain, pool);
	weft_pq_pool_put(pool, conn);
	ck_assert_int_eq(weft_pq_pool_get(pool, &conn), 0);
	weft_pq_pool_put(pool, conn);
	return weft_pq_pool_close(pool);
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/pq interrupt");
	TCase *tc = tcase_create("interrupt");

	tcase_set_timeout(tc, 120);
	io_add_test(tc, connect_is_interrupted);
	io_add_test(tc, wait_for_a_result_is_interrupted);
	io_add_test(tc, prepare_is_interrupted);
	io_add_test(tc, cancel_is_interrupted);
	io_add_test(tc, copy_is_interrupted);
	io_add_test(tc, wait_for_a_notification_is_interrupted);
	io_add_test(tc, wait_for_a_connection_is_interrupted);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return pq_tests_run(suite);
}
