/* SPDX-License-Identifier: MIT */
#ifndef KV_TIMES_H
#define KV_TIMES_H

#include <stdbool.h>
#include <stdint.h>
#include <weft/time.h>

#define SECOND_NS INT64_C(1000000000)
#define MILLISECOND_NS INT64_C(1000000)

/* The point in time so many units from now; in the past if number is negative.
 * False: further away than times reach. */
bool time_after(int64_t number, int64_t unit_ns, weft_nsec *ret_time_ns);

#endif
