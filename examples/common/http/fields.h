/* SPDX-License-Identifier: MIT */
/*
 * The header fields of an answer, and the text of one without content.
 */
#ifndef HTTP_FIELDS_H
#define HTTP_FIELDS_H

#include "answer.h"
#include "date.h"

/* Start with all bytes zero. */
struct dates {
	struct date now;      /* for the Date header */
	struct date modified; /* for Last-Modified */
};

/* Writes the fields that do not depend on the version of HTTP, as lines: "Name:
 * value\r\n".  They fit in 8 KiB. */
void fields_put(struct text *out, const struct answer *answer,
		struct dates *dates);

/* Writes a body for an answer that has no other: "404 Not Found\n". */
void fields_put_note(struct text *out, int status);

/* Writes a status: "404 Not Found". */
void fields_put_status(struct text *out, int status);

#endif
