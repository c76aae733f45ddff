/* SPDX-License-Identifier: MIT */
/*
 * Every macro of the public headers, used once, in code that is both C11 and
 * C++11.  tests/tools/test_headers.py compiles this file; it is never run.
 */
#include <weft/weft.h>
/* An installation may lack the libraries of adapters/. */
#if __has_include(<weft/redis.h>)
#include <weft/redis.h>
#define HAS_REDIS 1
#endif

#ifdef __cplusplus
#define AS(type, value) static_cast<type>(value)
#else
#define AS(type, value) ((type)(value))
#endif

#if WEFT_VERSION_MAJOR < 0 || WEFT_VERSION_MINOR < 0 || WEFT_VERSION_PATCH < 0
#error "the numbers of the version are no numbers"
#endif

static void clean_up(void *arg)
{
	*AS(int64_t *, arg) = 0;
}

static int64_t child(void *arg)
{
	return *AS(int *, arg);
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

static int64_t copies(void *arg)
{
	struct weft_copy_opts opts = WEFT_COPY_OPTS_INIT;
	const char *path = AS(const char *, arg);

	opts.flags = WEFT_COPY_ARCHIVE | WEFT_COPY_MODE | WEFT_COPY_OWNER |
		     WEFT_COPY_TIMES | WEFT_COPY_XATTRS | WEFT_COPY_OVERWRITE |
		     WEFT_COPY_FOLLOW | WEFT_COPY_NODES | WEFT_COPY_FSYNC |
		     WEFT_COPY_LINKS | WEFT_COPY_ONE_DEVICE;
	return weft_copy_file(path, path, &opts, NULL);
}

static int64_t streams(void *arg)
{
	struct weft_stream stream = WEFT_STREAM_INIT(*AS(int *, arg));
	char byte;

	if (weft_stream_read(&stream, &byte, 1) < 0 ||
	    weft_stream_put(&stream, &byte, 1) < 0 ||
	    weft_stream_flush(&stream) < 0)
		return -1;
	return weft_stream_close(&stream);
}

struct session {
	WEFT_FUTURE_STATE;
	int fd;
	int events;
};

static int64_t watch_descriptor(void *state)
{
	struct session *s = AS(struct session *, state);

	WEFT_FUTURE_BEGIN(s);
	WEFT_AWAIT(s, weft_await_yield());
	WEFT_AWAIT_AS(s, s->events, weft_await_ready(s->fd, POLLIN));
	WEFT_FUTURE_END(s);
	return 0;
}

static int64_t futures(void *arg)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	struct session session = { 0, *AS(int *, arg), 0 };

	opts.flags = WEFT_FUTURE;
	WEFT_SUPERVISE(scope) {
		if (WEFT_GO_FUTURE(scope, watch_descriptor, session) < 0 ||
		    weft_go_opts(scope, watch_descriptor, &session,
				 sizeof(session), &opts) < 0)
			return WEFT_PENDING;
	}
	return sizeof(session) <= WEFT_ARG_BYTES_MAX;
}

/* At file scope, where a value must be a constant in C. */
#ifdef HAS_REDIS
struct weft_redis_batch batch_of_commands = WEFT_REDIS_BATCH_INIT;
#endif
static long elements[4], latest;
static struct weft_chan kept = WEFT_CHAN_INIT(elements);
static struct weft_chan direct = WEFT_CHAN_DIRECT(long);
static struct weft_broadcast news = WEFT_BROADCAST_INIT(elements);
static struct weft_watch watch = WEFT_WATCH_INIT(latest);
static struct weft_mutex mutex = WEFT_MUTEX_INIT;
static struct weft_rwlock rwlock = WEFT_RWLOCK_INIT;
static struct weft_sem sem = WEFT_SEM_INIT(3);
static struct weft_cond cond = WEFT_COND_INIT;
static struct weft_event event = WEFT_EVENT_INIT;
static struct weft_notify notify = WEFT_NOTIFY_INIT;
static struct weft_wait_group group = WEFT_WAIT_GROUP_INIT(2);
static struct weft_barrier barrier = WEFT_BARRIER_INIT(2);
static struct weft_once once = WEFT_ONCE_INIT;

static int64_t objects(void *arg)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addr;

	weft_watch_close(&watch);
	weft_broadcast_close(&news);
	weft_event_set(&event);
	weft_notify_one(&notify);
	weft_wait_group_done(&group);
	if (weft_mutex_lock(&mutex) < 0 || weft_cond_wait(&cond, &mutex) < 0 ||
	    weft_rwlock_read(&rwlock) < 0 || weft_sem_acquire(&sem, 1) < 0 ||
	    weft_barrier_wait(&barrier) < 0 ||
	    weft_addr_parse("[::1]:80", &addr) < 0 ||
	    weft_addr_format(&addr, text, sizeof(text)) < 0)
		return -1;
	return weft_once_run(&once, child, arg);
}

static int64_t cases(void *arg)
{
	const long sent = 1;
	long received = 0;
	struct weft_case some[] = {
		WEFT_SEND(&kept, &sent),
		WEFT_RECV(&direct, &received),
		WEFT_JOINED(weft_self()),
		WEFT_READY(*AS(int *, arg), POLLIN),
		WEFT_AT(weft_now() + WEFT_MS(received)),
	};

	return sizeof(some) / sizeof(some[0]) > WEFT_CASES_MAX ?
		       -1 :
		       weft_select(some, sizeof(some) / sizeof(some[0]));
}

static int64_t pipelines(void *arg)
{
	struct weft_pipeline items = WEFT_PIPELINE_INIT(int);
	struct weft_file_pipeline blocks_of = WEFT_FILE_PIPELINE_INIT;

	blocks_of.flags = WEFT_PIPELINE_UNORDERED | WEFT_PIPELINE_BLOCKING;
	items.arg = blocks_of.arg = arg;
	return weft_pipeline_run(&items) + weft_pipeline_file(&blocks_of);
}

static int64_t children(void *arg)
{
	const char *argv[] = { "true", NULL };
	const struct weft_child_fd fds[] = { { 0, WEFT_NULL_FD, NULL } };
	struct weft_spawn_opts opts = WEFT_SPAWN_OPTS_INIT;
	struct weft_command command = WEFT_COMMAND_INIT;

	(void)arg;
	opts.argv = argv;
	opts.fds = fds;
	opts.fds_count = sizeof(fds) / sizeof(fds[0]);
	opts.flags = WEFT_SPAWN_GROUP | WEFT_SPAWN_SESSION |
		     WEFT_SPAWN_DIES_WITH_CALLER | WEFT_SPAWN_KEEP_MASK;
	opts.ignored = WEFT_SIGNAL_BIT(1) | WEFT_SIGNAL_BIT(64);
	command.flags = WEFT_COMMAND_CUT;
	if (opts.fds_count > WEFT_CHILD_FDS_MAX ||
	    opts.limits_count > WEFT_CHILD_LIMITS_MAX)
		return -1;
	return weft_run_commands(&opts, 1 % WEFT_COMMANDS_MAX, &command, NULL);
}

int main(void)
{
	struct weft_task_opts task_opts = WEFT_TASK_OPTS_INIT;
	struct weft_socket_opts socket_opts = WEFT_SOCKET_OPTS_INIT;
	struct weft_udp_opts udp_opts = WEFT_UDP_OPTS_INIT;
	struct weft_calendar calendar = WEFT_CALENDAR_INIT;
	struct weft_walk_opts walk_opts = WEFT_WALK_OPTS_INIT;
	struct weft_remove_opts remove_opts = WEFT_REMOVE_OPTS_INIT;
	struct weft_dial_opts dial_opts = WEFT_DIAL_OPTS_INIT;
	struct weft_resolve_opts resolve_opts = WEFT_RESOLVE_OPTS_INIT;
	struct weft_resolver_opts resolver_opts = WEFT_RESOLVER_OPTS_INIT;
	struct weft_replace_opts replace_opts = WEFT_REPLACE_OPTS_INIT;
	struct weft_opts opts = WEFT_OPTS_INIT;
	int fd = 0;

	walk_opts.flags = WEFT_WALK_SORTED | WEFT_WALK_FOLLOW |
			  WEFT_WALK_ONE_DEVICE | WEFT_WALK_POST |
			  WEFT_WALK_DIR_FD;
	walk_opts.tasks = WEFT_WALK_PRUNE;
	remove_opts.flags = WEFT_REMOVE_GO_ON | WEFT_REMOVE_ONE_MOUNT |
			    WEFT_REMOVE_CONTENTS | WEFT_REMOVE_QUIET;
	task_opts.flags = WEFT_PINNED;
	socket_opts.backlog = 1;
	udp_opts.multicast_interface = WEFT_UNIX_FDS_MAX;
	dial_opts.socket = &socket_opts;
	resolver_opts.answers_max = WEFT_RESOLVE_MAX;
	opts.workers = task_opts.flags + AS(unsigned, socket_opts.backlog) +
		       udp_opts.multicast_interface +
		       resolver_opts.answers_max + walk_opts.tasks +
		       remove_opts.flags;
	return resolve_opts.size != sizeof(resolve_opts) || !dial_opts.socket ||
	       replace_opts.size != sizeof(replace_opts) ||
	       calendar.hour != -1 ||
	       weft_run(blocks, NULL, &opts) < 0 ||
	       weft_run(lines, &opts, &opts) < 0 ||
	       weft_run(pairs, NULL, &opts) < 0 ||
	       weft_run(lanes, &opts.workers, &opts) < 0 ||
	       weft_run(copies, &fd, &opts) < 0 ||
	       weft_run(streams, &fd, &opts) < 0 ||
	       weft_run(futures, &fd, &opts) < 0 ||
	       weft_run(objects, &fd, &opts) < 0 ||
	       weft_run(pipelines, NULL, &opts) < 0 ||
	       weft_run(children, NULL, &opts) < 0 ||
	       weft_run(cases, &fd, &opts) < 0;
}
