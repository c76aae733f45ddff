/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations, with the order of each spelled at its site.
 *
 * This is the only file that includes <stdatomic.h>. Everything shared between
 * threads goes through it, so that the same sources compile for the model
 * checker (tests/model), which explores every value a load may return.
 *
 *	weft__load(p, order)			relaxed acquire seq_cst
 *	weft__store(p, v, order)		relaxed release seq_cst
 *	weft__swap(p, v, order)			old value
 *	weft__add / sub / or / and(p, v, order)	old value
 *	weft__cas(p, &expected, v, order)	true when it stored v; never
 *						fails spuriously; on failure a
 *						relaxed load of the value found
 *	weft__cas_acquire(...)			the same, but acquire on failure
 *
 * There is no standalone fence: ThreadSanitizer does not model one.
 */
#ifndef WEFT_RUNTIME_BASE_ATOMIC_H
#define WEFT_RUNTIME_BASE_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#ifdef WEFT__MODEL
#include "tests/model/model_atomic.h"
#else

#include <stdatomic.h>

#define weft__atomic(type) _Atomic(type)

#define weft__load(p, order) atomic_load_explicit((p), memory_order_##order)
#define weft__store(p, v, order) \
	atomic_store_explicit((p), (v), memory_order_##order)
#define weft__swap(p, v, order) \
	atomic_exchange_explicit((p), (v), memory_order_##order)
#define weft__add(p, v, order) \
	atomic_fetch_add_explicit((p), (v), memory_order_##order)
#define weft__sub(p, v, order) \
	atomic_fetch_sub_explicit((p), (v), memory_order_##order)
#define weft__or(p, v, order) \
	atomic_fetch_or_explicit((p), (v), memory_order_##order)
#define weft__and(p, v, order) \
	atomic_fetch_and_explicit((p), (v), memory_order_##order)
#define weft__cas(p, expected, v, order)                         \
	atomic_compare_exchange_strong_explicit((p), (expected), \
						(v), memory_order_##order, \
						memory_order_relaxed)
#define weft__cas_acquire(p, expected, v, order)                 \
	atomic_compare_exchange_strong_explicit((p), (expected), \
						(v), memory_order_##order, \
						memory_order_acquire)

/* Hints to the core that this is a spin loop. */
static inline void weft__spin_hint(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#endif /* WEFT__MODEL */

#endif
