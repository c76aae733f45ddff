/* SPDX-License-Identifier: MIT */
/*
 * The header fields of a request that matter here.
 */
#ifndef HTTPD_FIELD_H
#define HTTPD_FIELD_H

#include "request.h"

/* Where a request keeps the value of the field of that name, in whatever case;
 * NULL: it is ignored. */
struct span *field_find(struct request *request, struct span name);

/* The value without the white space that may follow it. */
struct span field_trim(struct span value);

#endif
