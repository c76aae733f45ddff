/* SPDX-License-Identifier: MIT */
#ifndef KV_HASH_H
#define KV_HASH_H

#include "bytes.h"

struct hash_seed {
	uint64_t words[2];
};

/* SipHash-1-3.  Without the seed no client can choose keys that collide, which
 * would make each look-up a search. */
uint64_t hash_bytes(const struct hash_seed *seed, struct bytes bytes);

#endif
