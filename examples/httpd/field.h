/* SPDX-License-Identifier: MIT */
/*
 * The header fields of a request that this server uses.
 */
#ifndef HTTPD_FIELD_H
#define HTTPD_FIELD_H

#include "request.h"

/* Where a request keeps the value of the field with that name; the case of the
 * name does not matter.  NULL if the field is ignored. */
struct span *field_find(struct request *request, struct span name);

/* The value without white space at its end. */
struct span field_trim(struct span value);

#endif
