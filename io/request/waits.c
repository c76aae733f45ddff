/* SPDX-License-Identifier: MIT */
#include "io/request/waits.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weft/time.h>

#include "io/os/interrupt.h"
#include "io/request/call.h"
#include "io/request/reactor.h"
#include "runtime/blocking/blocking.h"

struct waiting {
	weft_fn fn;
	void *arg;
	struct weft__lock lock;
	pid_t thread; /* under lock: its number, while it runs */
	int why;      /* under lock: the task was interrupted; or 0 */
	bool ran;
};

/* Notes the number of the thread, or 0.  Returns why the task was interrupted,
 * or 0: the call may begin. */
static int thread_set(struct waiting *waiting, pid_t thread)
{
	int why;

	weft__lock_take(&waiting->lock);
	why = waiting->why;
	waiting->thread = thread;
	weft__lock_drop(&waiting->lock);
	return why;
}

/* A signal of the program's is no reason to end. */
static int64_t waiting_run(void *arg)
{
	struct waiting *waiting = arg;
	pid_t thread = (pid_t)syscall(SYS_gettid);
	sigset_t before;
	int64_t r = 0;
	int why;

	weft__interrupt_admit(&before);
	while (!(why = thread_set(waiting, thread))) {
		waiting->ran = true;
		r = waiting->fn(waiting->arg);
		if (r != -EINTR)
			break;
	}
	thread_set(waiting, 0);
	weft__interrupt_drop(&before);
	return why < 0 ? why : r;
}

enum { PAUSE_MIN_NS = 100000, PAUSE_MAX_NS = 50000000 };

static int waiting_leave(void *arg, struct weft__wait *wait, int why)
{
	struct waiting *waiting = arg;
	weft_nsec pause_ns = PAUSE_MIN_NS;
	int r = why;

	while (r < 0) {
		weft__lock_take(&waiting->lock);
		waiting->why = why;
		if (waiting->thread)
			weft__interrupt(waiting->thread);
		weft__lock_drop(&waiting->lock);
		WEFT_SHIELD
			WEFT_WITHIN(pause_ns)
				r = weft__wait(wait, true);
		if (pause_ns < PAUSE_MAX_NS)
			pause_ns *= 2;
	}
	return r;
}

/* Two tasks may be the first: the second gives its use back. */
static void interrupts_begin(struct weft__worker *worker)
{
	struct weft__reactor *reactor = weft__reactor(worker->runtime);

	/* pairs: [reactor.interrupts] */
	if (weft__load(&reactor->interrupts, acquire))
		return;
	weft__interrupt_begin(&worker->runtime->signals);
	/* pairs: [reactor.interrupts] */
	if (weft__swap(&reactor->interrupts, true, release))
		weft__interrupt_end();
}

int64_t weft__waits_run(weft_fn fn, void *arg, bool *ret_ran)
{
	struct waiting waiting = { .fn = fn, .arg = arg };
	struct weft__worker *worker;
	int64_t r = weft__call_begin(&worker);

	*ret_ran = false;
	if (r < 0)
		return r;
	interrupts_begin(worker);
	if (!weft__interrupt_works(&worker->runtime->signals))
		return -EAGAIN;
	r = weft__blocking_leave(&weft__reactor(worker->runtime)->waits,
				 waiting_run, &waiting, waiting_leave);
	*ret_ran = waiting.ran;
	/* Else the ring counts it. */
	if (waiting.ran)
		weft__count(weft__worker_self(), WEFT__N_OPS, 1);
	return r;
}
