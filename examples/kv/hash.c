/* SPDX-License-Identifier: MIT */
#include "hash.h"

static inline uint64_t turn(uint64_t word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static inline void mix(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = turn(v[1], 13) ^ v[0];
	v[3] = turn(v[3], 16) ^ v[2];
	v[0] = turn(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = turn(v[1], 17) ^ v[2];
	v[3] = turn(v[3], 21) ^ v[0];
	v[2] = turn(v[2], 32);
}

static inline void add(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	mix(v);
	v[0] ^= word;
}

uint64_t hash_bytes(const struct hash_seed *seed, struct bytes bytes)
{
	uint64_t v[4] = { seed->words[0] ^ 0x736f6d6570736575,
			  seed->words[1] ^ 0x646f72616e646f6d,
			  seed->words[0] ^ 0x6c7967656e657261,
			  seed->words[1] ^ 0x7465646279746573 };
	const char *at = bytes.at, *end = at + bytes.count;
	uint64_t last = bytes.count, word;

	for (; end - at >= 8; at += 8) {
		memcpy(&word, at, 8);
		add(v, word);
	}
	while (at < end)
		last = last << 8 | (unsigned char)*at++;
	add(v, last);
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		mix(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
