/* SPDX-License-Identifier: MIT */
/*
 * Work queues: a stream of JetStream that gives up a message when it is done,
 * and a consumer from which processes pull.
 *
 * The library fetches for one caller at a time.  A caller that leaves lets its
 * job go on for a part of a second; the job has the place until then, and a
 * message that comes too late is refused, so that the server gives it to
 * another taker.
 *
 * A message refers to its subscription, without a reference that the library
 * counts.
 *
 * **Invariants**
 *   NATS2  A job that reports a message as done has one of the permits of
 *	    `dones` until it is freed.  The subscription is destroyed when all
 *	    are back.
 */
#include <weft/nats.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/nats/job.h"

enum { FETCH_MS = 200 };

struct weft_nats_queue {
	struct weft_nats *nats;
	natsSubscription *subscription;
	char *subject;		/* immutable */
	struct weft_sem place;	/* one fetches */
	struct weft_sem dones;	/* NATS2 */
};

/* ---- Life ---- */

static natsStatus make_stream(struct job *job)
{
	const char *subjects[] = { job->subject };
	jsStreamConfig config;
	jsErrCode error = 0;
	natsStatus status = jsStreamConfig_Init(&config);

	if (status != NATS_OK)
		return status;
	config.Name = job->text;
	config.Subjects = subjects;
	config.SubjectsLen = 1;
	config.Retention = js_WorkQueuePolicy;
	config.Storage = js_FileStorage;
	status = js_AddStream(NULL, job->nats->js, &config, NULL, &error);
	return error == JSStreamNameExistErr ? NATS_OK : status;
}

static natsStatus open_now(struct job *job)
{
	jsSubOptions options;
	natsStatus status = make_stream(job);

	if (status == NATS_OK)
		status = jsSubOptions_Init(&options);
	if (status != NATS_OK)
		return status;
	options.Stream = job->text;
	options.Config.Durable = job->text;
	options.Config.AckPolicy = js_AckExplicit;
	options.Config.AckWait = job->time_ns;
	return js_PullSubscribe(&job->opened, job->nats->js, job->subject,
				job->text, NULL, &options, NULL);
}

static natsStatus destroy_now(struct job *job)
{
	natsSubscription_Destroy(job->owner);
	return NATS_OK;
}

/* In a shield; the jobs that use the subscription have ended. */
static void queue_free(struct weft_nats_queue *queue)
{
	weft__nats_job_always(queue->nats, destroy_now, queue->subscription);
	free(queue->subject);
	free(queue);
}

/* The subscription of the job becomes a queue.  Without memory the job frees
 * it. */
static int opened(struct weft_nats *nats, struct job *job,
		  struct weft_nats_queue **ret_queue)
{
	struct weft_nats_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	queue->nats = nats;
	queue->place = (struct weft_sem)WEFT_SEM_INIT(1);
	queue->dones = (struct weft_sem)WEFT_SEM_INIT(JOBS_MAX);
	queue->subject = job->subject;
	queue->subscription = job->opened;
	job->subject = NULL;
	job->opened = NULL;
	*ret_queue = queue;
	return 0;
}

int weft_nats_queue_open(struct weft_nats *nats, const char *name,
			 const char *subject, weft_nsec ack_wait_ns,
			 struct weft_nats_queue **ret_queue)
{
	bool left = false;
	struct job *job;
	int r = weft__nats_may_wait();

	if (r < 0)
		return r;
	if (!name || !subject)
		return -EINVAL;
	job = weft__nats_job(nats, open_now);
	if (!job)
		return -ENOMEM;
	job->time_ns = (int64_t)ack_wait_ns;
	r = weft__nats_job_arguments(job, subject, name, NULL, 0);
	r = weft__nats_job_run(job, r, &left);
	if (left)
		return r;
	if (r == 0)
		r = opened(nats, job, ret_queue);
	weft__nats_job_free(job);
	return r;
}

int weft_nats_queue_close(struct weft_nats_queue *queue)
{
	if (!queue)
		return 0;
	if (weft__nats_in_task() < 0)
		return -EPERM;
	WEFT_SHIELD {
		(void)!weft_sem_acquire(&queue->place, 1);
		(void)!weft_sem_acquire(&queue->dones, JOBS_MAX);
		queue_free(queue);
	}
	return 0;
}

/* ---- Messages ---- */

static natsStatus put_now(struct job *job)
{
	jsPubOptions options;
	jsPubAck *ack = NULL;
	natsStatus status = jsPubOptions_Init(&options);

	if (status != NATS_OK)
		return status;
	options.MsgId = job->text;
	status = js_Publish(&ack, job->nats->js, job->subject, job->data,
			    job->bytes, &options, NULL);
	jsPubAck_Destroy(ack);
	return status;
}

int weft_nats_queue_put(struct weft_nats_queue *queue, const void *data,
			size_t bytes, const char *id)
{
	struct job *job;
	int r = weft__nats_may_wait();

	if (r < 0)
		return r;
	job = weft__nats_job(queue->nats, put_now);
	if (!job)
		return -ENOMEM;
	r = weft__nats_job_arguments(job, queue->subject, id, data, bytes);
	return weft__nats_job_do(job, r);
}

static natsStatus take_now(struct job *job)
{
	struct weft_nats_queue *queue = job->owner;
	natsMsgList list = { NULL, 0 };
	natsStatus status = NATS_TIMEOUT;

	while (status == NATS_TIMEOUT && !atomic_load(&job->left))
		status = natsSubscription_Fetch(&list, queue->subscription, 1,
						FETCH_MS, NULL);
	if (status != NATS_OK)
		return status;
	job->message = list.Msgs[0];
	list.Msgs[0] = NULL;
	natsMsgList_Destroy(&list);
	if (atomic_load(&job->left))
		(void)natsMsg_Nak(job->message, NULL);
	return NATS_OK;
}

int weft_nats_queue_take(struct weft_nats_queue *queue, natsMsg **ret_message)
{
	bool left = false;
	struct job *job;
	int r = weft__nats_may_wait();

	if (r == 0)
		r = weft_sem_acquire(&queue->place, 1);
	if (r < 0)
		return r;
	job = weft__nats_job(queue->nats, take_now);
	if (!job) {
		weft_sem_release(&queue->place, 1);
		return -ENOMEM;
	}
	job->place = &queue->place;
	job->owner = queue;
	r = weft__nats_job_run(job, 0, &left);
	if (left)
		return r;
	if (r == 0) {
		*ret_message = job->message;
		job->message = NULL;
	}
	weft__nats_job_free(job);
	return r;
}

static natsStatus done_now(struct job *job)
{
	return natsMsg_AckSync(job->message, NULL, NULL);
}

int weft_nats_queue_done(struct weft_nats_queue *queue, natsMsg *message)
{
	struct job *job;
	int r = weft__nats_may_wait();

	job = r < 0 ? NULL : weft__nats_job(queue->nats, done_now);
	if (!job) {
		natsMsg_Destroy(message);
		return r < 0 ? r : -ENOMEM;
	}
	job->message = message;
	/* There are as many as jobs. */
	r = weft_sem_try_acquire(&queue->dones, 1);
	if (r == 0)
		job->place = &queue->dones;
	return weft__nats_job_do(job, r);
}
