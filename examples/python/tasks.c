/* SPDX-License-Identifier: MIT */
/*
 * The task of ask.py.  Tasks are in C: Python has its own idea of threads and
 * of their stacks.  Python only starts tasks, and waits for them.
 */
#include <errno.h>

#include <weft/weft.h>

/* ask.py has the same struct, and owns all that it points to until the task has
 * ended. */
struct exchange {
	const char *address;
	const void *request;
	size_t request_bytes;
	void *answer;
	size_t answer_bytes; /* the room for it */
	weft_nsec within_ns;
};

/* Reads to the end of the stream. */
static int64_t receive(int fd, const struct exchange *exchange)
{
	size_t done;
	char more;
	int r = weft_read_all(fd, exchange->answer, exchange->answer_bytes,
			      &done);

	if (r == -ENODATA)
		return (int64_t)done;
	if (r < 0)
		return r;
	r = (int)weft_read(fd, &more, 1);
	return r > 0 ? -EMSGSIZE : r < 0 ? r : (int64_t)done;
}

static int64_t talk(const struct exchange *exchange)
{
	int fd = weft_tcp_connect(exchange->address, NULL);
	int64_t r;

	if (fd < 0)
		return fd;
	r = weft_send_all(fd, exchange->request, exchange->request_bytes, 0,
			  NULL);
	if (r == 0)
		r = weft_shutdown(fd, SHUT_WR);
	if (r == 0)
		r = receive(fd, exchange);
	weft_close(fd);
	return r;
}

/* Sends the request, and receives the answer; returns its length, or -errno. */
WEFT_API int64_t ask(void *arg);
int64_t ask(void *arg)
{
	const struct exchange *exchange = arg; /* weft's copy */
	int64_t r = -ETIMEDOUT;

	WEFT_WITHIN(exchange->within_ns)
		r = talk(exchange);
	return r;
}
