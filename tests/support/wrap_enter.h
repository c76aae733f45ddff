/* SPDX-License-Identifier: MIT */
/*
 * Takes the place of io_uring_enter2() in a program that tests/meson.build
 * links so: also with a static liburing, and in a static program.
 */
#ifndef WEFT_TESTS_SUPPORT_WRAP_ENTER_H
#define WEFT_TESTS_SUPPORT_WRAP_ENTER_H

#include <signal.h>
#include <stddef.h>

/* Link-time optimization sees no use of it. */
__attribute__((used)) int
__wrap_io_uring_enter2(unsigned fd, unsigned to_submit, unsigned min_complete,
		       unsigned flags, sigset_t *sig, size_t sz);

#endif
