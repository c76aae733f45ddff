/* SPDX-License-Identifier: MIT */
/*
 * The records behind the question.  A walk visits each, and stops where the
 * message is not as it should be.
 */
#include "message.h"

enum {
	TYPE_SOA = 6,
	TYPE_OPT = 41, /* of EDNS: it has no time to live */
	NO_NAME = 3,   /* a code */
	TTL_MAX = 3600,
};

struct walk {
	uint8_t *message;
	size_t bytes, at;
	unsigned left; /* records */
	unsigned type;
	size_t ttl; /* the places of the last one's */
	size_t data, data_bytes;
};

static struct walk walk_begin(const uint8_t *message, size_t bytes, size_t end)
{
	struct walk walk = {
		(uint8_t *)(uintptr_t)message, bytes, end, 0, 0, 0, 0, 0
	};

	for (int count = 6; count < HEADER_BYTES; count += 2)
		walk.left += message_number(message + count);
	return walk;
}

/* Moves behind a name, which may end in a pointer to another. */
static bool name_skip(struct walk *walk)
{
	while (walk->at < walk->bytes) {
		unsigned label = walk->message[walk->at++];

		if (label == 0)
			return true;
		if (label >= 0xc0)
			return walk->at++ < walk->bytes;
		if (label > 63)
			return false;
		walk->at += label;
	}
	return false;
}

/* Moves to the next record; false at the end, or if it is cut off. */
static bool walk_next(struct walk *walk)
{
	const uint8_t *message = walk->message;

	if (walk->left == 0 || !name_skip(walk) || walk->at + 10 > walk->bytes)
		return false;
	walk->type = message_number(message + walk->at);
	walk->ttl = walk->at + 4;
	walk->data = walk->at + 10;
	walk->data_bytes = message_number(message + walk->at + 8);
	walk->at = walk->data + walk->data_bytes;
	if (walk->at > walk->bytes)
		return false;
	walk->left--;
	return true;
}

static uint32_t seconds_at(const uint8_t *at)
{
	return (uint32_t)message_number(at) << 16 | message_number(at + 2);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* That there is no such name or address is good for as long as the SOA record
 * says (RFC 2308). */
uint32_t message_ttl(const uint8_t *answer, size_t bytes, size_t end)
{
	struct walk walk = walk_begin(answer, bytes, end);
	unsigned code = answer[3] & 0x0f;
	uint32_t ttl = TTL_MAX;
	bool any = false;

	if (answer[2] & 0x02 || (code != 0 && code != NO_NAME))
		return 0;
	while (walk_next(&walk)) {
		if (walk.type == TYPE_OPT)
			continue;
		any = true;
		ttl = least(ttl, seconds_at(answer + walk.ttl));
		if (walk.type == TYPE_SOA && walk.data_bytes >= 20)
			ttl = least(ttl, seconds_at(answer + walk.at - 4));
	}
	return any && walk.left == 0 && walk.at == bytes ? ttl : 0;
}

void message_age(uint8_t *answer, size_t bytes, size_t end, uint32_t seconds)
{
	struct walk walk = walk_begin(answer, bytes, end);

	while (walk_next(&walk)) {
		uint32_t ttl = seconds_at(answer + walk.ttl);

		if (walk.type == TYPE_OPT)
			continue;
		ttl = ttl > seconds ? ttl - seconds : 0;
		answer[walk.ttl] = (uint8_t)(ttl >> 24);
		answer[walk.ttl + 1] = (uint8_t)(ttl >> 16);
		answer[walk.ttl + 2] = (uint8_t)(ttl >> 8);
		answer[walk.ttl + 3] = (uint8_t)ttl;
	}
}
