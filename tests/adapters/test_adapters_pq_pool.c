/* SPDX-License-Identifier: MIT */
/*
 * A pool of connections to PostgreSQL: it is bounded and fair, and mends or
 * replaces what comes back.  Skipped where no server is installed.
 */
#include "tests/support/poor_kit.h"
#include "tests/support/pq_scene.h"

static struct weft_pq_pool *pool_open(unsigned connections_max)
{
	struct weft_pq_pool *pool = NULL;

	ck_assert_int_eq(weft_pq_pool_open(pq_database, connections_max,
					   &pool),
			 0);
	return pool;
}

static PGconn *pool_get(struct weft_pq_pool *pool)
{
	PGconn *conn = NULL;

	ck_assert_int_eq(weft_pq_pool_get(pool, &conn), 0);
	return conn;
}

/* ---- Many tasks ---- */

enum { TASKS = 40, TURNS = 5, CONNECTIONS = 4 };

struct user {
	struct weft_pq_pool *pool;
	unsigned *out, *most;
	unsigned number;
	unsigned *order, *served;
};

static int64_t use(void *arg)
{
	struct user *user = arg;

	for (int i = 0; i < TURNS; i++) {
		PGconn *conn = pool_get(user->pool);
		unsigned out = __atomic_add_fetch(user->out, 1,
						  __ATOMIC_RELAXED);
		unsigned most = __atomic_load_n(user->most, __ATOMIC_RELAXED);

		while (out > most &&
		       !__atomic_compare_exchange_n(user->most, &most, out,
						    false, __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED))
			;
		pq_expect_usable(conn);
		__atomic_sub_fetch(user->out, 1, __ATOMIC_RELAXED);
		weft_pq_pool_put(user->pool, conn);
	}
	return 0;
}

IO_TEST(pool_is_bounded)
{
	struct weft_pq_pool *pool = pool_open(CONNECTIONS);
	unsigned out = 0, most = 0;

	WEFT_SUPERVISE (scope)
		for (int i = 0; i < TASKS; i++) {
			struct user user = { .pool = pool,
					     .out = &out,
					     .most = &most };

			ck_assert_int_eq(WEFT_GO(scope, use, user), 0);
		}
	ck_assert_uint_le(most, CONNECTIONS);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return 0;
}

/* As many as it may have, each of them another one, and none more. */
IO_TEST(pool_has_all_its_connections)
{
	struct weft_pq_pool *pool = pool_open(CONNECTIONS);
	PGconn *conns[CONNECTIONS], *other;
	int r = 0;

	for (int i = 0; i < CONNECTIONS; i++) {
		conns[i] = pool_get(pool);
		for (int k = 0; k < i; k++)
			ck_assert_int_ne(PQbackendPID(conns[k]),
					 PQbackendPID(conns[i]));
	}
	WEFT_WITHIN (WEFT_MS(10))
		r = weft_pq_pool_get(pool, &other);
	ck_assert_int_eq(r, -ETIMEDOUT);
	for (int i = 0; i < CONNECTIONS; i++)
		weft_pq_pool_put(pool, conns[i]);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return 0;
}

static int64_t take_in_turn(void *arg)
{
	struct user *user = arg;
	PGconn *conn = pool_get(user->pool);

	user->order[(*user->served)++] = user->number;
	weft_pq_pool_put(user->pool, conn);
	return 0;
}

/* One connection, so that one task at a time writes down its number. */
static int64_t serve_in_order(void *arg __attribute__((unused)))
{
	struct weft_pq_pool *pool = pool_open(1);
	PGconn *conn = pool_get(pool);
	unsigned order[8] = { 0 }, served = 0;

	WEFT_SUPERVISE (scope) {
		for (unsigned i = 0; i < 8; i++) {
			struct user user = { .pool = pool,
					     .number = i,
					     .order = order,
					     .served = &served };

			ck_assert_int_eq(WEFT_GO(scope, take_in_turn, user),
					 0);
			/* On one worker it runs until it waits. */
			ck_assert_int_eq(weft_yield(), 0);
		}
		weft_pq_pool_put(pool, conn);
	}
	for (unsigned i = 0; i < 8; i++)
		ck_assert_uint_eq(order[i], i);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return 0;
}

START_TEST(waiting_tasks_are_served_in_order)
{
	io_run(serve_in_order, NULL, 1);
}
END_TEST

IO_TEST(deadline_ends_the_wait_for_a_connection)
{
	struct weft_pq_pool *pool = pool_open(1);
	PGconn *conn = pool_get(pool), *other = NULL;
	int r = 0;

	WEFT_WITHIN (WEFT_MS(10))
		r = weft_pq_pool_get(pool, &other);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_ptr_null(other);
	WEFT_WITHIN (WEFT_MS(10))
		r = weft_pq_pool_close(pool);
	ck_assert_int_eq(r, -ETIMEDOUT);
	weft_pq_pool_put(pool, conn);
	ck_assert_ptr_eq(pool_get(pool), conn);
	weft_pq_pool_put(pool, conn);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return 0;
}

/* ---- Mending ---- */

/* The same connection, usable. */
static void expect_mended(struct weft_pq_pool *pool, PGconn *conn)
{
	int pid = PQbackendPID(conn);

	weft_pq_pool_put(pool, conn);
	conn = pool_get(pool);
	ck_assert_int_eq(PQbackendPID(conn), pid);
	pq_expect_usable(conn);
	weft_pq_pool_put(pool, conn);
}

IO_TEST(query_that_was_given_up_is_ended)
{
	struct weft_pq_pool *pool = pool_open(1);
	PGconn *conn = pool_get(pool);
	int r = 0;

	WEFT_WITHIN (WEFT_MS(10))
		r = weft_pq_exec(conn, "SELECT pg_sleep(600)", NULL, NULL);
	ck_assert_int_eq(r, -ETIMEDOUT);
	expect_mended(pool, conn);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return 0;
}

IO_TEST(transaction_that_is_open_is_rolled_back)
{
	struct weft_pq_pool *pool = pool_open(1);
	PGconn *conn = pool_get(pool);

	pq_do(conn, "CREATE TEMP TABLE t (a int)");
	pq_do(conn, "BEGIN; INSERT INTO t VALUES (1)");
	expect_mended(pool, conn);
	conn = pool_get(pool);
	ck_assert_int_eq(pq_number(conn, "SELECT count(*) FROM t"), 0);
	/* One that has failed, too. */
	ck_assert_int_eq(weft_pq_exec(conn, "BEGIN; SELECT 1/0", NULL, NULL),
			 -EREMOTEIO);
	expect_mended(pool, conn);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return 0;
}

static void terminate(PGconn *other, PGconn *conn)
{
	char command[96];

	snprintf(command, sizeof(command),
		 "SELECT pg_terminate_backend(%d, 10000)", PQbackendPID(conn));
	pq_do(other, command);
}

/* Idle in the pool, and while it is out. */
IO_TEST(dead_connection_is_replaced)
{
	struct weft_pq_pool *pool = pool_open(1);
	PGconn *other = pq_connect(), *conn = pool_get(pool);

	weft_pq_pool_put(pool, conn);
	terminate(other, conn);
	conn = pool_get(pool);
	pq_expect_usable(conn);
	terminate(other, conn);
	ck_assert_int_eq(weft_pq_exec(conn, "SELECT 1", NULL, NULL),
			 -ECONNRESET);
	weft_pq_pool_put(pool, conn);
	conn = pool_get(pool);
	pq_expect_usable(conn);
	weft_pq_pool_put(pool, conn);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	PQfinish(other);
	return 0;
}

/* In a pipeline nothing can be ended but the connection. */
IO_TEST(connection_that_cannot_be_mended_is_replaced)
{
	struct weft_pq_pool *pool = pool_open(1);
	PGconn *conn = pool_get(pool);
	int pid = PQbackendPID(conn);

	ck_assert_int_eq(PQenterPipelineMode(conn), 1);
	ck_assert_int_eq(PQsendQueryParams(conn, "SELECT 1", 0, NULL, NULL,
					   NULL, NULL, 0),
			 1);
	weft_pq_pool_put(pool, conn);
	conn = pool_get(pool);
	ck_assert_int_ne(PQbackendPID(conn), pid);
	pq_expect_usable(conn);
	weft_pq_pool_put(pool, conn);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return 0;
}

IO_TEST(pool_that_cannot_connect_has_a_reason)
{
	struct weft_pq_pool *pool = NULL;
	char conninfo[160], text[512];
	PGconn *conn = NULL;

	ck_assert_int_eq(weft_pq_pool_open(NULL, 1, &pool), -EINVAL);
	ck_assert_int_eq(weft_pq_pool_open("", 0, &pool), -EINVAL);
	ck_assert_ptr_null(pool);
	snprintf(conninfo, sizeof(conninfo), "%s dbname=none", pq_database);
	ck_assert_int_eq(weft_pq_pool_open(conninfo, 1, &pool), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(weft_pq_pool_get(pool, &conn), -EREMOTEIO);
	ck_assert_ptr_null(conn);
	weft_pq_pool_error(pool, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "\"none\""));
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	ck_assert_int_eq(weft_pq_pool_close(NULL), 0);
	return 0;
}

static void *in_a_thread(void *arg)
{
	struct weft_pq_pool *pool = arg;
	PGconn *conn;

	ck_assert_int_eq(weft_pq_pool_get(pool, &conn), -EPERM);
	ck_assert_int_eq(weft_pq_pool_close(pool), -EPERM);
	return NULL;
}

IO_TEST(threads_cannot_wait_for_a_connection)
{
	struct weft_pq_pool *pool = pool_open(1);
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, in_a_thread, pool), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return 0;
}

/* ---- Without memory ---- */

POOR_WRAP(calloc, (size_t count, size_t bytes), count, bytes)
POOR_WRAP(strdup, (const char *text), text)

static int64_t use_a_pool(void *arg)
{
	struct weft_pq_pool *pool = NULL;
	PGconn *conn = NULL;
	int r = weft_pq_pool_open(pq_database, 2, &pool);

	(void)arg;
	if (r == 0) {
		r = weft_pq_pool_get(pool, &conn);
		/* Else it has given its place back. */
		if (r == 0)
			weft_pq_pool_put(pool, conn);
	}
	ck_assert_int_eq(weft_pq_pool_close(pool), 0);
	return r;
}

IO_TEST(lack_of_memory_is_an_error)
{
	poor_sweep(use_a_pool, NULL);
	return 0;
}

static Suite *suite(void)
{
	Suite *s = suite_create("adapters/pq/pool");
	TCase *tc = tcase_create("takes");

	io_add_test(tc, pool_is_bounded);
	io_add_test(tc, pool_has_all_its_connections);
	tcase_add_test(tc, waiting_tasks_are_served_in_order);
	io_add_test(tc, deadline_ends_the_wait_for_a_connection);
	io_add_test(tc, pool_that_cannot_connect_has_a_reason);
	io_add_test(tc, threads_cannot_wait_for_a_connection);
	io_add_test(tc, lack_of_memory_is_an_error);
	suite_add_tcase(s, tc);

	tc = tcase_create("mends");
	io_add_test(tc, query_that_was_given_up_is_ended);
	io_add_test(tc, transaction_that_is_open_is_rolled_back);
	io_add_test(tc, dead_connection_is_replaced);
	io_add_test(tc, connection_that_cannot_be_mended_is_replaced);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return pq_tests_run(suite);
}
