/* SPDX-License-Identifier: MIT */
/*
 * Spawn - the options of a child, made a plan (process/child.h), which a thread
 * of the pool carries out: the birth of a child stops its thread until the
 * program begins.
 *
 * Few such threads run at a time: they wait for a processor as a rule, and what
 * the children do until then takes a lock of this process's memory.
 *
 * A child that is to die with the caller is made by the worker.  The kernel
 * sends that signal when the thread ends that made the child, and a thread of
 * the pool ends when it is idle.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/blocking.h>

#include "io/request/call.h"
#include "process/child.h"
#include "process/process.h"
#include "runtime/base/memory.h"
#include "runtime/base/own_fd.h"

#define GRACE_DEFAULT_NS WEFT_SEC(5)
/* A program that is open for writing is tried again, after pauses that double:
 * 63 ms in all. */
#define BUSY_PAUSE_NS WEFT_MS(1)
enum { BUSY_TRIES = 6 };
#define FLAGS                                                              \
	(WEFT_SPAWN_GROUP | WEFT_SPAWN_SESSION |                           \
	 WEFT_SPAWN_DIES_WITH_CALLER | WEFT_SPAWN_KEEP_MASK)
/* Where the environment has no PATH, as execvp(3). */
#define SEARCH_DEFAULT "/bin:/usr/bin"

/* Ends of the pipe that one entry of the list asks for; -1: none. */
struct ends {
	int own, childs;
};

/* Lies on the heap. */
struct spawning {
	const struct weft_spawn_opts *opts;
	struct weft_process *process;
	bool begun;
	struct ends ends[WEFT_CHILD_FDS_MAX];
	struct weft__child_plan plan;
};

/* ---- The options --------------------------------------------------------- */

static bool is_pipe(const struct weft_child_fd *fd)
{
	return fd->source == WEFT_PIPE_READ || fd->source == WEFT_PIPE_WRITTEN;
}

static bool fd_is_wrong(const struct weft_spawn_opts *opts, unsigned at)
{
	const struct weft_child_fd *fd = &opts->fds[at];

	for (unsigned i = 0; i < at; i++)
		if (opts->fds[i].number == fd->number)
			return true;
	return fd->number < 0 || is_pipe(fd) != (fd->ret_fd != NULL) ||
	       (fd->source < 0 && !is_pipe(fd) && fd->source != WEFT_NULL_FD);
}

/* Before a pipe of the call takes that number. */
int weft__spawn_sources_check(const struct weft_spawn_opts *opts)
{
	for (unsigned i = 0; i < opts->fds_count; i++)
		if (opts->fds[i].source >= 0 &&
		    fcntl(opts->fds[i].source, F_GETFD) < 0)
			return -EBADF;
	return 0;
}

static int opts_check(const struct weft_spawn_opts *opts)
{
	const char *path;

	if (!opts || opts->size != sizeof(*opts) || opts->reserved ||
	    !opts->argv || !opts->argv[0] || (opts->flags & ~FLAGS) ||
	    opts->fds_count > WEFT_CHILD_FDS_MAX ||
	    opts->limits_count > WEFT_CHILD_LIMITS_MAX ||
	    (opts->fds_count && !opts->fds) ||
	    (opts->limits_count && !opts->limits))
		return -EINVAL;
	path = opts->path ? opts->path : opts->argv[0];
	if (!*path)
		return -ENOENT;
	for (unsigned i = 0; i < opts->fds_count; i++)
		if (fd_is_wrong(opts, i))
			return -EINVAL;
	return weft__spawn_sources_check(opts);
}

/* ---- The plan ------------------------------------------------------------ */

/* A source that is overwritten before it is used: then all are moved. */
static bool has_overlap(const struct weft__child_plan *plan)
{
	for (unsigned i = 0; i < plan->fds_count; i++)
		for (unsigned j = 0; j < plan->fds_count; j++)
			if (i != j && plan->fds[i].source ==
					      plan->fds[j].number)
				return true;
	return false;
}

static void plan_fds(struct spawning *spawning)
{
	struct weft__child_plan *plan = &spawning->plan;

	for (unsigned i = 0; i < plan->fds_count; i++) {
		struct weft_child_fd *fd = &plan->fds[i];

		*fd = spawning->opts->fds[i];
		if (is_pipe(fd))
			fd->source = spawning->ends[i].childs;
		plan->has_null |= fd->source == WEFT_NULL_FD;
	}
	plan->moves = has_overlap(plan);
}

/* The environment does not change during the call, as the header says. */
static void plan_make(struct spawning *spawning, uint64_t mask)
{
	const struct weft_spawn_opts *opts = spawning->opts;
	struct weft__child_plan *plan = &spawning->plan;
	const char *search = getenv("PATH");

	plan->path = opts->path ? opts->path : opts->argv[0];
	plan->argv = opts->argv;
	plan->environment = opts->environment ?
				    opts->environment :
				    (const char *const *)environ;
	plan->directory = opts->directory;
	if (!strchr(plan->path, '/'))
		plan->search = search ? search : SEARCH_DEFAULT;
	plan->limits = opts->limits;
	plan->limits_count = opts->limits_count;
	plan->fds_count = opts->fds_count;
	plan->flags = opts->flags;
	plan->caller = getpid();
	plan->ignored = opts->ignored;
	plan->mask = opts->flags & WEFT_SPAWN_KEEP_MASK ? mask : 0;
}

/* ---- In the pool --------------------------------------------------------- */

static void end_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Above 2: there the child's own may be missing. */
static int pipe_open(const struct weft_child_fd *fd, struct ends *ends)
{
	int reads = fd->source == WEFT_PIPE_READ, fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	ends->childs = r = weft__fd_above_stdio(fds[!reads]);
	if (r >= 0)
		ends->own = r = weft__fd_above_stdio(fds[reads]);
	else
		close(fds[reads]);
	if (r >= 0)
		r = fcntl(ends->own, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	return r;
}

static int pipes_open(struct spawning *spawning)
{
	int r = 0;

	for (unsigned i = 0; i < spawning->opts->fds_count && r >= 0; i++)
		if (is_pipe(&spawning->opts->fds[i]))
			r = pipe_open(&spawning->opts->fds[i],
				      &spawning->ends[i]);
	return r;
}

static int64_t spawn_run(void *arg)
{
	struct spawning *spawning = arg;
	struct weft_process *process = spawning->process;
	int r;

	spawning->begun = true;
	r = pipes_open(spawning);
	if (r >= 0) {
		plan_fds(spawning);
		r = weft__child_make(&spawning->plan, &process->pid,
				     &process->pidfd);
	}
	for (unsigned i = 0; i < spawning->opts->fds_count; i++) {
		end_close(&spawning->ends[i].childs);
		if (r < 0)
			end_close(&spawning->ends[i].own);
	}
	return r;
}

/* ---- The call ------------------------------------------------------------ */

static int64_t spawn_anywhere(struct weft__worker *worker,
			      struct spawning *spawning)
{
	int64_t r;

	if (spawning->opts->flags & WEFT_SPAWN_DIES_WITH_CALLER)
		return spawn_run(spawning);
	r = weft_blocking_lane(&weft__reactor(worker->runtime)->children,
			       spawn_run, spawning);
	/* There is no thread: then this one waits for the child. */
	if (!spawning->begun && (r == -EAGAIN || r == -ENOMEM))
		r = spawn_run(spawning);
	return r;
}

/* A program that this process has just written is executed as soon as its
 * descriptor is closed here; but a child that another task or thread has just
 * made has a copy of it, until that one executes its own program. */
static int64_t spawn_unless_busy(struct spawning *spawning)
{
	int64_t r = spawn_anywhere(weft__worker_self(), spawning);
	weft_nsec pause_ns = BUSY_PAUSE_NS;

	for (int i = 0; i < BUSY_TRIES && r == -ETXTBSY; i++) {
		r = weft_sleep(pause_ns);
		if (r < 0)
			return r;
		pause_ns *= 2;
		spawning->begun = false;
		r = spawn_anywhere(weft__worker_self(), spawning);
	}
	return r;
}

/* Rings may remember earlier files of these numbers. */
static void spawn_done(struct spawning *spawning)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft_process *process = spawning->process;
	const struct weft_spawn_opts *opts = spawning->opts;

	process->leads = opts->flags & (WEFT_SPAWN_GROUP | WEFT_SPAWN_SESSION);
	process->grace_ns = opts->grace_ns ? opts->grace_ns : GRACE_DEFAULT_NS;
	process->began_ns = weft_now();
	process->state = WEFT__PROCESS_RUNNING;
	if (process->pidfd >= 0)
		weft__reactor_forget(worker, process->pidfd);
	for (unsigned i = 0; i < opts->fds_count; i++)
		if (spawning->ends[i].own >= 0) {
			weft__reactor_forget(worker, spawning->ends[i].own);
			*opts->fds[i].ret_fd = spawning->ends[i].own;
		}
}

static uint64_t mask_of(const struct weft_runtime *runtime)
{
	uint64_t mask;

	/* The kernel's signals come first in the C library's set. */
	memcpy(&mask, &runtime->signals, sizeof(mask));
	return mask;
}

static int spawn(struct weft__worker *worker,
		 const struct weft_spawn_opts *opts,
		 struct weft_process *process)
{
	const struct weft_allocator *memory = worker->runtime->memory;
	struct spawning *spawning = weft__memory_new(memory, sizeof(*spawning));
	int r;

	if (!spawning)
		return -ENOMEM;
	spawning->opts = opts;
	spawning->process = process;
	spawning->begun = false;
	memset(&spawning->plan, 0, offsetof(struct weft__child_plan, fds));
	for (unsigned i = 0; i < opts->fds_count; i++)
		spawning->ends[i] = (struct ends){ -1, -1 };
	plan_make(spawning, mask_of(worker->runtime));
	r = (int)spawn_unless_busy(spawning);
	if (r >= 0)
		spawn_done(spawning);
	weft__memory_free(memory, spawning, sizeof(*spawning));
	return r;
}

int weft_spawn(const struct weft_spawn_opts *opts,
	       struct weft_process **ret_process)
{
	struct weft_process *process;
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	if (r == 0)
		r = ret_process ? opts_check(opts) : -EINVAL;
	if (r < 0)
		return r;
	process = weft__process_new();
	if (!process)
		return -ENOMEM;
	r = spawn(worker, opts, process);
	if (r < 0) {
		weft__process_free(process);
		return r;
	}
	*ret_process = process;
	return 0;
}
