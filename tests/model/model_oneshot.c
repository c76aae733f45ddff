/* SPDX-License-Identifier: MIT */
/*
 * Model of oneshots (runtime/sync/oneshot.c).  The value is received, or the
 * receiver learns that none comes, or has left.  The last of the two to leave
 * frees the memory, once, and no thread touches it after that.  No task is left
 * asleep.
 */
#include "tests/model/waits.h"

enum { BYTES = 64, NOT_YET = 1 };

/* The memory of the only oneshot. */
static _Alignas(max_align_t) unsigned char memory[BYTES];
static unsigned freed;

static void *memory_new(size_t bytes)
{
	return bytes <= BYTES ? memory : NULL;
}

MODEL_UNSEEN static void memory_free(void *freed_memory)
{
	model_assert(freed_memory == memory && freed++ == 0,
		     "it is freed once");
	model_free(memory, BYTES);
}

#define weft__memory_new(from, bytes) ((void)(from), memory_new(bytes))
#define weft__memory_free(from, memory, bytes) \
	((void)(from), (void)(bytes), memory_free(memory))
#define memcpy copy_announced
#include "runtime/sync/oneshot.c"
#undef weft__memory_new
#undef weft__memory_free
#undef memcpy

static struct weft_oneshot *oneshot;
static struct model_event left;
static int64_t payload;
/* The results of the calls. */
static int send_result, recv_result;

static void setup(void *arg)
{
	(void)arg;
	waits_setup(3);
	memset(memory, 0, sizeof(memory));
	memset(&left, 0, sizeof(left));
	model_assert(weft_oneshot_new(sizeof(uint64_t), &oneshot) == 0,
		     "there is memory for one");
	freed = 0;
	payload = 0;
	send_result = recv_result = NOT_YET;
	model_name(memory, "oneshot");
	model_name(&payload, "payload");
}

/* Thread 0 receives, thread 1 sends. */
static void setup_foreign_0(void *arg)
{
	setup(arg);
	waits_foreign(0);
}

static void setup_foreign_1(void *arg)
{
	setup(arg);
	waits_foreign(1);
}

static void setup_foreign(void *arg)
{
	setup_foreign_0(arg);
	waits_foreign(1);
}

static void setup_elsewhere(void *arg)
{
	setup(arg);
	waits_elsewhere(1);
}

static __attribute__((noinline)) int recv_call(uint64_t *value)
{
	return weft_oneshot_recv(oneshot, value);
}

static __attribute__((noinline)) int try_call(uint64_t *value)
{
	return weft_oneshot_try_recv(oneshot, value);
}

static int recv_by(int (*call)(uint64_t *value))
{
	uint64_t value = 0;

	recv_result = call(&value);
	call_over();
	model_assert(recv_result != 0 || (value == 7 && payload == 5),
		     "the value comes, and what was before it");
	return recv_result;
}

/* Receives until it has the value, or is cancelled. */
static void recv_or_abandon(void)
{
	if (recv_by(recv_call) == -ECANCELED)
		weft_oneshot_abandon(oneshot);
}

/* The value may have come meanwhile. */
static void recv_or_try(void)
{
	if (recv_by(recv_call) == -ECANCELED && recv_by(try_call) == -EAGAIN)
		weft_oneshot_abandon(oneshot);
}

static void try_or(void (*otherwise)(void))
{
	if (recv_by(try_call) == -EAGAIN)
		otherwise();
}

static void abandon(void)
{
	weft_oneshot_abandon(oneshot);
}

static void send(void)
{
	const uint64_t value = 7;

	payload = 5;
	send_result = weft_oneshot_send(oneshot, &value);
}

THREAD(receives, recv_or_abandon();)
THREAD(receives_or_tries, recv_or_try();)
THREAD(tries_or_receives, try_or(recv_or_abandon);)
THREAD(tries_or_abandons, try_or(abandon);)
THREAD(abandons, abandon();)
THREAD(leaves, recv_or_abandon(); model_post(&left);)
THREAD(sends, send();)
THREAD(drops, weft_oneshot_drop(oneshot);)
THREAD(cancels_and_sends, cancel(0); send();)
THREAD(cancels_and_drops, cancel(0); weft_oneshot_drop(oneshot);)
/* The value comes only after the receiver has left. */
THREAD(cancels_and_sends_late, cancel(0); (void)model_wait(&left); send();)

static void check_freed(void *arg)
{
	(void)arg;
	tasks_check();
	model_assert(freed == 1, "who leaves last frees it");
}

static void check_sent(void *arg)
{
	check_freed(arg);
	model_assert(send_result == 0 || send_result == -EPIPE,
		     "it is sent, or the receiver has left");
	model_assert(recv_result != -EPIPE, "nothing was dropped");
	model_assert(recv_result != 0 || send_result == 0,
		     "who has received had not left");
}

static void check_received(void *arg)
{
	check_sent(arg);
	model_assert(send_result == 0 && recv_result == 0, "it was received");
}

static void check_left(void *arg)
{
	check_sent(arg);
	model_assert(send_result == -EPIPE && recv_result == -ECANCELED,
		     "who has left receives nothing");
}

static void check_dropped(void *arg)
{
	check_freed(arg);
	model_assert(recv_result != 0, "there is no value");
}

static void check_told(void *arg)
{
	check_freed(arg);
	model_assert(recv_result == -EPIPE, "it is told that none comes");
}

MODEL(send_meets_recv, setup, check_received, WAITS(3), receives, sends)
MODEL(send_meets_try, setup, check_received, WAITS(3), tries_or_receives, sends)
MODEL(send_meets_abandon, setup, check_sent, WAITS(3), abandons, sends)
MODEL(send_meets_try_and_abandon, setup, check_sent, WAITS(3),
      tries_or_abandons, sends)
MODEL(drop_meets_recv, setup, check_told, WAITS(3), receives, drops)
MODEL(drop_meets_try, setup, check_told, WAITS(3), tries_or_receives, drops)
MODEL(drop_meets_abandon, setup, check_dropped, WAITS(3), abandons, drops)

MODEL(send_meets_cancel, setup, check_sent, WAITS(3), receives, sends, cancel_0)
MODEL(send_meets_cancel_and_try, setup, check_sent, WAITS(3), receives_or_tries,
      sends, cancel_0)
MODEL(drop_meets_cancel, setup, check_dropped, WAITS(3), receives_or_tries,
      drops, cancel_0)
MODEL(send_after_cancel, setup, check_sent, WAITS(3), receives,
      cancels_and_sends)
MODEL(drop_after_cancel, setup, check_dropped, WAITS(3), receives,
      cancels_and_drops)
MODEL(a_cancelled_receiver_leaves, setup, check_left, WAITS(3), leaves,
      cancels_and_sends_late)

MODEL(thread_receives, setup_foreign_0, check_received, WAITS(3), receives,
      sends)
MODEL(thread_sends, setup_foreign_1, check_received, WAITS(3), receives, sends)
MODEL(thread_drops, setup_foreign_1, check_told, WAITS(3), receives, drops)
MODEL(threads_alone, setup_foreign, check_received, WAITS(3), receives, sends)
MODEL(runtimes_meet, setup_elsewhere, check_received, WAITS(3), receives, sends)

int main(void)
{
	const TTest *const tests[] = {
		send_meets_recv,
		send_meets_try,
		send_meets_abandon,
		send_meets_try_and_abandon,
		drop_meets_recv,
		drop_meets_try,
		drop_meets_abandon,
		send_meets_cancel,
		send_meets_cancel_and_try,
		drop_meets_cancel,
		send_after_cancel,
		drop_after_cancel,
		a_cancelled_receiver_leaves,
		thread_receives,
		thread_sends,
		thread_drops,
		threads_alone,
		runtimes_meet,
		NULL,
	};

	return kit_main("oneshot", tests);
}
