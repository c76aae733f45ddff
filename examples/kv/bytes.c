/* SPDX-License-Identifier: MIT */
#include "bytes.h"

bool bytes_number(struct bytes bytes, int64_t *ret_number)
{
	bool negative = bytes.count > 0 && bytes.at[0] == '-';
	const char *at = bytes.at + negative, *end = bytes.at + bytes.count;
	uint64_t limit = (uint64_t)INT64_MAX + negative, number = 0;

	if (at == end || (*at == '0' && bytes.count > 1))
		return false;
	for (; at < end; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (*at < '0' || *at > '9' || number > (limit - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = (int64_t)(negative ? -number : number);
	return true;
}

size_t number_print(int64_t number, char *text)
{
	uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
	char digits[NUMBER_BYTES], *at = digits + sizeof(digits);
	size_t count;

	do
		*--at = (char)('0' + rest % 10);
	while ((rest /= 10) > 0);
	if (number < 0)
		*--at = '-';
	count = (size_t)(digits + sizeof(digits) - at);
	memcpy(text, at, count);
	return count;
}
