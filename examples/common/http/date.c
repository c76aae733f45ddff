/* SPDX-License-Identifier: MIT */
/*
 * Each connection keeps the texts that it used last, so threads share nothing
 * and there is no lock.  (A thread-local cache would also do, since nothing
 * here suspends: only across a suspending call its address must not be
 * kept.)
 */
#include "date.h"

#define DATE_FORMAT "%a, %d %b %Y %H:%M:%S GMT"

time_t date_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now.tv_sec;
}

const char *date_text(struct date *date, time_t second)
{
	struct tm tm;

	if (second == date->second && date->text[0])
		return date->text;
	date->second = second;
	if (!gmtime_r(&second, &tm) ||
	    strftime(date->text, sizeof(date->text), DATE_FORMAT, &tm) == 0)
		date->text[0] = '\0';
	return date->text;
}

bool date_parse(struct span text, time_t *ret_second)
{
	char string[sizeof("Sun, 06 Nov 1994 08:49:37 GMT")];
	const char *end;
	struct tm tm = { 0 };

	if (text.bytes != sizeof(string) - 1)
		return false;
	memcpy(string, text.at, text.bytes);
	string[text.bytes] = '\0';
	end = strptime(string, DATE_FORMAT, &tm);
	if (!end || *end)
		return false;
	*ret_second = timegm(&tm);
	return true;
}
