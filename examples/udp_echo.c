/* SPDX-License-Identifier: MIT */
/*
 * udp_echo [ADDR] - a server that sends datagrams back to their senders.
 *
 * Shows	one socket that several tasks receive from.  Where the kernel
 *		can, datagrams that came together are one message (GRO), which
 *		goes back as it came (GSO), from the address to which it was
 *		sent.
 * Run		build/examples/udp_echo 127.0.0.1:7000 &  nc -u 127.0.0.1 7000
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { TASKS = 4, MESSAGES = 16, ROOM = 65535 };

static bool goes_on(int error)
{
	return error != -ECANCELED && error != -ETIMEDOUT && error != -EBADF;
}

/* A message that cannot be sent is lost, as a datagram may be. */
static int send_back(struct weft_udp *udp, struct weft_udp_msg *msgs, int count)
{
	int at = 0;

	while (at < count) {
		int n = weft_udp_send(udp, msgs + at, count - at, 0);

		if (n < 0 && !goes_on(n))
			return n;
		at += n < 0 ? 1 : n;
	}
	return 0;
}

static int64_t echo(void *arg)
{
	struct weft_udp *udp = *(struct weft_udp **)arg;
	struct weft_udp_msg *msgs = calloc(MESSAGES, sizeof(*msgs));
	char *room = malloc((size_t)MESSAGES * ROOM);
	int n = msgs && room ? 0 : -ENOMEM;

	for (int i = 0; n == 0 && i < MESSAGES; i++) {
		msgs[i].buf = room + (size_t)i * ROOM;
		msgs[i].room = ROOM;
	}
	while (n >= 0) {
		n = weft_udp_recv(udp, msgs, MESSAGES, 0);
		if (n > 0)
			n = send_back(udp, msgs, n);
	}
	free(room);
	free(msgs);
	return n;
}

static int64_t serve(void *arg)
{
	struct weft_udp *udp = arg;
	int64_t result = 0;

	WEFT_SCOPE(tasks, &result)
		for (int i = 0; i < TASKS; i++)
			if (WEFT_GO(tasks, echo, udp) < 0)
				weft_scope_fail(tasks, -ENOMEM);
	return result;
}

int main(int argc, char **argv)
{
	const char *address = argc > 1 ? argv[1] : "127.0.0.1:7000";
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_udp udp;
	int64_t result;
	int r;

	opts.coalesce = opts.want_local = true;
	r = weft_udp_open(&udp, address, &opts);
	if (r < 0) {
		fprintf(stderr, "udp_echo: cannot open %s: %s\n", address,
			strerror(-r));
		return 1;
	}
	printf("listening on %s\n",
	       weft_local_addr_text(weft_udp_fd(&udp), text));
	fflush(stdout);
	result = weft_run(serve, &udp, NULL);
	fprintf(stderr, "udp_echo: %s\n", strerror((int)-result));
	return 1;
}
