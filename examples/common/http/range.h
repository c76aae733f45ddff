/* SPDX-License-Identifier: MIT */
#ifndef HTTP_RANGE_H
#define HTTP_RANGE_H

#include <stdint.h>

#include "text.h"

struct range {
	uint64_t first;
	uint64_t bytes;
};

enum range_kind {
	RANGE_NONE,	     /* no range, several, or malformed: send all */
	RANGE_PART,	     /* send *ret_range */
	RANGE_UNSATISFIABLE, /* it lies after the end */
};

/* Reads the Range header of a request for a file of total bytes. */
enum range_kind range_parse(struct span header, uint64_t total,
			    struct range *ret_range);

#endif
