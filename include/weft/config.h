/* SPDX-License-Identifier: MIT */
/*
 * Used by every public header: visibility, C++ linkage, attributes, the
 * version.
 */
#ifndef WEFT_CONFIG_H
#define WEFT_CONFIG_H

#if !defined(__cplusplus) && \
	(!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
#error "weft needs C11 or later (-std=c11), or C++11"
#endif

#ifdef __cplusplus
#define WEFT_BEGIN_DECLS extern "C" {
#define WEFT_END_DECLS }
#else
#define WEFT_BEGIN_DECLS
#define WEFT_END_DECLS
#endif

#define WEFT_API __attribute__((visibility("default")))
#define WEFT_WARN_UNUSED __attribute__((warn_unused_result))
/* Tells the compiler that a block macro, which is a loop, does run its
 * block. */
#define WEFT__RETURNS_NONNULL __attribute__((returns_nonnull))

#ifndef __cplusplus
/* Also the declaration without which this header alone would not be ISO C. */
_Static_assert(sizeof(int) >= 4, "weft's results need an int of 32 bits");
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

/* Casts in macros, which a program's own -Wold-style-cast sees: of a number; of
 * a pointer to a number; and of a pointer to one without const. */
#ifdef __cplusplus
#define WEFT__NUMBER(type, value) static_cast<type>(value)
#define WEFT__ADDRESS(pointer) reinterpret_cast<uintptr_t>(pointer)
#define WEFT__MUTABLE(pointer) \
	const_cast<void *>(static_cast<const void *>(pointer))
#else
#define WEFT__NUMBER(type, value) ((type)(value))
#define WEFT__ADDRESS(pointer) ((uintptr_t)(pointer))
#define WEFT__MUTABLE(pointer) ((void *)(uintptr_t)(pointer))
#endif

/* The size of a value; for a value that is too large an array of negative
 * length, which does not compile.  Values are copied under a small lock: send a
 * pointer to a large one. */
#define WEFT__ITEM_BYTES_MAX 4096u
#define WEFT__ITEM_BYTES(bytes) \
	((bytes) * sizeof(char[(bytes) <= WEFT__ITEM_BYTES_MAX ? 1 : -1]))

/* The number of elements of an array.  For a pointer, whose size is not that of
 * its array, it does not compile. */
#ifdef __cplusplus
template <typename T, decltype(sizeof(0)) n>
constexpr decltype(n) weft__elements_of_array(T (&)[n])
{
	return n;
}
#define WEFT__ELEMENTS(array) weft__elements_of_array(array)
#else
#define WEFT__ELEMENTS(array)                                                \
	(sizeof(array) / sizeof(*(array)) + 0 * sizeof(struct {              \
		 _Static_assert(!__builtin_types_compatible_p(               \
					__typeof__(array),                   \
					__typeof__(&(array)[0])),            \
				"the values need an array, not a pointer");  \
		 char weft__unused;                                          \
	 }))
#endif

/* A copied value must not be an array: that would copy a pointer to an array
 * that may be gone when the copy is used.  A string literal stays, so its
 * pointer is copied.  C finds an array by the type that it decays to: neither
 * its own nor, as for a function, that of its address. */
#define WEFT__NO_ARRAY                                                     \
	"the value is copied, but an array is not: pass &array[0], which " \
	"copies that pointer, or a struct that holds the array"
#ifdef __cplusplus
#define WEFT__CHECKED_VALUE(value) \
	weft__checked_value<__builtin_constant_p(value)>(value)
template <bool literal, typename T>
static inline T weft__checked_value(T weft__value)
{
	static_assert(__is_trivially_copyable(T),
		      "the value is copied byte by byte, and that is not "
		      "enough for its type: pass a pointer to it");
	return weft__value;
}
template <bool literal, typename T, decltype(sizeof(0)) n>
static inline T *weft__checked_value(T (&weft__value)[n])
{
	static_assert(literal, WEFT__NO_ARRAY);
	return weft__value;
}
#else
#define WEFT__CHECK_VALUE(value, copy)                                      \
	_Static_assert(__builtin_types_compatible_p(__typeof__(value),      \
						    __typeof__(copy)) ||    \
			       __builtin_types_compatible_p(                \
				       __typeof__(value) *,                 \
				       __typeof__(copy)) ||                 \
			       __builtin_constant_p(value),                 \
		       WEFT__NO_ARRAY)
#endif

/* A new name for each n, for the block macros.  They take n from __COUNTER__,
 * so that two of them may stand on one line. */
#define WEFT__PASTE2(a, b) a##b
#define WEFT__PASTE(a, b) WEFT__PASTE2(a, b)
#define WEFT__FRESH(name, n) WEFT__PASTE(weft__##name##_, n)

#endif
