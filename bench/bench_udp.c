/* SPDX-License-Identifier: MIT */
/*
 * How many datagrams does a second of processor time move?
 *
 *	bench_udp udp [--secs S] [--label weft|raw-gso]
 *
 * Method.  One task sends a batch of messages from one socket to another on the
 * loopback interface, and receives it there; again and again until the time is
 * over.  udp: 8 messages of 8 datagrams of 1200 bytes, which the kernel cuts
 * and joins (GSO, GRO).  udp_plain: 16 messages of one datagram of 100 bytes.
 * A figure is the number of datagrams that were received, divided by the
 * processor time of the process.  The label raw-gso does the same with
 * sendmmsg(2) and recvmmsg(2) in a thread, with headers that are made once.
 *
 * What would fool it: a small receive buffer (net.core.rmem_max) loses
 * datagrams, and they are not counted; so raw-gso asks for names, as an echo
 * needs them, and weft gives them always.  The kernel takes almost all of the
 * time: the ratio shows what is left.
 */
#include "bench/bench.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum { MESSAGES_MAX = 16, ROOM = 65536, BUFFER = 1 << 20 };

static struct {
	const char *secs;
} opt = { .secs = "2" };

static const struct load {
	const char *bench;
	int messages;
	size_t bytes, each; /* of a message, of a datagram */
} loads[] = {
	{ "udp", 8, 9600, 1200 },
	{ "udp_plain", 16, 100, 100 },
};

static char out_bufs[MESSAGES_MAX][ROOM], in_bufs[MESSAGES_MAX][ROOM];

static struct weft_udp in, out;

static void sockets_open(const struct load *load)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_addr addr;

	opts.receive_bytes = BUFFER;
	opts.coalesce = load->bytes > load->each;
	bench_must("weft_udp_open", weft_udp_open(&in, "127.0.0.1:0", &opts));
	bench_must("weft_udp_open", weft_udp_open(&out, "127.0.0.1:0", NULL));
	bench_must("address", weft_local_addr(weft_udp_fd(&in), &addr));
	bench_must("weft_udp_connect", weft_udp_connect(&out, &addr));
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t datagrams(const struct load *load, size_t bytes)
{
	return (bytes + load->each - 1) / load->each;
}

/* Rounds until the time is over; a round returns the datagrams it received. */
static void measure(const struct load *load,
		    uint64_t (*round)(const struct load *load))
{
	uint64_t end_ns = now_ns() + (uint64_t)(atof(opt.secs) * 1e9);
	uint64_t cpu0_ns = cpu_ns(), done = 0;

	do
		for (int i = 0; i < 64; i++)
			done += round(load);
	while (now_ns() < end_ns);
	emit(load->bench, (double)done * 1e9 / (double)(cpu_ns() - cpu0_ns),
	     "datagrams/cpu-s");
}

/* ---- weft ---------------------------------------------------------------- */

static struct weft_udp_msg out_msgs[MESSAGES_MAX], in_msgs[MESSAGES_MAX];

static uint64_t weft_round(const struct load *load)
{
	uint64_t done = 0;
	int sent = (int)bench_must("weft_udp_send",
				   weft_udp_send(&out, out_msgs, load->messages,
						 0));
	int n;

	for (int left = sent; left > 0; left -= n) {
		n = weft_udp_recv(&in, in_msgs, MESSAGES_MAX, MSG_DONTWAIT);
		if (n == -EAGAIN)
			break;
		bench_must("weft_udp_recv", n);
		for (int i = 0; i < n; i++)
			done += datagrams(load, in_msgs[i].bytes);
	}
	return done;
}

static int64_t weft_udp_all(void *arg)
{
	(void)arg;
	for (size_t k = 0; k < sizeof(loads) / sizeof(loads[0]); k++) {
		const struct load *load = &loads[k];

		sockets_open(load);
		for (int i = 0; i < MESSAGES_MAX; i++) {
			out_msgs[i] = (struct weft_udp_msg){
				.buf = out_bufs[i],
				.bytes = load->bytes,
				.segment_bytes = (unsigned)load->each,
			};
			in_msgs[i] = (struct weft_udp_msg){
				.buf = in_bufs[i],
				.room = ROOM,
			};
		}
		measure(load, weft_round);
		bench_must("weft_udp_close", weft_udp_close(&in));
		bench_must("weft_udp_close", weft_udp_close(&out));
	}
	return 0;
}

/* ---- raw-gso ------------------------------------------------------------- */

static union {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr aligned;
} out_controls[MESSAGES_MAX], in_controls[MESSAGES_MAX];

static struct iovec out_iovs[MESSAGES_MAX], in_iovs[MESSAGES_MAX];
static struct mmsghdr out_raw[MESSAGES_MAX], in_raw[MESSAGES_MAX];
static struct sockaddr_in in_names[MESSAGES_MAX];

static void raw_prepare(const struct load *load)
{
	uint16_t each = (uint16_t)load->each;

	for (int i = 0; i < MESSAGES_MAX; i++) {
		struct cmsghdr *control = &out_controls[i].aligned;

		out_iovs[i] = (struct iovec){ out_bufs[i], load->bytes };
		out_raw[i] = (struct mmsghdr){
			.msg_hdr = { .msg_iov = &out_iovs[i], .msg_iovlen = 1 },
		};
		if (load->bytes == load->each)
			continue;
		control->cmsg_level = IPPROTO_UDP;
		control->cmsg_type = UDP_SEGMENT;
		control->cmsg_len = CMSG_LEN(sizeof(each));
		memcpy(CMSG_DATA(control), &each, sizeof(each));
		out_raw[i].msg_hdr.msg_control = control;
		out_raw[i].msg_hdr.msg_controllen = CMSG_SPACE(sizeof(each));
	}
}

static void raw_expect(void)
{
	for (int i = 0; i < MESSAGES_MAX; i++) {
		in_iovs[i] = (struct iovec){ in_bufs[i], ROOM };
		in_raw[i] = (struct mmsghdr){
			.msg_hdr = {
				.msg_name = &in_names[i],
				.msg_namelen = sizeof(in_names[i]),
				.msg_iov = &in_iovs[i],
				.msg_iovlen = 1,
				.msg_control = &in_controls[i],
				.msg_controllen = sizeof(in_controls[i]),
			},
		};
	}
}

static uint64_t raw_round(const struct load *load)
{
	uint64_t done = 0;
	int sent = sendmmsg(weft_udp_fd(&out), out_raw,
			    (unsigned)load->messages, MSG_DONTWAIT);
	int n;

	if (sent < 0)
		bench_die("sendmmsg", -errno);
	for (int left = sent; left > 0; left -= n) {
		raw_expect();
		n = recvmmsg(weft_udp_fd(&in), in_raw, MESSAGES_MAX,
			     MSG_DONTWAIT, NULL);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			bench_die("recvmmsg", -errno);
		for (int i = 0; i < n; i++)
			done += datagrams(load, in_raw[i].msg_len);
	}
	return done;
}

static void raw_all(void)
{
	for (size_t k = 0; k < sizeof(loads) / sizeof(loads[0]); k++) {
		sockets_open(&loads[k]);
		raw_prepare(&loads[k]);
		measure(&loads[k], raw_round);
		close(weft_udp_fd(&in));
		close(weft_udp_fd(&out));
	}
}

int main(int argc, char **argv)
{
	const struct bench_option options[] = {
		{ "--secs", &opt.secs, false },
		{ NULL, NULL, false },
	};
	const char *what = bench_parse(argc, argv, options);

	if (strcmp(what, "udp") != 0)
		bench_die(what, -EINVAL);
	if (strcmp(out_label, "raw-gso") == 0)
		raw_all();
	else
		bench_run(weft_udp_all, NULL);
	return 0;
}
