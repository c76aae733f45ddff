/* SPDX-License-Identifier: MIT */
/*
 * bank CONNINFO - moves money between 10 accounts in a PostgreSQL database, in
 * 100 tasks, and prints the sum, which is what it was before.
 *
 * Shows	libweft-pq: a pool of 8 connections, parameters, a deadline for
 *		each transfer.  The connection of one that is late goes back to
 *		the pool as it is, and the pool cancels the command.
 * Run		build/examples/bank "host=127.0.0.1 dbname=test"
 */
#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>
#include <weft/pq.h>
#include <weft/weft.h>

#define ACCOUNTS 10u
#define TASKS 100u
#define CONNECTIONS 8u

struct transfer {
	struct weft_pq_pool *pool;
	unsigned number;
};

/* The rows are locked in one order: two transfers would else wait for each
 * other, and the server would end one. */
static const char move[] =
	"WITH locked AS (SELECT account FROM weft_bank WHERE account IN "
	"($1::int, $2::int) ORDER BY account FOR UPDATE) "
	"UPDATE weft_bank SET money = money + "
	"CASE weft_bank.account WHEN $1::int THEN -1 ELSE 1 END "
	"FROM locked WHERE weft_bank.account = locked.account";

/* From one account to another one, in one command. */
static int64_t transfer(void *arg)
{
	const struct transfer *t = arg;
	char from[16], to[16];
	const char *values[] = { from, to };
	struct weft_pq_params params = { .count = 2, .values = values };
	PGconn *conn;
	int r = 0;

	snprintf(from, sizeof(from), "%u", t->number % ACCOUNTS);
	snprintf(to, sizeof(to), "%u", (t->number + 3) % ACCOUNTS);
	WEFT_WITHIN (WEFT_SEC(10)) {
		if ((r = weft_pq_pool_get(t->pool, &conn)) < 0)
			return r;
		r = weft_pq_exec(conn, move, &params, NULL);
		weft_pq_pool_put(t->pool, conn);
	}
	return r;
}

static int64_t run(PGconn *conn, struct weft_pq_pool *pool)
{
	int64_t result = 0;
	PGresult *sum;
	int r;

	r = weft_pq_exec(conn, "DROP TABLE IF EXISTS weft_bank; "
			       "CREATE TABLE weft_bank AS SELECT account, "
			       "1000 AS money FROM generate_series(0, 9) "
			       "AS account", NULL, NULL);
	if (r < 0)
		return r;
	WEFT_SCOPE (transfers, &result)
		for (unsigned i = 0; i < TASKS && r == 0; i++) {
			struct transfer t = { pool, i };

			r = WEFT_GO(transfers, transfer, t);
		}
	if (r < 0 || result < 0)
		return r < 0 ? r : result;
	r = weft_pq_exec(conn, "SELECT sum(money) FROM weft_bank", NULL, &sum);
	if (r < 0)
		return r;
	printf("%u transfers, sum %s\n", TASKS, PQgetvalue(sum, 0, 0));
	PQclear(sum);
	return weft_pq_exec(conn, "DROP TABLE weft_bank", NULL, NULL);
}

static int64_t bank(void *arg)
{
	struct weft_pq_pool *pool;
	PGconn *conn;
	char why[512];
	int64_t r = weft_pq_pool_open(arg, CONNECTIONS, &pool);

	if (r < 0)
		return r;
	if ((r = weft_pq_pool_get(pool, &conn)) == 0) {
		r = run(conn, pool);
		weft_pq_pool_put(pool, conn);
	} else {
		weft_pq_pool_error(pool, why, sizeof(why));
		fputs(why, stderr);
	}
	weft_pq_pool_close(pool);
	return r;
}

int main(int argc, char **argv)
{
	int64_t result;

	if (argc != 2) {
		fprintf(stderr, "Usage: bank CONNINFO\n");
		return 2;
	}
	result = weft_run(bank, argv[1], NULL);
	if (result < 0)
		fprintf(stderr, "bank: %s\n", strerror((int)-result));
	return result < 0;
}
