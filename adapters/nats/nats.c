/* SPDX-License-Identifier: MIT */
/*
 * Connections to NATS.
 *
 * The functions of its C library block: they wait for a lock that its threads
 * hold while they send, or for the server.  Each runs on a thread, as a job; a
 * caller that leaves lets the job end by itself.
 *
 * **Invariants**
 *   NATS1  A job of a connection has one of its permits until it is freed.  The
 *	    connection is destroyed when all permits are back.
 */
#include <weft/nats.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/nats/job.h"

/* libnats has no request without an end. */
#define REQUEST_NS WEFT_SEC(3600)

/* ---- Jobs ---- */

int weft__nats_may_wait(void)
{
	/* Where a wait may begin, this finds that there is no descriptor. */
	int r = weft_poll(-1, 0);

	if (r != -EBADF)
		return r;
	/* A deadline that passed just now need not be noticed yet. */
	return weft_deadline_passed() ? weft_yield() : 0;
}

int weft__nats_in_task(void)
{
	return weft_poll(-1, 0) == -EPERM ? -EPERM : 0;
}

static void job_run(struct aside *aside)
{
	struct job *job = (struct job *)aside;

	job->status = job->fn(job);
	nats_ReleaseThreadMemory();
}

static void job_drop(struct aside *aside)
{
	weft__nats_job_free((struct job *)aside);
}

/* On a thread: both wait for the lock of the connection. */
static int64_t destroy_results(void *arg)
{
	struct job *job = arg;

	natsConnection_Destroy(job->result);
	natsSubscription_Destroy(job->opened);
	nats_ReleaseThreadMemory();
	return 0;
}

/* Results that no caller took. */
static void drop_results(struct job *job)
{
	int64_t r = 0;

	if (!job->result && !job->opened)
		return;
	WEFT_SHIELD
		r = weft_blocking(destroy_results, job);
	/* No thread can be had. */
	if (r < 0)
		(void)destroy_results(job);
}

void weft__nats_job_free(struct job *job)
{
	struct weft_nats *nats = job->nats;
	struct weft_sem *place = job->place;

	drop_results(job);
	natsOptions_Destroy(job->options);
	natsMsg_Destroy(job->message);
	free(job->subject);
	free(job->text);
	free(job->data);
	weft__aside_fini(&job->aside);
	free(job);
	if (place)
		weft_sem_release(place, 1);
	if (nats)
		weft_sem_release(&nats->jobs, 1);
}

struct job *weft__nats_job(struct weft_nats *nats,
			   natsStatus (*fn)(struct job *job))
{
	struct job *job;

	if (nats && weft_sem_try_acquire(&nats->jobs, 1) < 0)
		return NULL;
	job = calloc(1, sizeof(*job));
	if (!job) {
		if (nats)
			weft_sem_release(&nats->jobs, 1);
		return NULL;
	}
	weft__aside_init(&job->aside, job_run, job_drop);
	job->fn = fn;
	job->nats = nats;
	return job;
}

int weft__nats_job_arguments(struct job *job, const char *subject,
			     const char *text, const void *data, size_t bytes)
{
	if (bytes > INT_MAX)
		return -EMSGSIZE;
	job->subject = subject ? strdup(subject) : NULL;
	job->text = text ? strdup(text) : NULL;
	job->data = malloc(bytes + 1);
	job->bytes = (int)bytes;
	if ((subject && !job->subject) || (text && !job->text) || !job->data)
		return -ENOMEM;
	if (bytes > 0)
		memcpy(job->data, data, bytes);
	return 0;
}

static int error_of(natsStatus status)
{
	switch (status) {
	case NATS_OK:
		return 0;
	case NATS_TIMEOUT:
		return -ETIMEDOUT;
	case NATS_NO_SERVER:
		return -ECONNREFUSED;
	case NATS_NO_RESPONDERS:
		return -EHOSTUNREACH;
	case NATS_MAX_PAYLOAD:
		return -EMSGSIZE;
	case NATS_NO_MEMORY:
		return -ENOMEM;
	case NATS_CONNECTION_CLOSED:
	case NATS_DRAINING:
		return -ENOTCONN;
	case NATS_INVALID_ARG:
	case NATS_INVALID_SUBJECT:
	case NATS_INVALID_QUEUE_NAME:
		return -EINVAL;
	default:
		return -EREMOTEIO;
	}
}

int weft__nats_job_run(struct job *job, int error, bool *ret_left)
{
	int r = error;

	if (r == 0)
		r = weft__aside_start(&job->aside);
	if (r < 0)
		return r;
	r = weft__aside_wait(&job->aside);
	atomic_store(&job->left, r < 0);
	*ret_left = !weft__aside_leave(&job->aside);
	if (*ret_left)
		return r;
	/* It is done, in time or just after. */
	return job->aside.error < 0 ? job->aside.error : error_of(job->status);
}

int weft__nats_job_do(struct job *job, int error)
{
	bool left = false;
	int r = weft__nats_job_run(job, error, &left);

	if (!left)
		weft__nats_job_free(job);
	return r;
}

void weft__nats_job_always(struct weft_nats *nats,
			   natsStatus (*fn)(struct job *job), void *owner)
{
	struct job here = { .owner = owner }, *job = weft__nats_job(nats, fn);
	bool has_run = false, left;

	if (job) {
		job->owner = owner;
		/* In a shield it does not leave. */
		has_run = weft__nats_job_run(job, 0, &left) == 0 ||
			  job->status != NATS_OK;
		weft__nats_job_free(job);
	}
	if (!has_run)
		(void)fn(&here);
}

/* ---- Life ---- */

static natsStatus connect_now(struct job *job)
{
	return natsConnection_Connect(&job->result, job->options);
}

/* A connection of the library becomes one of weft. */
static int connected(struct job *job, struct weft_nats **ret_nats)
{
	struct weft_nats *nats = calloc(1, sizeof(*nats));

	if (!nats)
		return -ENOMEM;
	/* It only allocates. */
	if (natsConnection_JetStream(&nats->js, job->result, NULL) !=
	    NATS_OK) {
		free(nats);
		return -ENOMEM;
	}
	nats->jobs = (struct weft_sem)WEFT_SEM_INIT(JOBS_MAX);
	nats->connection = job->result;
	job->result = NULL;
	*ret_nats = nats;
	return 0;
}

int weft_nats_connect(natsOptions *options, struct weft_nats **ret_nats)
{
	bool left = false;
	struct job *job;
	int r = weft__nats_may_wait();

	job = r < 0 ? NULL : weft__nats_job(NULL, connect_now);
	if (!job) {
		natsOptions_Destroy(options);
		return r < 0 ? r : -ENOMEM;
	}
	job->options = options;
	r = weft__nats_job_run(job, 0, &left);
	if (left)
		return r;
	if (r == 0)
		r = connected(job, ret_nats);
	weft__nats_job_free(job);
	return r;
}

natsConnection *weft_nats_connection(struct weft_nats *nats)
{
	return nats->connection;
}

static natsStatus close_now(struct job *job)
{
	natsConnection_Close(job->owner);
	return NATS_OK;
}

static natsStatus destroy_now(struct job *job)
{
	natsConnection_Destroy(job->owner);
	return NATS_OK;
}

int weft_nats_close(struct weft_nats *nats)
{
	int r = 0;

	if (!nats)
		return 0;
	if (weft__nats_in_task() < 0)
		return -EPERM;
	WEFT_SHIELD {
		/* Ends the jobs that wait for the server. */
		weft__nats_job_always(NULL, close_now, nats->connection);
		r = weft_sem_acquire(&nats->jobs, JOBS_MAX);
		jsCtx_Destroy(nats->js);
		weft__nats_job_always(NULL, destroy_now, nats->connection);
		free(nats);
	}
	return r;
}

/* ---- Messages ---- */

static natsStatus publish_now(struct job *job)
{
	return natsConnection_Publish(job->nats->connection, job->subject,
				      job->data, job->bytes);
}

int weft_nats_publish(struct weft_nats *nats, const char *subject,
		      const void *data, size_t bytes)
{
	struct job *job;
	int r = weft__nats_may_wait();

	if (r < 0)
		return r;
	job = weft__nats_job(nats, publish_now);
	if (!job)
		return -ENOMEM;
	r = weft__nats_job_arguments(job, subject, NULL, data, bytes);
	return weft__nats_job_do(job, r);
}

static natsStatus request_now(struct job *job)
{
	return natsConnection_Request(&job->message, job->nats->connection,
				      job->subject, job->data, job->bytes,
				      job->time_ns / 1000000 + 1);
}

/* The thread need not wait longer than its caller. */
static int64_t time_left_ns(void)
{
	weft_nsec deadline = weft_deadline(), now = weft_now();

	/* It may have passed just now. */
	if ((int64_t)deadline <= (int64_t)now)
		return 0;
	if (deadline - now > REQUEST_NS)
		return (int64_t)REQUEST_NS;
	return (int64_t)(deadline - now);
}

int weft_nats_request(struct weft_nats *nats, const char *subject,
		      const void *data, size_t bytes, natsMsg **ret_reply)
{
	bool left = false;
	struct job *job;
	int r = weft__nats_may_wait();

	if (r < 0)
		return r;
	job = weft__nats_job(nats, request_now);
	if (!job)
		return -ENOMEM;
	r = weft__nats_job_arguments(job, subject, NULL, data, bytes);
	job->time_ns = time_left_ns();
	r = weft__nats_job_run(job, r, &left);
	if (left)
		return r;
	if (r == 0) {
		*ret_reply = job->message;
		job->message = NULL;
	}
	weft__nats_job_free(job);
	return r;
}
