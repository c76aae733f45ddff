/* SPDX-License-Identifier: MIT */
#include "io/pooled.h"

#include "io/position.h"
#include "io/request/call.h"

struct job {
	weft_fn fn;
	void *arg;
	bool begun;
};

static int64_t job_run(void *arg)
{
	struct job *job = arg;

	job->begun = true;
	return job->fn(job->arg);
}

static int64_t run(weft_fn fn, void *arg)
{
	struct weft__worker *worker = weft__worker_self();
	struct job job = { .fn = fn, .arg = arg };
	int64_t r;

	weft__count(worker, WEFT__N_OPS, 1);
	r = weft_blocking_lane(&weft__reactor(worker->runtime)->pooled, job_run,
			       &job);
	if (!job.begun && (r == -EAGAIN || r == -ENOMEM))
		r = job_run(&job);
	return r;
}

int64_t weft__pooled(weft_fn fn, void *arg)
{
	struct weft__worker *worker;
	int r = weft__call_begin(&worker);

	return r < 0 ? r : run(fn, arg);
}

int64_t weft__pooled_on(int fd, weft_fn fn, void *arg)
{
	struct weft__worker *worker;
	struct weft__fd *entry;
	int64_t r = weft__call_begin_fd(fd, &worker, &entry);

	if (r == 0)
		r = weft__position_enter(entry, fd);
	if (r < 0)
		return r;
	r = run(fn, arg);
	weft__position_leave(entry);
	return r;
}

int64_t weft__pooled_shielded(weft_fn fn, void *arg)
{
	int64_t r = -EPERM;

	if (!weft__running(weft__worker_self()))
		return r;
	WEFT_SHIELD
		r = weft__pooled(fn, arg);
	return r;
}

struct call {
	long number;
	const long *words;
};

static int64_t call_run(void *arg)
{
	const struct call *call = arg;

	return weft__syscall_any(call->number, call->words);
}

int64_t weft__pooled_call(long number, const long words[WEFT__WORDS])
{
	struct call call = { number, words };

	return weft__pooled(call_run, &call);
}

int64_t weft__pooled_call_on(int fd, long number, const long words[WEFT__WORDS])
{
	struct call call = { number, words };

	return weft__pooled_on(fd, call_run, &call);
}
