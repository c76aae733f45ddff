/* SPDX-License-Identifier: MIT */
/*
 * Every macro of the public headers, used once, in code that is both C11 and
 * C++17.  tests/tools/test_headers.py compiles this file; it is never run.
 */
#include <weft/weft.h>

static void clean_up(void *arg)
{
	*(int64_t *)arg = 0;
}

static int64_t child(void *arg)
{
	return *(int *)arg;
}

static struct weft_task_local_key key = WEFT_TASK_LOCAL_KEY(clean_up);

static int64_t blocks(void *arg)
{
	char name[8] = "name";
	int64_t result = 0;
	char byte = 0;

	(void)arg;
	WEFT_SCOPE(group, &result) {
		if (WEFT_GO(group, child, 1) < 0 ||
		    WEFT_GO(group, child, &name[0]) < 0 ||
		    WEFT_GO(group, child, "literal") < 0 ||
		    WEFT_GO(group, child, clean_up) < 0)
			return -1;
	}
	WEFT_SCOPE(outer, NULL)
		WEFT_SUPERVISE(inner)
			WEFT_WITHIN(WEFT_MS(5))
				if (WEFT_GO(inner, child, 2) < 0)
					weft_scope_cancel(outer);
	WEFT_WITHIN_UNTIL(weft_now() + WEFT_US(5)) {
		WEFT_WITHIN(WEFT_SEC(1))
			result = weft_read(0, &byte, sizeof(byte));
	}
	WEFT_SHIELD
		weft_close(0);
	WEFT_DEFER(clean_up, &result);
	WEFT_DEFERRED(undo, clean_up, &result);
	weft_deferred_cancel(&undo);
	WEFT_RACE(race, &result) {
		if (weft_race_drop(race, NULL) < 0 ||
		    WEFT_GO(race, child, 3) < 0)
			return -1;
	}
	return result;
}

/* Two of a kind on one line, as a program's own macro may have them. */
#define CLEAN_UP_TWICE(arg)        \
	WEFT_DEFER(clean_up, arg); \
	WEFT_DEFER(clean_up, arg)
#define WITHIN_BOTH(a_ns, b_ns) WEFT_WITHIN(a_ns) WEFT_WITHIN(b_ns)
#define SUPERVISE_BOTH(a, b) WEFT_SUPERVISE(a) WEFT_SUPERVISE(b)

static int64_t lines(void *arg)
{
	CLEAN_UP_TWICE(arg);
	SUPERVISE_BOTH(one, other)
	{
		if (WEFT_GO(one, child, 1) < 0 || WEFT_GO(other, child, 2) < 0)
			return -1;
	}
	WITHIN_BOTH(WEFT_MS(1), WEFT_MS(2))
	(void)weft_yield();
	return 0;
}

static int64_t pairs(void *arg)
{
	struct weft_within within;
	struct weft_scope scope;

	(void)arg;
	if (weft_within_begin(&within, WEFT_NEVER) < 0)
		return -1;
	weft_within_end(&within);
	if (weft_task_local_set(&key, arg) < 0)
		return -1;
	return weft_supervisor_begin(&scope) < 0 ? -1 : weft_scope_end(&scope);
}

static int64_t lanes(void *arg)
{
	struct weft_lane lane = WEFT_LANE_INIT("lane", 2);

	return weft_blocking_lane(&lane, child, arg);
}

static int64_t streams(void *arg)
{
	struct weft_stream stream = WEFT_STREAM_INIT(*(int *)arg);
	char byte;

	if (weft_stream_read(&stream, &byte, 1) < 0 ||
	    weft_stream_put(&stream, &byte, 1) < 0 ||
	    weft_stream_flush(&stream) < 0)
		return -1;
	return weft_stream_close(&stream);
}

int main(void)
{
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;
	struct weft_socket_opts socket_opts = WEFT_SOCKET_OPTS_INIT;
	struct weft_opts opts = WEFT_OPTS_INIT;
	int fd = 0;

	task_opts.flags = WEFT_PINNED;
	socket_opts.backlog = 1;
	opts.workers = task_opts.flags + (unsigned)socket_opts.backlog;
	return weft_run(blocks, NULL, &opts) < 0 ||
	       weft_run(lines, &opts, &opts) < 0 ||
	       weft_run(pairs, NULL, &opts) < 0 ||
	       weft_run(lanes, &opts.workers, &opts) < 0 ||
	       weft_run(streams, &fd, &opts) < 0;
}
