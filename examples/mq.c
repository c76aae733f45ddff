/* SPDX-License-Identifier: MIT */
/*
 * mq ADDR - ten processes do the jobs of a queue in a NATS server.  One of them
 * is killed while it works, and no job is lost.
 *
 * Shows	libweft-nats: a work queue of JetStream.  A job is in the queue
 *		until a process has done it: that of the killed process is given
 *		to another one.  The results are a queue, too, in which an id
 *		keeps a job that was done twice from being counted twice.
 * Run		nats-server -js -a 127.0.0.1 -p 7002 &
 *		build/examples/mq 127.0.0.1:7002
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nats/nats.h>
#include <weft/nats.h>
#include <weft/weft.h>

enum { PROCESSES = 10, JOBS = 500, KILLED_AFTER = 100 };

static pid_t workers[PROCESSES];

struct mq {
	struct weft_nats *nats;
	struct weft_nats_queue *jobs, *results;
};

static int mq_open(struct mq *mq, const char *address)
{
	natsOptions *options;
	char url[128];
	int r;

	snprintf(url, sizeof(url), "nats://%s", address);
	if (natsOptions_Create(&options) != NATS_OK ||
	    natsOptions_SetURL(options, url) != NATS_OK)
		return -1;
	if ((r = weft_nats_connect(options, &mq->nats)) < 0 ||
	    (r = weft_nats_queue_open(mq->nats, "jobs", "weft.jobs",
				      WEFT_SEC(1), &mq->jobs)) < 0)
		return r;
	return weft_nats_queue_open(mq->nats, "results", "weft.results",
				    WEFT_SEC(1), &mq->results);
}

static int mq_close(struct mq *mq, int r)
{
	weft_nats_queue_close(mq->results);
	weft_nats_queue_close(mq->jobs);
	weft_nats_close(mq->nats);
	return r;
}

/* A worker: the result first, so that a job that is done has one. */
static int64_t work(void *arg)
{
	struct mq mq = { NULL, NULL, NULL };
	natsMsg *job;
	char text[32];
	int r = mq_open(&mq, arg);

	while (r == 0 && (r = weft_nats_queue_take(mq.jobs, &job)) == 0) {
		snprintf(text, sizeof(text), "%.*s",
			 natsMsg_GetDataLength(job), natsMsg_GetData(job));
		r = weft_sleep(WEFT_MS(5));
		if (r == 0)
			r = weft_nats_queue_put(mq.results, text, strlen(text),
						text);
		if (r == 0)
			r = weft_nats_queue_done(mq.jobs, job);
		else
			natsMsg_Destroy(job);
	}
	return mq_close(&mq, r);
}

static int64_t lead(void *arg)
{
	struct mq mq = { NULL, NULL, NULL };
	natsMsg *result;
	char text[32];
	int r = mq_open(&mq, arg);

	for (int i = 0; i < JOBS && r == 0; i++) {
		snprintf(text, sizeof(text), "%d-%d", (int)getpid(), i);
		r = weft_nats_queue_put(mq.jobs, text, strlen(text), text);
	}
	for (int i = 0; i < JOBS && r == 0; i++) {
		if (i == KILLED_AFTER)
			kill(workers[0], SIGKILL);
		r = weft_nats_queue_take(mq.results, &result);
		if (r == 0)
			r = weft_nats_queue_done(mq.results, result);
	}
	if (r == 0)
		printf("%d jobs, %d processes, 1 killed, all done\n", JOBS,
		       PROCESSES);
	return mq_close(&mq, r);
}

int main(int argc, char **argv)
{
	int64_t result;

	if (argc != 2) {
		fprintf(stderr, "Usage: mq ADDR\n");
		return 2;
	}
	for (int i = 0; i < PROCESSES; i++) {
		workers[i] = fork();
		if (workers[i] == 0)
			_exit(weft_run(work, argv[1], NULL) < 0);
		if (workers[i] < 0)
			return 1;
	}
	result = weft_run(lead, argv[1], NULL);
	if (result < 0)
		fprintf(stderr, "mq: %s: %s\n", argv[1],
			strerror((int)-result));
	for (int i = 0; i < PROCESSES; i++) {
		kill(workers[i], SIGKILL);
		waitpid(workers[i], NULL, 0);
	}
	return result < 0;
}
