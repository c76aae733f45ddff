/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes socket addresses, as text and as a sockaddr.  Each address that is
 * accepted must have a text that fits, is cut off cleanly, and parses back into
 * an equal address.
 *
 *	clang-14 -g -O1 -fsanitize=fuzzer,address,undefined -std=c11
 *		-D_GNU_SOURCE -Iinclude -I. \
 *		tests/fuzz/fuzz_net_addr.c net/addr.c
 *	./a.out -max_len=512 -max_total_time=60
 */
#include <weft/addr.h>

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * Replaces the C library's functions: the interfaces are the same everywhere,
 * and there is no system call, which may make the kernel load a module.
 */
unsigned int if_nametoindex(const char *name)
{
	size_t bytes = strlen(name);

	if (bytes == 0 || bytes >= IF_NAMESIZE)
		abort();
	if (name[0] == 'l')
		return (unsigned int)bytes;
	errno = ENODEV;
	return 0;
}

static void must(bool holds)
{
	if (!holds)
		abort();
}

/* A text that is cut off returns the full length, and holds a prefix and a NUL;
 * nothing behind them is written. */
static void check_cut(const struct weft_addr *addr, const char *whole,
		      size_t room)
{
	size_t length = strlen(whole);
	char *cut = malloc(room + 1);

	must(cut != NULL);
	cut[room] = '#';
	must(weft_addr_format(addr, cut, room) == (int)length);
	must(cut[room] == '#');
	if (room > 0) {
		must(strlen(cut) == (length < room ? length : room - 1));
		must(strncmp(cut, whole, strlen(cut)) == 0);
	}
	free(cut);
}

static void check_addr(const struct weft_addr *addr, size_t room)
{
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr again;
	int n = weft_addr_format(addr, text, sizeof(text));

	must(n > 0 && (size_t)n < sizeof(text));
	must(strlen(text) == (size_t)n);
	must(weft_addr_equal(addr, addr));
	must((weft_addr_port(addr) < 0) ==
	     (weft_addr_family(addr) == AF_UNIX));
	check_cut(addr, text, room);

	must(weft_addr_from_sockaddr(weft_addr_sockaddr(addr),
				     weft_addr_sockaddr_bytes(addr),
				     &again) == 0);
	must(memcmp(addr, &again, sizeof(again)) == 0);

	if (strcmp(text, "unix:") == 0 || strcmp(text, "unix:@") == 0) {
		must(weft_addr_parse(text, &again) == -EINVAL);
		return;
	}
	must(weft_addr_parse(text, &again) == 0);
	must(weft_addr_equal(addr, &again) && weft_addr_equal(&again, addr));
}

static void check_text(const uint8_t *data, size_t size, size_t room)
{
	struct weft_addr addr, before;
	char *text = malloc(size + 1);

	must(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	memset(&before, 0xa5, sizeof(before));
	addr = before;
	if (weft_addr_parse(text, &addr) == 0)
		check_addr(&addr, room);
	else
		must(memcmp(&addr, &before, sizeof(addr)) == 0);
	free(text);
}

static void check_sockaddr(const uint8_t *data, size_t size, size_t room)
{
	struct weft_addr addr, before;
	/* The copy has exactly `size` bytes, so that reading one more is
	 * detected. */
	void *copy = malloc(size > 0 ? size : 1);

	must(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	memset(&before, 0xa5, sizeof(before));
	addr = before;
	if (weft_addr_from_sockaddr(copy, (socklen_t)size, &addr) == 0)
		check_addr(&addr, room);
	else
		must(memcmp(&addr, &before, sizeof(addr)) == 0);
	free(copy);
}

/* The first byte selects: its low bit what to read, the other bits where to
 * cut. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		check_sockaddr(data + 1, size - 1, data[0] >> 1);
	else
		check_text(data + 1, size - 1, data[0] >> 1);
	return 0;
}
