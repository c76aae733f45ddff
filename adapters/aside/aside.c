/* SPDX-License-Identifier: MIT */
/*
 * A function that blocks, on a thread of weft_blocking().
 *
 * A job of weft_blocking() is waited for in full.  So a task of the runtime
 * waits for it here, and the owner waits for that task's event: a deadline or a
 * cancellation ends that wait.  An owner that leaves passes the object on: the
 * runtime's task drops it when the function has returned.
 *
 * **Concurrency**: `done` and `left` are decided under the lock, so that one of
 * the two frees the object.  An owner that has waited for the event takes the
 * lock before it frees it, so that the task has let go of it.
 */
#include "adapters/aside/aside.h"

static int64_t run_on_thread(void *arg)
{
	struct aside *aside = arg;

	aside->run(aside);
	return 0;
}

static int64_t run_in_task(void *arg)
{
	struct aside *aside = *(struct aside **)arg;
	int error = (int)weft_blocking(run_on_thread, aside);
	bool left;

	pthread_mutex_lock(&aside->lock);
	left = aside->left;
	aside->done = true;
	aside->error = error;
	if (!left)
		weft_event_set(&aside->event);
	pthread_mutex_unlock(&aside->lock);
	if (left)
		aside->drop(aside);
	return 0;
}

void weft__aside_init(struct aside *aside, void (*run)(struct aside *),
			 void (*drop)(struct aside *))
{
	*aside = (struct aside){ .run = run, .drop = drop, .done = true };
	pthread_mutex_init(&aside->lock, NULL);
}

void weft__aside_fini(struct aside *aside)
{
	pthread_mutex_destroy(&aside->lock);
}

int weft__aside_start(struct aside *aside)
{
	struct weft_task_opts opts = WEFT_TASK_OPTS_INIT;
	int r;

	opts.name = "aside";
	aside->done = false;
	weft_event_clear(&aside->event);
	r = weft_submit(weft_runtime_self(), run_in_task, &aside, sizeof(aside),
			&opts);
	if (r < 0)
		aside->done = true;
	return r;
}

int weft__aside_wait(struct aside *aside)
{
	return weft_event_wait(&aside->event);
}

bool weft__aside_leave(struct aside *aside)
{
	bool done;

	pthread_mutex_lock(&aside->lock);
	done = aside->done;
	aside->left = !done;
	pthread_mutex_unlock(&aside->lock);
	return done;
}
