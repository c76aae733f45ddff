/* SPDX-License-Identifier: MIT */
/*
 * limiter [ADDR] - an echo server that sends at most 100 KiB a second.
 *
 * Shows	a token bucket: a semaphore whose permits are bytes, and a task
 *		that adds permits at each tick of an interval, up to a maximum.
 *		Connections take permits in turn, so that none starves.  While
 *		one waits for permits it is not read from, and TCP slows its
 *		peer down.
 * Run		build/examples/limiter 127.0.0.1:7000 &
 *		head -c 1M /dev/zero | nc -N 127.0.0.1 7000 | pv >/dev/null
 */
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

/* For all connections together. */
#define BURST_BYTES 16384u
#define BEAT_NS WEFT_MS(10)
#define BEAT_BYTES 1024u
/* The most that a connection takes in one turn, while the others wait. */
#define TURN_BYTES 1024u

static struct weft_sem tokens = WEFT_SEM_INIT(BURST_BYTES);

static int64_t refill(void *arg)
{
	struct weft_interval beat;
	int64_t beats;

	(void)arg;
	beats = weft_interval_init(&beat, BEAT_NS, WEFT_MISSED_SKIP);
	while (beats >= 0 && (beats = weft_interval_wait(&beat)) > 0) {
		/* The other tasks only take permits, so this much room
		 * remains. */
		uint64_t room = BURST_BYTES - weft_sem_count(&tokens);
		uint64_t due = (uint64_t)beats * BEAT_BYTES;

		weft_sem_release(&tokens, (uint32_t)(due < room ? due : room));
	}
	return beats;
}

static int64_t echo(void *arg)
{
	int fd = *(int *)arg;
	char buf[TURN_BYTES];
	ssize_t n;

	while ((n = weft_read(fd, buf, sizeof(buf))) > 0)
		if (weft_sem_acquire(&tokens, (uint32_t)n) < 0 ||
		    weft_write_all(fd, buf, (size_t)n, NULL) < 0)
			break;
	return weft_close(fd);
}

static int64_t serve(void *arg)
{
	int fd = -1, listener = *(int *)arg;

	WEFT_SUPERVISE(tasks) {
		fd = weft_go(tasks, refill, NULL, 0);
		while (fd >= 0 && (fd = weft_accept(listener, NULL)) >= 0)
			if (WEFT_GO(tasks, echo, fd) < 0)
				weft_close(fd);
		/* Otherwise the scope would wait for refill() without end. */
		weft_scope_cancel(tasks);
	}
	return fd;
}

int main(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	char text[WEFT_ADDR_TEXT_BYTES];
	int listener = weft_tcp_listen(address, NULL);
	int64_t result = listener;

	if (listener >= 0) {
		printf("listening on %s\n",
		       weft_local_addr_text(listener, text));
		fflush(stdout);
		result = weft_run(serve, &listener, NULL);
	}
	fprintf(stderr, "limiter: %s: %s\n", address, strerror((int)-result));
	return 1;
}
