/* SPDX-License-Identifier: MIT */
/*
 * Dates as HTTP writes them: "Sun, 06 Nov 1994 08:49:37 GMT".
 */
#ifndef HTTP_DATE_H
#define HTTP_DATE_H

#include <stdbool.h>
#include <time.h>

#include "text.h"

/* The text of the date that was used last, so that each second is formatted
 * once.  Start with all bytes zero. */
struct date {
	time_t second;
	char text[30];
};

time_t date_now(void);

/* The result is valid until the next call with date.  It is empty if the year
 * is after 9999. */
const char *date_text(struct date *date, time_t second);

bool date_parse(struct span text, time_t *ret_second);

#endif
