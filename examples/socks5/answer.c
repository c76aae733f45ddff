/* SPDX-License-Identifier: MIT */
/*
 * An answer: 05, a number, 00, kind of address, address, port.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "answer.h"
#include "target.h"

static unsigned char number_of(int error)
{
	static const struct {
		int error;
		unsigned char number;
	} table[] = {
		{ ENETUNREACH, 3 }, { EHOSTUNREACH, 4 }, { ECONNREFUSED, 5 },
		{ ETIMEDOUT, 4 },   { EOPNOTSUPP, 7 },	 { EAFNOSUPPORT, 8 },
		{ ENOENT, 4 },	    { ENODATA, 4 },	 { EAGAIN, 4 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].error == -error)
			return table[i].number;
	return 1; /* a general failure */
}

int answer_refused(struct weft_stream *client, int error)
{
	const unsigned char answer[10] = { 5, number_of(error), 0, KIND_IPV4 };

	return weft_stream_put(client, answer, sizeof(answer));
}

int answer_granted(struct weft_stream *client, int upstream)
{
	unsigned char answer[22] = { 5, 0, 0, KIND_IPV4 };
	struct weft_addr bound;
	size_t bytes = 10;

	if (weft_local_addr(upstream, &bound) < 0)
		return answer_refused(client, -EIO);
	if (weft_addr_family(&bound) == AF_INET6) {
		const struct sockaddr_in6 *in = (void *)&bound.storage;

		answer[3] = KIND_IPV6;
		memcpy(answer + 4, &in->sin6_addr, 16);
		memcpy(answer + 20, &in->sin6_port, 2);
		bytes = sizeof(answer);
	} else {
		const struct sockaddr_in *in = (void *)&bound.storage;

		memcpy(answer + 4, &in->sin_addr, 4);
		memcpy(answer + 8, &in->sin_port, 2);
	}
	return weft_stream_put(client, answer, bytes);
}
