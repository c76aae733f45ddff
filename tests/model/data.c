/* SPDX-License-Identifier: MIT */
/*
 * Data - accesses that are not atomic, and memory that is gone.
 *
 * An access to plain data is not a point of the schedule: whether two of them
 * race follows from happens-before alone, and every order of the atomic
 * operations around them is tried anyway.  Two accesses race when one writes
 * and neither happened before the other; to free memory is to write to it, and
 * so is to initialise an atomic location with a plain store.
 *
 * Accesses are announced by hand, with model_data_read() and so on, or by the
 * compiler: sources built with -fsanitize=thread, but linked without it, call
 * the functions at the end of this file.
 */
#include "tests/model/engine.h"

#include <string.h>

static struct datum *datum_find(uintptr_t word, bool make)
{
	size_t slot = (word * 0x9e3779b97f4a7c15u) >> (64 - DATA_SHIFT);
	struct datum *datum;

	while (engine.data_table[slot].generation == engine.generation) {
		datum = &engine.data[engine.data_table[slot].index];
		if (datum->word == word)
			return datum;
		slot = (slot + 1) % (1u << DATA_SHIFT);
	}
	if (!make)
		return NULL;
	if (engine.data_n == DATA_MAX)
		engine_violation(NULL, "more than %d words of data", DATA_MAX);
	engine.data_table[slot].generation = engine.generation;
	engine.data_table[slot].index = (uint16_t)engine.data_n;
	datum = &engine.data[engine.data_n++];
	*datum = (struct datum){ .word = word };
	return datum;
}

static _Noreturn void race(uintptr_t address, const char *what,
			   const char *while_what, unsigned other)
{
	engine_violation(thread_current()->where, "%s: T%u %s %s while T%u %s "
			 "it", strcmp(what, "frees") ? "data race" :
						       "use after free",
			 engine.current, what, trace_name(address), other,
			 while_what);
}

/* Of one byte of a word: a conflicting access that did not happen before
 * races. */
static inline void byte_check(const struct datum *datum, unsigned byte,
			      bool write, const char *what)
{
	const struct thread *thread = thread_current();
	unsigned writer = datum->writer[byte];

	if (writer && thread->now[writer - 1] < datum->write_time[byte])
		race(datum->word * 8 + byte, what, "writes", writer - 1);
	if (!write || !clock_misses(thread->now, datum->reads[byte]))
		return;
	for (unsigned i = 0; i < engine.threads_n; i++)
		if (thread->now[i] < datum->reads[byte][i])
			race(datum->word * 8 + byte, what, "reads", i);
}

static void word_read(struct datum *datum, unsigned byte, unsigned end)
{
	int16_t time = thread_current()->time;

	for (; byte < end; byte++) {
		byte_check(datum, byte, false, "reads");
		datum->reads[byte][engine.current] = time;
	}
}

static void word_write(struct datum *datum, unsigned byte, unsigned end)
{
	int16_t time = thread_current()->time;

	for (; byte < end; byte++) {
		byte_check(datum, byte, true, "writes");
		datum->writer[byte] = (uint8_t)(engine.current + 1);
		datum->write_time[byte] = time;
	}
}

static void data_access(uintptr_t address, size_t size, bool write)
{
	schedule_tick(thread_current());
	while (size > 0) {
		struct datum *datum = datum_find(address / 8, true);
		unsigned byte = address % 8;
		unsigned n = 8 - byte < size ? 8 - byte : (unsigned)size;

		if (write)
			word_write(datum, byte, byte + n);
		else
			word_read(datum, byte, byte + n);
		address += n;
		size -= n;
	}
}

/* A plain store to atomic locations: they start again from its value. */
static void data_initialise(uintptr_t address, size_t size, const char *what)
{
	const struct thread *thread = thread_current();

	for (unsigned i = 0; i < engine.locations_n; i++) {
		struct location *location = &engine.locations[i];

		if (engine.addresses[i] - address >= size ||
		    location->stores_n == 0)
			continue;
		for (unsigned j = 0; j < engine.threads_n; j++)
			if (thread->now[j] < location->used[j])
				race(location->address, what, "uses", j);
		schedule_touch((void *)location->address, WRITES);
		location->stores_n = 0;
	}
}

/* An atomic operation happens after any plain store to its location. */
void data_check_atomic(uintptr_t address)
{
	const struct datum *datum;

	if (engine.data_n == 0)
		return;
	datum = datum_find(address / 8, false);
	if (datum)
		byte_check(datum, address % 8, false, "uses");
}

void model_data_read_at(const volatile void *p, size_t size, const char *where)
{
	if (!engine.live)
		return;
	if (where)
		thread_current()->where = where;
	if (engine.tracing && where)
		trace_line("data      read %s", trace_name((uintptr_t)p));
	data_check_alive((uintptr_t)p);
	data_access((uintptr_t)p, size, false);
}

void model_data_write_at(const volatile void *p, size_t size, const char *where)
{
	if (!engine.live)
		return;
	if (where)
		thread_current()->where = where;
	if (engine.tracing && where)
		trace_line("data      write %s", trace_name((uintptr_t)p));
	data_check_alive((uintptr_t)p);
	data_initialise((uintptr_t)p, size, "writes");
	data_access((uintptr_t)p, size, true);
}

/* It is a violation if the address lies in freed memory. */
void data_check_alive(uintptr_t address)
{
	for (unsigned i = 0; i < engine.dead_n; i++)
		if (address >= engine.dead[i].start &&
		    address < engine.dead[i].end)
			engine_violation(thread_current()->where,
					 "use after free: T%u uses %s",
					 engine.current, trace_name(address));
}

void model_free_at(const volatile void *p, size_t size, const char *where)
{
	uintptr_t start = (uintptr_t)p;

	if (engine.dead_n == DEAD_MAX)
		engine_violation(NULL, "more than %d freed objects", DEAD_MAX);
	if (engine.live) {
		thread_current()->where = where;
		data_check_alive(start);
		data_initialise(start, size, "frees");
		for (unsigned i = 0; i < engine.data_n; i++) {
			const struct datum *datum = &engine.data[i];

			for (unsigned j = 0; j < 8; j++)
				if (datum->word * 8 + j - start < size)
					byte_check(datum, j, true, "frees");
		}
		schedule_touch(NULL, EVERYTHING);
	}
	if (engine.tracing)
		trace_line("free      %s", trace_name(start));
	engine.dead[engine.dead_n++] = (struct dead){ start, start + size };
}

/* The memory in the range is in use again, and its past is forgotten. */
void model_renew(const volatile void *p, size_t size)
{
	uintptr_t start = (uintptr_t)p, end = start + size;
	unsigned n = 0;

	for (unsigned i = 0; i < engine.dead_n; i++) {
		struct dead dead = engine.dead[i];

		if (dead.start >= end || dead.end <= start)
			engine.dead[n++] = dead;
	}
	engine.dead_n = n;
	if (!engine.live)
		return;
	schedule_touch(NULL, EVERYTHING);
	for (unsigned i = 0; i < engine.locations_n; i++)
		if (engine.locations[i].address - start < size)
			location_renew(&engine.locations[i]);
	for (unsigned i = 0; i < engine.data_n; i++) {
		struct datum *datum = &engine.data[i];

		if (datum->word * 8 + 7 >= start && datum->word * 8 < end)
			*datum = (struct datum){ .word = datum->word };
	}
}

/* --- The functions that the compiler calls with -fsanitize=thread -------- */

#define ACCESSES(size)                                                       \
	void __tsan_read##size(void *p);                                     \
	void __tsan_write##size(void *p);                                    \
	void __tsan_unaligned_read##size(void *p);                           \
	void __tsan_unaligned_write##size(void *p);                          \
	void __tsan_read##size(void *p)                                      \
	{                                                                    \
		model_data_read_at(p, size, NULL);                           \
	}                                                                    \
	void __tsan_write##size(void *p)                                     \
	{                                                                    \
		model_data_write_at(p, size, NULL);                          \
	}                                                                    \
	void __tsan_unaligned_read##size(void *p)                            \
	{                                                                    \
		model_data_read_at(p, size, NULL);                           \
	}                                                                    \
	void __tsan_unaligned_write##size(void *p)                           \
	{                                                                    \
		model_data_write_at(p, size, NULL);                          \
	}

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(void *p, size_t size);
void __tsan_write_range(void *p, size_t size);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *p, size_t size)
{
	model_data_read_at(p, size, NULL);
}

void __tsan_write_range(void *p, size_t size)
{
	model_data_write_at(p, size, NULL);
}
