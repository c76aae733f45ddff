/* SPDX-License-Identifier: MIT */
/*
 * Subscriptions: a thread of the library sends each message to a channel, and
 * blocks while that is full.
 *
 * **Concurrency**: the library calls back on one thread at a time for a
 * subscription, and says when it does so no more.  The lock lets the callback
 * go of the struct before that is freed.  A connection that is lost before the
 * library knows whom to tell may call back once more, at any time: such a
 * struct is kept for good, without its channel.
 */
#include <weft/nats.h>

#include <errno.h>
#include <stdlib.h>

#include "adapters/nats/job.h"

struct weft_nats_subscription {
	struct weft_nats *nats;
	natsSubscription *subscription;
	struct weft_chan *chan; /* under lock; NULL: none any more */
	pthread_mutex_t lock;
	bool sends; /* under lock: a callback uses the channel */
	bool tells; /* the library will call ended() */
	struct weft_event ended;
	struct weft_nats_subscription *next; /* of those that are kept */
};

static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_nats_subscription *kept;

/* On a thread of the library. */
static void received(natsConnection *connection, natsSubscription *subscription,
		     natsMsg *message, void *arg)
{
	struct weft_nats_subscription *s = arg;
	struct weft_chan *chan;

	(void)connection, (void)subscription;
	pthread_mutex_lock(&s->lock);
	chan = s->chan;
	s->sends = true;
	pthread_mutex_unlock(&s->lock);
	if (!chan || weft_chan_send(chan, &message) < 0)
		natsMsg_Destroy(message);
	pthread_mutex_lock(&s->lock);
	s->sends = false;
	if (!s->chan)
		weft_event_set(&s->ended);
	pthread_mutex_unlock(&s->lock);
}

static void ended(void *arg)
{
	struct weft_nats_subscription *s = arg;

	pthread_mutex_lock(&s->lock);
	weft_event_set(&s->ended);
	pthread_mutex_unlock(&s->lock);
}

static natsStatus subscribe_now(struct job *job)
{
	struct weft_nats_subscription *s = job->owner;
	natsConnection *connection = job->nats->connection;
	natsStatus status;

	if (job->text)
		status = natsConnection_QueueSubscribe(
			&s->subscription, connection, job->subject, job->text,
			received, s);
	else
		status = natsConnection_Subscribe(
			&s->subscription, connection, job->subject, received,
			s);
	if (status != NATS_OK)
		return status;
	status = natsSubscription_SetOnCompleteCB(s->subscription, ended, s);
	s->tells = status == NATS_OK;
	if (!s->tells)
		return NATS_CONNECTION_CLOSED;
	/* So that a message that is published later finds it. */
	return natsConnection_Flush(connection);
}

static natsStatus unsubscribe_now(struct job *job)
{
	return natsSubscription_Unsubscribe(job->owner);
}

static natsStatus destroy_now(struct job *job)
{
	natsSubscription_Destroy(job->owner);
	return NATS_OK;
}

/* In a shield.  No callback runs, or will. */
static void subscription_free(struct weft_nats_subscription *s)
{
	if (s->subscription)
		weft__nats_job_always(s->nats, destroy_now, s->subscription);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* In a shield. */
static void subscription_end(struct weft_nats_subscription *s)
{
	weft__nats_job_always(s->nats, unsubscribe_now, s->subscription);
	weft_chan_close(s->chan);
	/* In a shield it returns only when that is so. */
	(void)!weft_event_wait(&s->ended);
	pthread_mutex_lock(&s->lock);
	pthread_mutex_unlock(&s->lock);
	subscription_free(s);
}

/* In a shield.  The same if the library tells no end. */
static void subscription_keep(struct weft_nats_subscription *s)
{
	bool sends;

	weft_chan_close(s->chan);
	pthread_mutex_lock(&s->lock);
	s->chan = NULL;
	sends = s->sends;
	pthread_mutex_unlock(&s->lock);
	if (sends)
		(void)!weft_event_wait(&s->ended);
	weft__nats_job_always(s->nats, destroy_now, s->subscription);
	pthread_mutex_lock(&kept_lock);
	s->next = kept;
	kept = s;
	pthread_mutex_unlock(&kept_lock);
}

int weft_nats_subscribe(struct weft_nats *nats, const char *subject,
			const char *group, struct weft_chan *chan,
			struct weft_nats_subscription **ret)
{
	struct weft_nats_subscription *s;
	struct job *job;
	int r = weft__nats_may_wait();

	if (r < 0)
		return r;
	s = calloc(1, sizeof(*s));
	job = s ? weft__nats_job(nats, subscribe_now) : NULL;
	if (!job) {
		free(s);
		return -ENOMEM;
	}
	s->nats = nats;
	s->chan = chan;
	pthread_mutex_init(&s->lock, NULL);
	job->owner = s;
	r = weft__nats_job_arguments(job, subject, group, NULL, 0);
	WEFT_SHIELD {
		r = weft__nats_job_do(job, r);
		if (r < 0 && s->tells)
			subscription_end(s);
		else if (r < 0 && s->subscription)
			subscription_keep(s);
		else if (r < 0)
			subscription_free(s);
	}
	if (r == 0)
		*ret = s;
	return r;
}

int weft_nats_unsubscribe(struct weft_nats_subscription *subscription)
{
	if (!subscription)
		return 0;
	if (weft__nats_in_task() < 0)
		return -EPERM;
	WEFT_SHIELD
		subscription_end(subscription);
	return 0;
}
