/* SPDX-License-Identifier: MIT */
/*
 * Process - waiting for a child, and its end.  The header has the states.
 *
 * A task waits with a poll of the pidfd.  Where the kernel has none, it looks
 * (waitid with WNOHANG) at intervals that grow with the age of the child.
 *
 * Rejected
 *   A thread of the pool for each child without a pidfd: with as many children
 *   as there may be threads, no other work of the pool is done.
 *   SIGCHLD: its handler is the program's.
 */
#include "process/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <weft/io.h>
#include <weft/task_local.h>

#include "io/request/call.h"
#include "process/child.h"
#include "runtime/base/memory.h"
#include "runtime/base/nsec.h"
#include "runtime/task/task_local.h"

#define LOOK_MIN_NS WEFT_US(200)
#define LOOK_MAX_NS WEFT_MS(50)
enum { LOOK_SHARE = 16, SIGNALS = 64 };

static void process_end(void *arg);

struct weft_process *weft__process_new(void)
{
	struct weft__worker *worker = weft__worker_self();
	const struct weft_allocator *memory = worker->runtime->memory;
	struct weft_process *process =
		weft__memory_zeroed(memory, sizeof(*process));

	if (!process)
		return NULL;
	process->memory = memory;
	process->owner = weft__running_id(worker->current);
	process->pidfd = -1;
	process->state = WEFT__PROCESS_REAPED;
	if (weft_defer(process_end, process) == 0)
		return process;
	weft__memory_free(memory, process, sizeof(*process));
	return NULL;
}

void weft__process_free(struct weft_process *process)
{
	weft__deferred_drop(process_end, process);
	weft__memory_free(process->memory, process, sizeof(*process));
}

static bool is_owner(const struct weft_process *process)
{
	struct weft__worker *worker = weft__worker_self();
	struct weft__task *task = weft__running(worker);

	return task && weft__running_id(task) == process->owner;
}

/* ---- Waiting ------------------------------------------------------------- */

/* The caller holds the lock. */
static void look(struct weft_process *process, bool reaps)
{
	bool killed = process->exit.killed;
	int r;

	if (process->state == WEFT__PROCESS_REAPED ||
	    (process->state == WEFT__PROCESS_LEFT && !reaps))
		return;
	r = weft__child_wait(process->pid, process->pidfd,
			     WNOHANG | (reaps ? 0 : WNOWAIT), &process->exit);
	process->exit.killed = killed;
	if (r == 0)
		return;
	process->lost = r < 0 && process->state == WEFT__PROCESS_RUNNING;
	process->state = reaps || r < 0 ? WEFT__PROCESS_REAPED :
					  WEFT__PROCESS_LEFT;
}

bool weft__process_has_ended(struct weft_process *process)
{
	bool ended;

	weft__lock_take(&process->lock);
	look(process, !process->leads);
	ended = process->state != WEFT__PROCESS_RUNNING;
	weft__lock_drop(&process->lock);
	return ended;
}

weft_nsec weft__process_next_look(const struct weft_process *process)
{
	weft_nsec now_ns = weft_now();
	weft_nsec pause_ns = (now_ns - process->began_ns) / LOOK_SHARE;

	if (pause_ns < LOOK_MIN_NS)
		pause_ns = LOOK_MIN_NS;
	return now_ns + (pause_ns < LOOK_MAX_NS ? pause_ns : LOOK_MAX_NS);
}

/* 0, -ECANCELED or -ETIMEDOUT.  A poll that fails otherwise, for lack of
 * memory, gives way to looks. */
static int await_end(struct weft_process *process)
{
	bool polls = process->pidfd >= 0, looks = !polls;

	for (;;) {
		int r = 0;

		if (looks && weft__process_has_ended(process))
			return (int)weft__call_ready(weft__worker_self(), 0);
		looks = true;
		if (polls)
			r = weft_poll(process->pidfd, POLLIN);
		else
			r = weft_sleep_until(weft__process_next_look(process));
		if (r == -ECANCELED || r == -ETIMEDOUT)
			return weft__process_has_ended(process) ? 0 : r;
		polls = polls && r >= 0;
	}
}

static int status_get(struct weft_process *process, struct weft_exit *ret_exit)
{
	bool lost;

	weft__lock_take(&process->lock);
	lost = process->lost;
	if (!lost && ret_exit)
		*ret_exit = process->exit;
	weft__lock_drop(&process->lock);
	return lost ? -ECHILD : 0;
}

int weft_process_wait(struct weft_process *process, struct weft_exit *ret_exit)
{
	struct weft__worker *worker;
	int r;

	if (!is_owner(process))
		return -EPERM;
	r = weft__call_begin(&worker);
	if (r < 0)
		return r;
	r = await_end(process);
	return r < 0 ? r : status_get(process, ret_exit);
}

/* ---- Signals ------------------------------------------------------------- */

/* Has something else reaped the child?  Then its status is lost, unless it is
 * known. */
static void reaped_look(struct weft_process *process)
{
	struct weft_exit exit;

	if (process->state == WEFT__PROCESS_REAPED ||
	    weft__child_wait(process->pid, process->pidfd, WNOHANG | WNOWAIT,
			     &exit) >= 0)
		return;
	process->lost = process->state == WEFT__PROCESS_RUNNING;
	process->state = WEFT__PROCESS_REAPED;
}

/* The caller holds the lock (PRC1).  A leader may have left its group; `both`:
 * it and the group. */
static int signal_send(struct weft_process *process, int number, bool both)
{
	int r = -ESRCH;

	if (process->leads || process->pidfd < 0)
		reaped_look(process);
	if (process->state == WEFT__PROCESS_REAPED)
		return -ESRCH;
	if (process->leads)
		r = weft__child_signal(-process->pid, -1, number);
	if (process->leads && !both &&
	    (r != -ESRCH || process->state != WEFT__PROCESS_RUNNING))
		return r;
	return weft__child_signal(process->pid, process->pidfd, number);
}

int weft_process_signal(struct weft_process *process, int number)
{
	int r;

	if (number < 1 || number > SIGNALS)
		return -EINVAL;
	weft__lock_take(&process->lock);
	r = signal_send(process, number, false);
	weft__lock_drop(&process->lock);
	return r;
}

void weft__process_ask(struct weft_process *process)
{
	(void)weft_process_signal(process, SIGTERM);
	(void)weft_process_signal(process, SIGCONT);
}

void weft__process_kill(struct weft_process *process)
{
	weft__lock_take(&process->lock);
	if (process->state == WEFT__PROCESS_RUNNING)
		process->exit.killed = true;
	(void)signal_send(process, SIGKILL, true);
	weft__lock_drop(&process->lock);
}

/* ---- The end ------------------------------------------------------------- */

static void child_end(struct weft_process *process)
{
	int r = 0;

	if (weft__process_has_ended(process))
		return;
	weft__process_ask(process);
	WEFT_WITHIN(process->grace_ns)
		r = await_end(process);
	if (r == 0)
		return;
	weft__process_kill(process);
	(void)await_end(process);
}

/* The rest of a group goes while the number is still its own. */
static void group_end(struct weft_process *process)
{
	weft__lock_take(&process->lock);
	if (process->state == WEFT__PROCESS_LEFT) {
		(void)signal_send(process, SIGKILL, false);
		look(process, true);
	}
	weft__lock_drop(&process->lock);
}

static int end(struct weft_process *process, struct weft_exit *ret_exit)
{
	int r = 0;

	WEFT_SHIELD {
		child_end(process);
		group_end(process);
		if (process->pidfd >= 0)
			(void)weft_close(process->pidfd);
	}
	r = status_get(process, ret_exit);
	weft__memory_free(process->memory, process, sizeof(*process));
	return r;
}

/* At the end of the task. */
static void process_end(void *arg)
{
	(void)end(arg, NULL);
}

int weft_process_close(struct weft_process *process, struct weft_exit *ret_exit)
{
	if (!process)
		return 0;
	if (!is_owner(process))
		return -EPERM;
	weft__deferred_drop(process_end, process);
	return end(process, ret_exit);
}

pid_t weft_process_pid(const struct weft_process *process)
{
	return process->pid;
}

int weft_process_fd(const struct weft_process *process)
{
	return process->pidfd >= 0 ? process->pidfd : -ENOSYS;
}
