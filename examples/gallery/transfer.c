/* SPDX-License-Identifier: MIT */
/*
 * transfer [SOCKET] - two standing orders between two accounts, in parallel.
 *
 * From outside	It should print two balances after some seconds.  It prints
 *		none, does not end, and uses no processor time.  After a second
 *		it prints a report on stderr, which has not been read yet.
 */
#include <stdio.h>

#include <weft/weft.h>

struct account {
	struct weft_mutex mutex;
	int64_t cents;
};

struct order {
	struct account *from, *to;
};

static struct account checking = { WEFT_MUTEX_INIT, 100000 };
static struct account savings = { WEFT_MUTEX_INIT, 100000 };

static int64_t move(void *arg)
{
	const struct order *order = arg;
	int r = 0;

	for (int i = 0; i < 1000 && r == 0; i++) {
		r = weft_mutex_lock(&order->from->mutex);
		if (r < 0)
			return r;
		r = weft_sleep(WEFT_MS(1)); /* a request to the bank */
		if (r == 0)
			r = weft_mutex_lock(&order->to->mutex);
		if (r == 0) {
			order->from->cents--;
			order->to->cents++;
			weft_mutex_unlock(&order->to->mutex);
		}
		weft_mutex_unlock(&order->from->mutex);
	}
	return r;
}

static int start(struct weft_scope *scope, const char *name,
		 struct account *from, struct account *to)
{
	const struct order order = { from, to };
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;

	opts.name = name;
	return weft_go_opts(scope, move, &order, sizeof(order), &opts);
}

static int64_t run_orders(void *arg)
{
	int64_t result = 0;
	int r = 0;

	(void)arg;
	WEFT_SCOPE(orders, &result) {
		r = start(orders, "save", &checking, &savings);
		if (r == 0)
			r = start(orders, "spend", &savings, &checking);
	}
	printf("%lld %lld\n", (long long)checking.cents,
	       (long long)savings.cents);
	return r < 0 ? r : result;
}

int main(int argc, char **argv)
{
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.dump_path = argc > 1 ? argv[1] : NULL;
	opts.stall_ns = WEFT_SEC(1);
	return weft_run(run_orders, NULL, &opts) < 0;
}
