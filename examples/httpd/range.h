/* SPDX-License-Identifier: MIT */
#ifndef HTTPD_RANGE_H
#define HTTPD_RANGE_H

#include <stdint.h>

#include "text.h"

struct range {
	uint64_t first;
	uint64_t bytes;
};

enum range_kind {
	RANGE_NONE,	     /* no range, several, or malformed: send it all */
	RANGE_PART,	     /* *ret_range is to be sent */
	RANGE_UNSATISFIABLE, /* it lies behind the end */
};

/* Reads the Range header of a request for something @total bytes long. */
enum range_kind range_parse(struct span header, uint64_t total,
			    struct range *ret_range);

#endif
