/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the messages of examples/dns_forward.  Nothing is read or written
 * beyond a message; a query that was folded is the same one, and its failure is
 * an answer to it; an answer that has aged by its whole time is not kept.
 *
 *	clang-14 -g -O1 -fsanitize=fuzzer,address,undefined -std=c11
 *		-D_GNU_SOURCE -I. tests/fuzz/fuzz_dns_message.c \
 *		examples/dns_forward/message.c examples/dns_forward/records.c
 *	./a.out -max_len=512 -max_total_time=60
 */
#include <stdlib.h>
#include <string.h>

#include "examples/dns_forward/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* Memory that has no more. */
static uint8_t *copy_of(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	must(copy != NULL);
	memcpy(copy, data, size);
	return copy;
}

static void check_query(const uint8_t *data, size_t size)
{
	uint8_t *query = copy_of(data, size), *answer = copy_of(data, size);
	size_t end = message_query_end(query, size);

	if (end > 0) {
		must(end <= size && end >= HEADER_BYTES + 5);
		message_fold(query, end);
		must(message_query_end(query, size) == end);
		must(!message_answers(query, size, query, end));
		must(message_fail(answer, end) == end);
		must(message_answers(answer, end, query, end));
		must(message_ttl(answer, end, end) == 0);
	}
	free(answer);
	free(query);
}

static void check_answer(const uint8_t *data, size_t size)
{
	for (size_t end = HEADER_BYTES; end <= size; end++) {
		uint8_t *answer = copy_of(data, size);
		uint32_t ttl = message_ttl(answer, size, end);

		must(ttl <= 3600);
		message_age(answer, size, end, ttl);
		must(memcmp(answer, data, end) == 0);
		message_age(answer, size, end, UINT32_MAX);
		must(message_ttl(answer, size, end) == 0);
		free(answer);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_query(data, size);
	/* Each place may be the end of a question. */
	if (size >= HEADER_BYTES && size < 100)
		check_answer(data, size);
	return 0;
}
