/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the header of the PROXY protocol.  A header that is accepted needs
 * each of its bytes and none behind them, has fields within it, and is read
 * back equal after it was written.
 *
 *	clang-14 -g -O1 -fsanitize=fuzzer,address,undefined -std=c11
 *		-D_GNU_SOURCE -Iinclude -I. \
 *		tests/fuzz/fuzz_net_proxy.c net/proxy_header.c net/addr.c
 *	./a.out -max_len=600 -max_total_time=60
 */
#include <weft/serve.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* The copy has exactly `size` bytes, so that reading one more is detected. */
static ssize_t parse_exactly(const uint8_t *data, size_t size,
			     struct weft_proxy_header *ret_header,
			     uint8_t **ret_copy)
{
	*ret_copy = malloc(size > 0 ? size : 1);
	must(*ret_copy != NULL);
	if (size > 0)
		memcpy(*ret_copy, data, size);
	return weft_proxy_parse(*ret_copy, size, ret_header);
}

static size_t fields(const struct weft_proxy_header *header)
{
	struct weft_proxy_tlv tlv;
	size_t at = 0, sum = 0;

	while (weft_proxy_tlv_next(header, &at, &tlv)) {
		must((const uint8_t *)tlv.value + tlv.bytes <=
		     (const uint8_t *)header->tlvs + header->tlvs_bytes);
		sum += 3 + tlv.bytes;
	}
	return sum;
}

static void check_written(const struct weft_proxy_header *header)
{
	static uint8_t buf[70000];
	struct weft_proxy_header again;
	ssize_t n = weft_proxy_format(header, buf, sizeof(buf));

	must(n > 0 && weft_proxy_parse(buf, (size_t)n, &again) == n);
	must(again.version == header->version &&
	     again.local == header->local &&
	     weft_addr_equal(&again.source, &header->source) &&
	     weft_addr_equal(&again.target, &header->target) &&
	     again.tlvs_bytes == header->tlvs_bytes);
	must(!header->tlvs_bytes ||
	     memcmp(again.tlvs, header->tlvs, header->tlvs_bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct weft_proxy_header header, part;
	uint8_t *copy, *shorter;
	ssize_t n;

	memset(&header, 0xa5, sizeof(header));
	part = header;
	n = parse_exactly(data, size, &header, &copy);
	if (n <= 0) {
		must(n == -EAGAIN || n == -EBADMSG);
		must(memcmp(&header, &part, sizeof(header)) == 0);
	} else {
		must((size_t)n <= size);
		must(fields(&header) == header.tlvs_bytes);
		check_written(&header);
		must(parse_exactly(data, (size_t)n - 1, &part, &shorter) ==
		     -EAGAIN);
		free(shorter);
		must(parse_exactly(data, (size_t)n, &part, &shorter) == n);
		free(shorter);
	}
	free(copy);
	return 0;
}
