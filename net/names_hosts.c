/* SPDX-License-Identifier: MIT */
/*
 * Names, of the hosts file - the file as a table, which is read once for each
 * of its versions (names_ask.c).
 *
 * The text stays as it is in the file, but for the ends of words, which are
 * made NULs, and for capitals.  An entry is a name of a line: where it begins,
 * and where the line's address does.  Entries of a bucket are linked in the
 * order of the file.  An address is parsed when its name is found; a line whose
 * address cannot be parsed has no names.
 *
 * Concurrency: the task that asks owns a table.
 */
#include "net/names_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <weft/task.h>

#include "io/os/syscall.h"
#include "runtime/base/memory.h"

enum {
	CHUNK_BYTES = 64 << 10, /* between two pauses for other tasks */
	FILE_MAX = 1 << 30,	/* names behind it are not seen */
};

#define LEAF __attribute__((noinline))
#define NO_ENTRY UINT32_MAX

struct entry {
	uint32_t name, address; /* places in the text */
	uint32_t next;		/* of its bucket, or NO_ENTRY */
};

struct weft__hosts {
	char *text;
	size_t text_bytes; /* as allocated */
	struct entry *entries;
	uint32_t count, room;
	uint32_t *buckets;
	uint32_t buckets_count; /* a power of two */
};

/* ---- Reading ------------------------------------------------------------- */

static LEAF int file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static LEAF ssize_t file_read(int fd, char *to, size_t bytes)
{
	ssize_t n = read(fd, to, bytes);

	return n < 0 ? -errno : n;
}

/* The text ends with a line's end and a NUL.  A read that fails ends it. */
static int text_read(const struct weft_allocator *memory, int fd,
		     struct weft__hosts *hosts, size_t *ret_bytes)
{
	size_t bytes = 0;
	ssize_t n;

	do {
		size_t room = hosts->text_bytes;

		if (room < bytes + CHUNK_BYTES + 2) {
			size_t more = room * 2 + CHUNK_BYTES + 2;
			char *text = weft__memory_resize(memory, hosts->text,
							 room, more);

			if (!text)
				return -ENOMEM;
			hosts->text = text;
			hosts->text_bytes = more;
		}
		n = file_read(fd, hosts->text + bytes, CHUNK_BYTES);
		if (n > 0)
			bytes += (size_t)n;
		if (n == CHUNK_BYTES)
			(void)weft_yield();
	} while (n > 0 && bytes < FILE_MAX);
	hosts->text[bytes++] = '\n';
	hosts->text[bytes] = '\0';
	*ret_bytes = bytes;
	return 0;
}

/* ---- Entries ------------------------------------------------------------- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool ends_line(char c)
{
	return c == '\n' || c == '#' || c == '\0';
}

/* Ends a word with a NUL, in lower case.  Returns what followed it. */
static char word_end(char *word, char **ret_next)
{
	char *at = word, end;

	for (; !is_space(*at) && !ends_line(*at); at++)
		if (*at >= 'A' && *at <= 'Z')
			*at = (char)(*at - 'A' + 'a');
	end = *at;
	*at = '\0';
	*ret_next = end == '\0' ? at : at + 1;
	return end;
}

static int entry_add(const struct weft_allocator *memory,
		     struct weft__hosts *hosts, const char *address,
		     const char *name)
{
	if (hosts->count == hosts->room) {
		uint32_t room = hosts->room ? hosts->room * 2 : 16;
		struct entry *more =
			weft__memory_resize(memory, hosts->entries,
					    hosts->room * sizeof(*more),
					    room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		hosts->entries = more;
		hosts->room = room;
	}
	hosts->entries[hosts->count++] = (struct entry){
		.name = (uint32_t)(name - hosts->text),
		.address = (uint32_t)(address - hosts->text),
	};
	return 0;
}

/* Takes the line at *at, and moves it behind the line. */
static int line_take(const struct weft_allocator *memory,
		     struct weft__hosts *hosts, char **at)
{
	char *address = NULL, *word, *next = *at, end;
	int r = 0;

	do {
		word = next + strspn(next, " \t\r\v\f");
		if (ends_line(*word)) {
			end = *word;
			next = word + (end != '\0');
		} else {
			end = word_end(word, &next);
			if (address)
				r = entry_add(memory, hosts, address, word);
			else
				address = word;
		}
	} while (r == 0 && !ends_line(end));
	if (end == '#')
		next += strcspn(next, "\n");
	*at = next;
	return r;
}

/* A NUL in the file ends its line. */
static int lines_take(const struct weft_allocator *memory,
		      struct weft__hosts *hosts, size_t bytes)
{
	char *at = hosts->text, *end = at + bytes;
	char *pause = at + CHUNK_BYTES;
	int r = 0;

	while (r == 0 && at < end) {
		if (*at == '\0' || *at == '\n')
			at++;
		else
			r = line_take(memory, hosts, &at);
		if (at >= pause) {
			pause = at + CHUNK_BYTES;
			(void)weft_yield();
		}
	}
	return r;
}

static uint32_t hash_of(const char *name, size_t bytes)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ (uint8_t)name[i]) * 16777619u;
	return hash ^ hash >> 16;
}

/* From the last entry to the first, so that a bucket has the file's order. */
static int buckets_make(const struct weft_allocator *memory,
			struct weft__hosts *hosts)
{
	uint32_t count = 16;

	while (count < hosts->count)
		count *= 2;
	hosts->buckets = weft__memory_new(memory, count * sizeof(uint32_t));
	if (!hosts->buckets)
		return -ENOMEM;
	hosts->buckets_count = count;
	memset(hosts->buckets, 0xff, count * sizeof(uint32_t));
	for (uint32_t i = hosts->count; i-- > 0;) {
		struct entry *entry = &hosts->entries[i];
		const char *name = hosts->text + entry->name;
		uint32_t *first = &hosts->buckets[hash_of(name, strlen(name)) &
						  (count - 1)];

		entry->next = *first;
		*first = i;
	}
	return 0;
}

/* ---- Calls --------------------------------------------------------------- */

void weft__hosts_free(const struct weft_allocator *memory,
		      struct weft__hosts *hosts)
{
	if (!hosts)
		return;
	weft__memory_free(memory, hosts->text, hosts->text_bytes);
	weft__memory_free(memory, hosts->entries,
			  hosts->room * sizeof(*hosts->entries));
	weft__memory_free(memory, hosts->buckets,
			  hosts->buckets_count * sizeof(uint32_t));
	weft__memory_free(memory, hosts, sizeof(*hosts));
}

int weft__hosts_read(const struct weft_allocator *memory, const char *path,
		     struct weft__hosts **ret_hosts)
{
	struct weft__hosts *hosts;
	size_t bytes;
	int fd = file_open(path), r;

	*ret_hosts = NULL;
	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? fd : 0;
	hosts = weft__memory_zeroed(memory, sizeof(*hosts));
	r = hosts ? text_read(memory, fd, hosts, &bytes) : -ENOMEM;
	weft__syscall_close(fd);
	if (r == 0)
		r = lines_take(memory, hosts, bytes);
	if (r == 0)
		r = buckets_make(memory, hosts);
	if (r < 0) {
		weft__hosts_free(memory, hosts);
		return r;
	}
	*ret_hosts = hosts;
	return 0;
}

static int address_parse(const char *text, struct weft_addr *ret_addr)
{
	char whole[WEFT_ADDR_TEXT_BYTES];
	size_t bytes = strlen(text);
	bool six = strchr(text, ':') != NULL;

	if (bytes + sizeof("[]:0") > sizeof(whole))
		return -EINVAL;
	whole[0] = '[';
	memcpy(whole + six, text, bytes);
	memcpy(whole + six + bytes, six ? "]:0" : ":0", six ? 4 : 3);
	return weft_addr_parse(whole, ret_addr);
}

/* Adds an address, if it can be parsed and is of the family: 1 or 0. */
static unsigned addr_add(const char *text, int family, struct weft_addr *addr)
{
	if (address_parse(text, addr) < 0)
		return 0;
	return family == AF_UNSPEC || weft_addr_family(addr) == family;
}

/* RFC 6761, section 6.3: names of the loopback, whatever servers say. */
static bool is_localhost(const char *name, size_t bytes)
{
	const size_t own = sizeof("localhost") - 1;

	return bytes >= own &&
	       memcmp(name + bytes - own, "localhost", own) == 0 &&
	       (bytes == own || name[bytes - own - 1] == '.');
}

unsigned weft__hosts_find(const struct weft__hosts *hosts, const char *name,
			  int family, struct weft_addr *ret_addrs,
			  unsigned addrs_max)
{
	size_t bytes = strlen(name);
	unsigned count = 0;
	uint32_t at = NO_ENTRY;

	/* A complete name. */
	if (bytes > 1 && name[bytes - 1] == '.')
		bytes--;
	if (hosts)
		at = hosts->buckets[hash_of(name, bytes) &
				    (hosts->buckets_count - 1)];
	while (at != NO_ENTRY && count < addrs_max) {
		const struct entry *entry = &hosts->entries[at];
		const char *own = hosts->text + entry->name;

		if (strncmp(own, name, bytes) == 0 && own[bytes] == '\0')
			count += addr_add(hosts->text + entry->address, family,
					  &ret_addrs[count]);
		at = entry->next;
	}
	if (count > 0 || !is_localhost(name, bytes))
		return count;
	if (addrs_max > 0)
		count += addr_add("127.0.0.1", family, &ret_addrs[0]);
	if (addrs_max > count)
		count += addr_add("::1", family, &ret_addrs[count]);
	return count;
}
