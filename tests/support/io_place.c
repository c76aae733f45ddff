/* SPDX-License-Identifier: MIT */
#include "tests/support/io_place.h"

#include <sys/sendfile.h>

#include "tests/support/errno_now.h"

static unsigned char stream_byte(uint64_t at)
{
	return (unsigned char)(at * 167 + (at >> 8) * 13 + (at >> 16) * 7);
}

void stream_fill(void *buf, size_t bytes, uint64_t at)
{
	unsigned char *to = buf;

	for (size_t i = 0; i < bytes; i++)
		to[i] = stream_byte(at + i);
}

void stream_check(const void *buf, size_t bytes, uint64_t at)
{
	const unsigned char *from = buf;

	for (size_t i = 0; i < bytes; i++)
		if (from[i] != stream_byte(at + i))
			ck_abort_msg("byte %" PRIu64 " of the stream is %d",
				     at + i, from[i]);
}

bool all_are(const unsigned char *from, size_t bytes, int value)
{
	for (size_t i = 0; i < bytes; i++)
		if (from[i] != value)
			return false;
	return true;
}

void fenced_init(struct fenced *fenced)
{
	memset(fenced, CANARY, sizeof(*fenced));
	memset(fenced->bytes, UNTOUCHED, SHORT_BYTES);
}

void fenced_check(const struct fenced *fenced, size_t bytes)
{
	EXPECT(all_are(fenced->before, FENCE_BYTES, CANARY));
	EXPECT(all_are(fenced->behind, FENCE_BYTES, CANARY));
	EXPECT(all_are(fenced->bytes + bytes, SHORT_BYTES - bytes, UNTOUCHED));
}

void peer_write(struct place *place, size_t bytes)
{
	unsigned char piece[SHORT_BYTES];

	stream_fill(piece, bytes, place->sent);
	EXPECT(write(place->peer, piece, bytes) == (ssize_t)bytes);
	place->sent += bytes;
}

void drain_some(struct place *place, int fd, size_t bytes)
{
	unsigned char piece[4096];
	ssize_t n;

	for (; bytes > 0; bytes -= (size_t)n) {
		n = read(fd, piece,
			 bytes < sizeof(piece) ? bytes : sizeof(piece));
		EXPECT(n > 0);
		stream_check(piece, (size_t)n, place->got);
		place->got += (uint64_t)n;
	}
}

int bytes_at(int fd)
{
	int bytes = 0;

	EXPECT(ioctl(fd, FIONREAD, &bytes) == 0);
	return bytes;
}

void drain(struct place *place, int fd)
{
	int bytes;

	while ((bytes = bytes_at(fd)) > 0)
		drain_some(place, fd, (size_t)bytes);
}

void stuff(struct place *place)
{
	unsigned char piece[4096];
	int flags = fcntl(place->fd, F_GETFL);
	size_t bytes = sizeof(piece);

	fcntl(place->fd, F_SETFL, flags | O_NONBLOCK);
	for (;;) {
		ssize_t n;

		stream_fill(piece, bytes, place->sent);
		n = write(place->fd, piece, bytes);
		if (n > 0) {
			place->sent += (uint64_t)n;
			continue;
		}
		EXPECT(errno_now() == EAGAIN);
		if (bytes == 1)
			break;
		bytes = 1;
	}
	fcntl(place->fd, F_SETFL, flags);
}

static void pipe_for(struct place *place, bool reads)
{
	int fds[2];

	EXPECT(pipe2(fds, O_CLOEXEC) == 0);
	fcntl(fds[1], F_SETPIPE_SZ, 4096);
	place->fd = fds[!reads];
	place->peer = fds[reads];
}

void empty_pipe_open(struct place *place)
{
	pipe_for(place, true);
}

void full_pipe_open(struct place *place)
{
	pipe_for(place, false);
	stuff(place);
}

void pair_open(struct place *place)
{
	int fds[2];

	socket_pair(fds);
	place->fd = fds[0];
	place->peer = fds[1];
}

void full_pair_open(struct place *place)
{
	pair_open(place);
	stuff(place);
}

void write_some(struct place *place)
{
	peer_write(place, SHORT_BYTES);
}

void read_it_all(struct place *place)
{
	drain_some(place, place->peer, (size_t)bytes_at(place->peer));
}

void reader_settle(struct place *place)
{
	if (place->fd >= 0) {
		drain(place, place->fd);
		EXPECT(place->got == place->sent);
	}
}

void writer_settle(struct place *place)
{
	drain(place, place->peer);
	EXPECT(place->got == place->sent);
}

int stream_file(void)
{
	int fd = memfd_create("stream", MFD_CLOEXEC);
	unsigned char *bytes;

	EXPECT(fd >= 0 && ftruncate(fd, 2 * LONG_BYTES) == 0);
	bytes = mmap(NULL, 2 * LONG_BYTES, PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(bytes != MAP_FAILED);
	stream_fill(bytes, 2 * LONG_BYTES, 0);
	EXPECT(munmap(bytes, 2 * LONG_BYTES) == 0);
	return fd;
}

void file_open(struct place *place)
{
	place->fd = stream_file();
}

void sending_open(struct place *place)
{
	full_pair_open(place);
	place->file = stream_file();
}

void sending_at_once_open(struct place *place)
{
	sending_open(place);
	if (place->bytes == SHORT_BYTES)
		place->bytes = 20000;
	EXPECT(fcntl(place->fd, F_SETFL, O_NONBLOCK) == 0);
}

bool sending_at_once_can_wait(void)
{
	struct place place = { .bytes = SHORT_BYTES };
	off_t offset = 0;

	sending_at_once_open(&place);
	return sendfile(place.fd, place.file, &offset, place.bytes) < 0;
}

void fifo_make(struct place *place)
{
	snprintf(place->address, sizeof(place->address), "/tmp/weft-fifo-%d",
		 (int)getpid());
	unlink(place->address);
	EXPECT(mkfifo(place->address, 0600) == 0);
}

void fifo_let_go(struct place *place)
{
	if (place->peer >= 0)
		return;
	place->peer = open(place->address, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	EXPECT(place->peer >= 0);
}

void fifo_settle(struct place *place)
{
	EXPECT(unlink(place->address) == 0);
}

void eventfd_make(struct place *place)
{
	place->fd = eventfd(0, EFD_CLOEXEC);
	EXPECT(place->fd >= 0);
}

void eventfd_let_go(struct place *place)
{
	uint64_t one = 1;

	EXPECT(write(place->fd, &one, sizeof(one)) == sizeof(one));
	place->offered++;
}

static bool has_come(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	return poll(&ready, 1, 0) == 1;
}

void eventfd_settle(struct place *place)
{
	uint64_t count = 0;

	if (place->fd < 0)
		return;
	if (has_come(place->fd))
		EXPECT(read(place->fd, &count, sizeof(count)) == sizeof(count));
	EXPECT(place->taken + count == place->offered);
}

int counted_signal(void)
{
	return SIGRTMIN + 3;
}

void signals_open(struct place *place)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, counted_signal());
	place->fd = weft_signal_open(&set);
	EXPECT(place->fd >= 0);
}

void signals_let_go(struct place *place)
{
	EXPECT(kill(getpid(), counted_signal()) == 0);
	place->offered++;
}

void signals_settle(struct place *place)
{
	struct timespec now = { 0 };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, counted_signal());
	while (sigtimedwait(&set, NULL, &now) > 0)
		place->taken++;
	EXPECT(place->taken == place->offered);
}

static void client_keep(struct place *place, int fd)
{
	EXPECT(fd >= 0 && place->clients_count < CLIENTS_MAX);
	place->clients[place->clients_count++] = fd;
}

int socket_for(struct place *place)
{
	int fd = socket(weft_addr_family(&place->addr),
			SOCK_STREAM | SOCK_CLOEXEC, 0);

	EXPECT(fd >= 0);
	return fd;
}

static int client_connect(struct place *place)
{
	int fd = socket_for(place);

	EXPECT(connect(fd, weft_addr_sockaddr(&place->addr),
		       weft_addr_sockaddr_bytes(&place->addr)) == 0);
	return fd;
}

void listener_open(struct place *place)
{
	place->fd = tcp_listener(place->address);
	EXPECT(weft_addr_parse(place->address, &place->addr) == 0);
}

void listener_let_go(struct place *place)
{
	client_keep(place, client_connect(place));
	place->offered++;
}

void listener_settle(struct place *place)
{
	if (place->fd < 0)
		return;
	while (place->taken < place->offered) {
		int fd = -1;

		WEFT_WITHIN (WEFT_SEC(20))
			fd = weft_accept(place->fd, NULL);
		EXPECT(fd >= 0 && weft_close(fd) == 0);
		place->taken++;
	}
	WEFT_WITHIN (WEFT_US(1))
		EXPECT(weft_accept(place->fd, NULL) == -ETIMEDOUT);
}

void crowd_open(struct place *place, int listener)
{
	EXPECT(listener >= 0);
	place->peer = listener;
	EXPECT(weft_local_addr(listener, &place->addr) == 0);
	EXPECT(weft_addr_format(&place->addr, place->address,
				sizeof(place->address)) > 0);
	for (int i = 0; i < 2; i++)
		client_keep(place, client_connect(place));
	EXPECT(fcntl(listener, F_SETFL, O_NONBLOCK) == 0);
}

void unix_crowd_open(struct place *place)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;
	char name[64];

	opts.backlog = 1;
	snprintf(name, sizeof(name), "unix:@weft-test-%d", (int)getpid());
	crowd_open(place, weft_unix_listen(name, &opts));
}

void tcp_crowd_open(struct place *place)
{
	struct weft_socket_opts opts = WEFT_SOCKET_OPTS_INIT;

	opts.backlog = 1;
	crowd_open(place, weft_tcp_listen("127.0.0.1:0", &opts));
}

void unix_socket_open(struct place *place)
{
	unix_crowd_open(place);
	place->fd = socket_for(place);
}

void tcp_socket_open(struct place *place)
{
	tcp_crowd_open(place);
	place->fd = socket_for(place);
}

bool crowd_shrink(struct place *place)
{
	int fd = accept4(place->peer, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return false;
	client_keep(place, fd);
	place->offered++;
	return true;
}

void crowd_let_go(struct place *place)
{
	(void)crowd_shrink(place);
}

void unix_crowd_settle(struct place *place)
{
	while (crowd_shrink(place))
		;
	EXPECT(place->offered == 2 + place->taken);
}

void clock_open(struct place *place)
{
	place->until_ns =
		weft_now() + (place->soon_ns ? place->soon_ns : WEFT_SEC(3600));
}

void clock_let_go(struct place *place)
{
	weft__store(&place->let_go, true, release);
	if (place->soon_ns)
		EXPECT(weft_sleep_until(place->until_ns) == 0);
}

void event_let_go(struct place *place)
{
	weft__store(&place->let_go, true, release);
	weft_event_set(&place->event);
}

int64_t wait_for_event(void *arg)
{
	struct place *place = *(struct place **)arg;

	WEFT_SHIELD
		EXPECT(weft_event_wait(&place->event) == 0);
	return 0;
}

void place_scope_begin(struct place *place)
{
	place->scope = aligned_alloc(_Alignof(struct weft_scope),
				     sizeof(*place->scope));
	EXPECT(place->scope && weft_supervisor_begin(place->scope) == 0);
}

void full_scope_open(struct place *place)
{
	place_scope_begin(place);
	EXPECT(weft_scope_limit(place->scope, 1) == 0);
	EXPECT(WEFT_GO(place->scope, wait_for_event, place) == 0);
}

void place_init(struct place *place)
{
	*place = (struct place){ .fd = -1,
				 .peer = -1,
				 .file = -1,
				 .bytes = SHORT_BYTES,
				 .event = WEFT_EVENT_INIT };
	fenced_init(&place->in[0]);
	fenced_init(&place->in[1]);
	place->into = &place->in[0];
}

void place_close(struct place *place)
{
	int fds[] = { place->fd, place->peer, place->file };

	if (place->scope) {
		event_let_go(place);
		weft_scope_cancel(place->scope);
		EXPECT(weft_scope_end(place->scope) == 0);
		free(place->scope);
	}
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			EXPECT(weft_close(fds[i]) == 0);
	while (place->clients_count)
		EXPECT(weft_close(place->clients[--place->clients_count]) == 0);
}
