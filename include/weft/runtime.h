/* SPDX-License-Identifier: MIT */
/*
 * The runtime: starting it, talking to it from other threads, looking inside.
 */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include <weft/config.h>
#include <weft/task.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

struct weft_runtime;

/* Options of a runtime.  Start from WEFT_OPTS_INIT, which sets size; 0 in any
 * other field means the default. */
struct weft_opts {
	size_t size;
	unsigned workers;     /* threads; default: the CPUs it may run on */
	unsigned tasks_max;   /* tasks alive at once; default 16 million.  From
				 8192 a worker on, each may keep 512 of them for
				 its own use */
	size_t stack_bytes;   /* of a task; default 256 KiB */
	weft_nsec shutdown_ns; /* how long to wait for tasks at the end; default
				  for ever */
	unsigned ring_entries; /* of each worker's io_uring; default 256 */
	unsigned blocking_threads_max; /* of weft_blocking(); default 512 */
	weft_nsec blocking_idle_ns; /* after which one of them ends; default
				       10 s */
	unsigned reserved;
	/* When to say on stderr what the tasks do; see <weft/dump.h>. */
	int dump_signal;       /* when the process gets this signal; 0: never */
	const char *dump_path; /* to who connects to this Unix socket */
	weft_nsec stall_ns;    /* when a task ran for so long without a pause,
				  or none can go on; 0: never */
};

#define WEFT_OPTS_INIT \
	{ sizeof(struct weft_opts), 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0 }

/*
 * Runs fn(arg) as the first task, on this thread and opts->workers - 1 others,
 * and returns its result when it and all tasks it started have ended; what was
 * started by weft_submit() is cancelled then, and waited for.  arg is passed as
 * it is.  NULL opts: the defaults.  Several may run at once in a process, each
 * on its own threads.
 *
 * Signals: the threads have the caller's mask.  For SIGSEGV and SIGBUS there is
 * a handler: it names the task whose stack overflowed, and passes on all else.
 * To end a server by SIGINT, block it and wait for it: see weft_start().
 *
 * The task's result, or without running it -EINVAL, -ENOMEM, -EMFILE, -ENFILE,
 * -EAGAIN (no more threads), -ENOSYS (no engine), -EDEADLK (called inside a
 * task), or what bind(2) says of dump_path.
 * -ETIMEDOUT: tasks had to be abandoned, see shutdown_ns; they are named on
 * stderr, and their memory is kept.  The calling thread keeps that time, and
 * runs tasks: one that computes on it without a pause puts the end off.
 */
WEFT_API int64_t weft_run(weft_fn fn, void *arg, const struct weft_opts *opts);

/*
 * The same in two steps, for a program whose own thread must stay its own: all
 * workers run on threads of the runtime.  Stop cancels what is left, waits for
 * it as shutdown_ns says, whatever computes meanwhile, and frees the runtime.
 * 0, or an error as weft_run(); -EINVAL for a runtime of weft_run(), which ends
 * by itself.  Threads may be in weft_wait() or weft_wait_until() meanwhile and
 * return when their tasks have ended or were abandoned, or their time is up.
 * No call may begin any more.
 *
 *	sigaddset(&set, SIGINT);		before weft_start(), so that
 *	pthread_sigmask(SIG_BLOCK, &set, NULL);	no worker takes it
 *	...
 *	r = weft_submit(runtime, serve, address, sizeof(address), NULL);
 *	sigwait(&set, &signal_number);
 *	r = weft_stop(runtime);
 */
WEFT_API int weft_start(const struct weft_opts *opts,
			struct weft_runtime **ret_runtime) WEFT_WARN_UNUSED;
WEFT_API int weft_stop(struct weft_runtime *runtime);

/* The runtime of the running task, to hand to another thread; or NULL.  Valid
 * until weft_run() returns. */
WEFT_API struct weft_runtime *weft_runtime_self(void);

/*
 * From any thread: starts a task that belongs to the runtime itself.  opts may
 * be NULL; with opts->ret_task the handle must be given to weft_wait() or
 * weft_detach().  Never blocks for long, never runs the task.  As weft_go();
 * -ESHUTDOWN once the runtime is ending.
 */
WEFT_API int weft_submit(struct weft_runtime *runtime, weft_fn fn,
			 const void *arg, size_t arg_bytes,
			 const struct weft_task_opts *opts) WEFT_WARN_UNUSED;

/* From a thread that is no worker: blocks it until the task has ended.  It
 * looks for up to 50 us, while that pays, and then sleeps.  The handle is
 * spent.  0, -ESRCH (also for a handle from weft_go_opts()), -EBUSY (another
 * thread waits already), -ETIMEDOUT (the task was abandoned, see shutdown_ns),
 * -EDEADLK (called inside a task, which waits for such a task by a channel, or
 * by this call in weft_blocking()). */
WEFT_API int weft_wait(struct weft_runtime *runtime, struct weft_task task,
		       int64_t *ret_result) WEFT_WARN_UNUSED;

/* The same, until a point in time at most: -ETIMEDOUT once it has come, and the
 * handle is still good, for another wait or to be detached.  A deadline that
 * has passed looks, and does not block.  Between two waits nothing keeps the
 * runtime: it is to be stopped, or its first task to end, after the last. */
WEFT_API int weft_wait_until(struct weft_runtime *runtime,
			     struct weft_task task, weft_nsec deadline_ns,
			     int64_t *ret_result) WEFT_WARN_UNUSED;

/* Gives up a handle from weft_submit().  0, -ESRCH, or -EBUSY (a thread waits
 * for the task). */
WEFT_API int weft_detach(struct weft_runtime *runtime, struct weft_task task);

/* weft_cancel() from any thread, of a task of that runtime, which may end by
 * it, but not before the call begins.  Does not wait.  0, -ESRCH (the task has
 * ended), or -EINVAL (no runtime). */
WEFT_API int weft_cancel_in(struct weft_runtime *runtime,
			    struct weft_task task);

/* Cancels every task of the runtime, now and to come.  Does not wait.  From any
 * thread. */
WEFT_API void weft_cancel_all(struct weft_runtime *runtime);

/* Counters of one worker.  They only grow; read without stopping anything. */
struct weft_worker_stats {
	uint64_t polls;		 /* times a task was run */
	uint64_t ticks;		 /* turns of the worker's loop */
	uint64_t spawned;	 /* tasks started by tasks on it */
	uint64_t ended;		 /* tasks that returned on it */
	uint64_t lifo_hits;	 /* runs out of the slot for the newest task */
	uint64_t parks;		 /* times it went to sleep */
	uint64_t wakes_sent;	 /* times it woke another worker */
	uint64_t wakes_wasted;	 /* times it was woken and found nothing */
	uint64_t steals_tried;	 /* looks into other workers' queues */
	uint64_t steals_won;	 /* those that found something */
	uint64_t stolen;	 /* tasks taken by them */
	uint64_t injected;	 /* tasks taken from the shared queue */
	uint64_t inject_batches; /* in so many goes */
	uint64_t overflowed;	 /* tasks moved out as its queue was full */
	uint64_t ops;		 /* operations given to the kernel */
	uint64_t ops_ready;	 /* operations done without waiting */
	uint64_t ready_yields;	 /* yields after too many of those in a row */
	uint64_t completions;	 /* completions reaped, from any ring */
	uint64_t rescues;	 /* tasks left waiting while all workers slept:
				    should be 0 */
	uint64_t helps;		 /* times it did the work of a late worker */
	uint64_t timers_fired;
	uint64_t longest_poll_ns; /* longest a task ran without a pause, to
				     about 50 us; with the time in which its
				     thread had no processor */
	uint64_t given_way;	  /* tasks handed to other workers, since more
				     threads ran than processors were free */
	uint64_t reserved[9];
};

struct weft_stats {
	unsigned workers;
	unsigned tasks;		 /* alive now */
	uint64_t stacks;	 /* that tasks have now */
	struct weft_worker_stats total;
};

/* Fills *ret_stats.  From any thread.  0 or -EINVAL. */
WEFT_API int weft_stats_get(struct weft_runtime *runtime,
			struct weft_stats *ret_stats);
/* The counters of one worker.  0, or -EINVAL if there is no such worker. */
WEFT_API int weft_stats_worker(struct weft_runtime *runtime, unsigned worker,
			       struct weft_worker_stats *ret_stats);

WEFT_END_DECLS

#endif
