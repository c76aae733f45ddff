/* SPDX-License-Identifier: MIT */
/* Connections to NATS, and calls of its library on threads. */
#ifndef WEFT_ADAPTERS_NATS_JOB_H
#define WEFT_ADAPTERS_NATS_JOB_H

#include <nats/nats.h>
#include <stdatomic.h>
#include <weft/weft.h>

#include "adapters/aside/aside.h"

/* So many jobs of a connection may exist. */
enum { JOBS_MAX = 1 << 20 };

struct weft_nats {
	natsConnection *connection;
	jsCtx *js;
	struct weft_sem jobs; /* a permit for each that may yet begin */
};

/* A call of the library: its arguments, copied, and its results.  On the heap,
 * since the caller may leave. */
struct job {
	struct aside aside; /* first: it is the address of the whole */
	natsStatus (*fn)(struct job *job); /* on a thread */
	natsStatus status;
	struct weft_nats *nats; /* NULL while there is none */
	char *subject, *text, *data;
	int bytes;
	int64_t time_ns;
	void *owner;		/* a subscription or a queue */
	natsOptions *options;	/* owned */
	natsConnection *result; /* owned, of a connect */
	natsSubscription *opened; /* owned, of the opening of a queue */
	natsMsg *message;	/* owned; given, or the result */
	struct weft_sem *place;	/* released at its end; NULL: none */
	atomic_bool left;	/* the caller left: end soon */
};

/* A job on a connection.  NULL: there is no memory. */
struct job *weft__nats_job(struct weft_nats *nats,
			   natsStatus (*fn)(struct job *job));

/* Copies them: 0, or -ENOMEM.  NULL strings stay NULL. */
int weft__nats_job_arguments(struct job *job, const char *subject,
			     const char *text, const void *data, size_t bytes);

/* Runs it, if no error came before, and waits: 0, or an error.  If *ret_left,
 * the job is the caller's no more; else it frees it. */
int weft__nats_job_run(struct job *job, int error, bool *ret_left);

void weft__nats_job_free(struct job *job);

/* Runs it, and frees it. */
int weft__nats_job_do(struct job *job, int error);

/* Has `fn`, which uses nothing but its owner, run on a thread; or on this one,
 * if there is no memory for a job, or no thread.  For what must be done, in a
 * shield.  NULL nats: none. */
void weft__nats_job_always(struct weft_nats *nats,
			   natsStatus (*fn)(struct job *job), void *owner);

/* Whether the caller may wait: 0, or -EPERM, -ECANCELED, -ETIMEDOUT. */
int weft__nats_may_wait(void);

/* The same for a call that is always done in full: 0 or -EPERM. */
int weft__nats_in_task(void);

#endif
