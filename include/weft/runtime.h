/* SPDX-License-Identifier: MIT */
/*
 * The runtime: how to start and stop it, use it from other threads, and read
 * its counters.
 */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#include <weft/allocator.h>
#include <weft/config.h>
#include <weft/task.h>
#include <weft/time.h>

WEFT_BEGIN_DECLS

struct weft_runtime;

/* Options of a runtime.  Start from WEFT_OPTS_INIT, which sets size; 0 in any
 * other field means the default.  A value out of range gives -EINVAL.  A
 * negative length of time is over immediately. */
struct weft_opts {
	size_t size;
	unsigned workers;     /* threads, up to 4096; default: the CPUs that the
				 thread may run on */
	unsigned tasks_max;   /* tasks alive at the same time, up to 2^31;
				 default 16 million.  If there are 8192 or more
				 for each worker, every worker may keep 512 of
				 them for its own use */
	size_t stack_bytes;   /* of a task, 16 KiB to 64 MiB; default 256 KiB */
	weft_nsec shutdown_ns; /* how long to wait for cancelled tasks at the
				  end; see weft_run(); default without limit */
	unsigned ring_entries; /* of each worker's ring, up to 32768;
				  default 256; fewer, down to 8, where
				  RLIMIT_MEMLOCK allows no more */
	unsigned blocking_threads_max; /* for weft_blocking(), and at the
					  position of files; default 512 */
	weft_nsec blocking_idle_ns; /* an idle one of them ends after this time;
				       default 10 s */
	unsigned engine; /* WEFT_ENGINE_URING or WEFT_ENGINE_EPOLL; default:
			    io_uring, and epoll where it is refused */
	const struct weft_allocator *allocator; /* for records and buffers;
						   default: malloc() */
	/* When to write a dump of the tasks; see <weft/dump.h>. */
	int dump_signal;       /* on stderr, when the process gets this signal;
				  0: never */
	const char *dump_path; /* to a peer that connects to this Unix socket */
	weft_nsec stall_ns;    /* on stderr, when a task has run for this long
				  without a pause, or no task has been able to
				  go on for this long; 0: never */
};

/* An engine carries out the requests of a runtime.  See weft_engine(). */
enum {
	WEFT_ENGINE_ANY,
	WEFT_ENGINE_URING,
	WEFT_ENGINE_EPOLL,
};

#define WEFT_OPTS_INIT \
	{ sizeof(struct weft_opts), 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, NULL, 0 }

/*
 * Runs fn(arg) as the first task, on this thread and opts->workers - 1 others.
 * Blocks the thread until that task and all tasks that it started have ended,
 * and returns its result.  Tasks of weft_submit() that are left by then are
 * cancelled and waited for.  arg is passed as it is.  NULL opts: the defaults.
 * A process may have several runtimes, each on its own threads.
 *
 * Signals: the threads have the signal mask of the caller, and so has each
 * child process that a task starts.  While there is a runtime, a handler for
 * SIGSEGV and SIGBUS names the task whose stack overflowed; all else does what
 * the program's own action would do.  It is not set for a signal that is
 * ignored.  To stop a server by SIGINT, block the signal and wait for it: see
 * weft_start().
 *
 * Returns the task's result, or, without running the task, -EINVAL, -ENOMEM,
 * -EMFILE, -ENFILE, -EAGAIN (no more threads), -ENOSYS (io_uring was asked
 * for, and is missing, too old or forbidden), -EDEADLK (called inside a task),
 * -EBUSY (16 runtimes have a dump_signal already), or an error of bind(2) for
 * dump_path.
 * If dump_path or dump_signal cannot be used, a message on stderr names it.
 *
 * -ETIMEDOUT: shutdown_ns passed, and tasks were abandoned.  Their names are
 * printed on stderr, and the runtime's memory is not freed.  An abandoned task
 * may run on until it next waits, and a function of weft_blocking() until it
 * returns: what fn, arg and their like point to must still exist.  The calling
 * thread both watches this time limit and runs tasks: a task that computes on
 * it without a pause delays the end.
 *
 * The time runs from the moment at which the first task returns or is cancelled
 * (also by weft_cancel_all()), or at which its outermost scope is cancelled,
 * fails, or has the winner of a race; if that scope ends in time, the clock is
 * stopped.  For a step that may take longer, open a scope around the step's.
 */
WEFT_API int64_t weft_run(weft_fn fn, void *arg, const struct weft_opts *opts);

/*
 * The same in two steps, for a program that keeps its own thread: all workers
 * run on threads of the runtime.  weft_start() passes the runtime to the
 * caller, which ends it with weft_stop().
 *
 * weft_stop() cancels the tasks that are left, waits for them up to
 * shutdown_ns, even while some of them compute, and frees the runtime.  It
 * blocks the thread.  Other threads may be in weft_wait() or weft_wait_until()
 * meanwhile; those return when their task has ended or was abandoned, or their
 * own time is up.  No other call for the runtime may begin any more.
 *
 * weft_start() returns 0, or an error that weft_run() returns without running
 * the task.  weft_stop() returns 0, -ETIMEDOUT (tasks were abandoned), -EDEADLK
 * (called by a task of this runtime), -EINVAL (NULL, or a runtime of
 * weft_run(), which ends by itself), or -EPERM (see weft_attach() in
 * <weft/loop.h>).
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

/* The runtime of the calling task, for use by other threads; NULL outside a
 * task.  Valid until the runtime ends. */
WEFT_API struct weft_runtime *weft_runtime_self(void);

/* Returns the engine of the runtime, WEFT_ENGINE_URING or WEFT_ENGINE_EPOLL; if
 * ret_why is not NULL, *ret_why is then the reason for it, a text that need not
 * be freed.  The variable WEFT_ENGINE ("uring", "epoll") comes before the
 * option.  From any thread while the runtime exists; does not suspend.
 * WEFT_ENGINE_ANY: the runtime is NULL. */
WEFT_API unsigned weft_engine(const struct weft_runtime *runtime,
			      const char **ret_why);

/* Starts a task that belongs to the runtime itself, from any thread or task.
 * opts may be NULL.  A handle asked for by opts->ret_task must be given to
 * weft_wait() or weft_detach().  The call does not suspend, may block for a
 * short time on a lock, and does not run the task.  It copies the argument as
 * weft_go() does.  Returns 0, -EINVAL, -EAGAIN or -ENOMEM as weft_go(), or
 * -ESHUTDOWN once the runtime is ending. */
WEFT_API int weft_submit(struct weft_runtime *runtime, weft_fn fn,
			 const void *arg, size_t arg_bytes,
			 const struct weft_task_opts *opts) WEFT_WARN_UNUSED;

/*
 * Blocks a thread that is no worker until the task has ended.  The thread spins
 * for up to 50 us, if that has paid recently, and then sleeps.  ret_result may
 * be NULL.  After 0 the handle is invalid.  Returns 0, -ESRCH (no such task of
 * weft_submit(), or no handle left to it), -EBUSY (another thread waits for
 * it), -ETIMEDOUT (the task was abandoned, see shutdown_ns), -EINVAL (NULL
 * runtime), or -EDEADLK (called inside a task; a task may wait through a
 * channel, or call this in weft_blocking()).
 */
WEFT_API int weft_wait(struct weft_runtime *runtime, struct weft_task task,
		       int64_t *ret_result) WEFT_WARN_UNUSED;

/* The same with a time limit: returns -ETIMEDOUT at deadline_ns, and the handle
 * stays valid, for another wait or weft_detach().  If the deadline has passed
 * already, the call checks the task and does not block.  A handle does not keep
 * the runtime alive between two waits: stop the runtime, or let its first task
 * end, only after the last wait. */
WEFT_API int weft_wait_until(struct weft_runtime *runtime,
			     struct weft_task task, weft_nsec deadline_ns,
			     int64_t *ret_result) WEFT_WARN_UNUSED;

/* Gives up a handle of weft_submit(); the task goes on.  From any thread; does
 * not suspend.  Returns 0, -ESRCH, -EBUSY (a thread waits for the task), or
 * -EINVAL (NULL runtime). */
WEFT_API int weft_detach(struct weft_runtime *runtime, struct weft_task task);

/* weft_cancel() from any thread, for a task of that runtime.  The cancellation
 * may make the runtime end, but it must not end before the call begins.  Does
 * not suspend or wait.  Returns 0, -ESRCH (the task has ended), or -EINVAL
 * (NULL runtime). */
WEFT_API int weft_cancel_in(struct weft_runtime *runtime,
			    struct weft_task task);

/* Cancels every task of the runtime and, from now on, every task that starts.
 * Does not suspend or wait.  From any thread.  NULL runtime: does nothing. */
WEFT_API void weft_cancel_all(struct weft_runtime *runtime);

/* Counters of one worker.  They only grow; reading them stops nothing. */
struct weft_worker_stats {
	uint64_t polls;		 /* times a task was run */
	uint64_t ticks;		 /* rounds of the worker's loop */
	uint64_t spawned;	 /* tasks started by tasks on it */
	uint64_t ended;		 /* tasks that returned on it */
	uint64_t lifo_hits;	 /* tasks run from the newest-task slot */
	uint64_t parks;		 /* times it went to sleep */
	uint64_t wakes_sent;	 /* times it woke another worker */
	uint64_t wakes_wasted;	 /* times it was woken and found no work */
	uint64_t steals_tried;	 /* looks into other workers' queues */
	uint64_t steals_won;	 /* looks that found tasks */
	uint64_t stolen;	 /* tasks taken by those looks */
	uint64_t injected;	 /* tasks taken from the shared queue */
	uint64_t inject_batches; /* how often it took some of those */
	uint64_t overflowed;	 /* tasks moved out of its full queue */
	uint64_t ops;		 /* requests given to the kernel */
	uint64_t ops_ready;	 /* operations that did not have to wait */
	uint64_t ready_yields;	 /* yields after too many of those in a row */
	uint64_t completions;	 /* completions taken, from any worker's ring */
	uint64_t rescues;	 /* tasks found waiting while all workers slept:
				    should be 0 */
	uint64_t helps;		 /* times it did the work of a late worker */
	uint64_t timers_fired;
	uint64_t longest_poll_ns; /* the longest run of a task without a pause,
				     to about 50 us; includes time in which
				     its thread had no processor */
	uint64_t given_way;	  /* tasks passed to other workers, because more
				     threads ran than processors were free */
	uint64_t reserved[9];
};

struct weft_stats {
	unsigned workers;
	unsigned tasks;		 /* alive now */
	uint64_t stacks;	 /* that tasks have now */
	struct weft_worker_stats total;
};

/* Fills *ret_stats; total sums up all workers, and longest_poll_ns is the
 * largest.  From any thread while the runtime exists; does not suspend.
 * Returns 0, or -EINVAL (a NULL pointer). */
WEFT_API int weft_stats_get(struct weft_runtime *runtime,
			struct weft_stats *ret_stats);
/* The counters of one worker, numbered from 0.  Also returns -EINVAL if there
 * is no such worker. */
WEFT_API int weft_stats_worker(struct weft_runtime *runtime, unsigned worker,
			       struct weft_worker_stats *ret_stats);

WEFT_END_DECLS

#endif
