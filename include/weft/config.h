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

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

/* The size of a value; for a value that is too large an array of negative
 * length, which does not compile.  Values are copied under a small lock: send a
 * pointer to a large one. */
#define WEFT__ITEM_BYTES_MAX 4096u
#define WEFT__ITEM_BYTES(bytes) \
	((bytes) * sizeof(char[(bytes) <= WEFT__ITEM_BYTES_MAX ? 1 : -1]))

/* A new name for each n, for the block macros.  They take n from __COUNTER__,
 * so that two of them may stand on one line. */
#define WEFT__PASTE2(a, b) a##b
#define WEFT__PASTE(a, b) WEFT__PASTE2(a, b)
#define WEFT__FRESH(name, n) WEFT__PASTE(weft__##name##_, n)

#endif
