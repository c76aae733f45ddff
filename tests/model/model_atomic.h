/* SPDX-License-Identifier: MIT */
/*
 * Atomic operations as the model checker performs them.
 *
 * runtime/base/atomic.h includes this file instead of <stdatomic.h> when
 * WEFT__MODEL is defined, so that the real sources compile against the engine
 * unchanged.  weft__atomic(type) is the plain type; the engine knows a location
 * by its address and keeps the history of its stores.  The plain memory always
 * holds the newest value in modification order: setup and check_end functions,
 * and a debugger, see this value.
 *
 * An order that an operation does not allow (a release load) does not compile:
 * each kind of operation has its own set of enumerator names.
 */
#ifndef WEFT_TESTS_MODEL_MODEL_ATOMIC_H
#define WEFT_TESTS_MODEL_MODEL_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum model_order {
	MODEL_RELAXED,
	MODEL_ACQUIRE,
	MODEL_RELEASE,
	MODEL_ACQ_REL,
	MODEL_SEQ_CST,
};

enum model_rmw {
	MODEL_SWAP,
	MODEL_ADD,
	MODEL_SUB,
	MODEL_OR,
	MODEL_AND,
};

/* Which orders exist for which operation, by token pasting. */
enum {
	MODEL__LOAD_relaxed = MODEL_RELAXED,
	MODEL__LOAD_acquire = MODEL_ACQUIRE,
	MODEL__LOAD_seq_cst = MODEL_SEQ_CST,
	MODEL__STORE_relaxed = MODEL_RELAXED,
	MODEL__STORE_release = MODEL_RELEASE,
	MODEL__STORE_seq_cst = MODEL_SEQ_CST,
	MODEL__RMW_relaxed = MODEL_RELAXED,
	MODEL__RMW_acquire = MODEL_ACQUIRE,
	MODEL__RMW_release = MODEL_RELEASE,
	MODEL__RMW_acq_rel = MODEL_ACQ_REL,
	MODEL__RMW_seq_cst = MODEL_SEQ_CST,
};

uint64_t model_load(const volatile void *p, size_t size, int order,
		    const char *where);
void model_store(volatile void *p, size_t size, uint64_t value, int order,
		 const char *where);
uint64_t model_rmw(enum model_rmw op, volatile void *p, size_t size,
		   uint64_t operand, int order, const char *where);

/* The two orders of a compare-and-swap, and the size, in one argument. */
struct model_cas_kind {
	uint8_t size;
	uint8_t success;
	uint8_t failure;
};
bool model_cas(volatile void *p, void *expected, uint64_t desired,
	       struct model_cas_kind kind, const char *where);

/* Suspends the thread until something that it read has changed. */
void model_spin(const char *where);

/*
 * membarrier(): a seq_cst fence in the caller, and one in every other thread at
 * some moment during the call.
 */
void model_heavy_barrier_at(const char *where);
#define model_heavy_barrier() model_heavy_barrier_at(MODEL__WHERE)

#define MODEL__TEXT(x) #x
#define MODEL__LINE(x) MODEL__TEXT(x)
#define MODEL__WHERE __FILE__ ":" MODEL__LINE(__LINE__)

/* The comma makes it an rvalue, which drops const and volatile. */
#define MODEL__TYPE(p) __typeof__(((void)0, *(p)))
#define MODEL__BITS(p, v) ((uint64_t)(uintptr_t)(MODEL__TYPE(p))(v))
/* An assignment, not a cast: the result may be ignored without a warning. */
#define MODEL__VALUE(p, bits)                                                \
	(__extension__({                                                     \
		MODEL__TYPE(p) value__ __attribute__((unused));              \
		value__ = (MODEL__TYPE(p))(uintptr_t)(bits);                 \
	}))
#define MODEL__RMW(op, p, v, order)                                          \
	MODEL__VALUE(p, model_rmw(op, (p), sizeof(*(p)), MODEL__BITS(p, v),  \
				  MODEL__RMW_##order, MODEL__WHERE))
#define MODEL__CAS(p, expected, v, order, fail)                              \
	model_cas((p), (expected), MODEL__BITS(p, v),                        \
		  (struct model_cas_kind){ (uint8_t)sizeof(*(p)),            \
					   MODEL__RMW_##order, (fail) },     \
		  MODEL__WHERE)

#define weft__atomic(type) __typeof__(type)

#define weft__load(p, order)                                                 \
	MODEL__VALUE(p, model_load((p), sizeof(*(p)), MODEL__LOAD_##order,   \
				   MODEL__WHERE))
#define weft__store(p, v, order)                                             \
	model_store((p), sizeof(*(p)), MODEL__BITS(p, v),                    \
		    MODEL__STORE_##order, MODEL__WHERE)
#define weft__swap(p, v, order) MODEL__RMW(MODEL_SWAP, p, v, order)
#define weft__add(p, v, order) MODEL__RMW(MODEL_ADD, p, v, order)
#define weft__sub(p, v, order) MODEL__RMW(MODEL_SUB, p, v, order)
#define weft__or(p, v, order) MODEL__RMW(MODEL_OR, p, v, order)
#define weft__and(p, v, order) MODEL__RMW(MODEL_AND, p, v, order)
#define weft__cas(p, expected, v, order)                                     \
	MODEL__CAS(p, expected, v, order, MODEL_RELAXED)
#define weft__cas_acquire(p, expected, v, order)                             \
	MODEL__CAS(p, expected, v, order, MODEL_ACQUIRE)
#define weft__spin_hint() model_spin(MODEL__WHERE)

#endif
