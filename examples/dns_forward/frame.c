/* SPDX-License-Identifier: MIT */
/* Messages over TCP: each behind its length, in two bytes. */
#include <errno.h>
#include <stdlib.h>

#include "message.h"
#include "upstream.h"

ssize_t message_read(int fd, uint8_t **ret_message, size_t bytes_max)
{
	uint8_t length[2];
	size_t bytes, done;
	int r = weft_read_all(fd, length, sizeof(length), &done);

	if (r < 0)
		return r == -ENODATA && done == 0 ? 0 : r;
	bytes = message_number(length);
	if (bytes < HEADER_BYTES || bytes > bytes_max)
		return -EMSGSIZE;
	*ret_message = malloc(bytes);
	if (!*ret_message)
		return -ENOMEM;
	r = weft_read_all(fd, *ret_message, bytes, NULL);
	if (r < 0)
		free(*ret_message);
	return r < 0 ? r : (ssize_t)bytes;
}

int message_write(int fd, const uint8_t *message, size_t bytes)
{
	uint8_t length[2] = { (uint8_t)(bytes >> 8), (uint8_t)bytes };
	int r = weft_send_all(fd, length, sizeof(length), MSG_MORE, NULL);

	return r < 0 ? r : weft_send_all(fd, message, bytes, 0, NULL);
}
