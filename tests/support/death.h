/* SPDX-License-Identifier: MIT */
/*
 * The end of a process that does something fatal, in a child of fork().
 */
#ifndef WEFT_TESTS_SUPPORT_DEATH_H
#define WEFT_TESTS_SUPPORT_DEATH_H

#include <check.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/pipe.h"

/* How it ended, and what it said. */
struct death {
	int status;
	char text[2000];
};

/* Calls fn(arg), which is to be fatal; if it returns the child exits with 0. */
struct death death_of(void (*fn)(void *arg), void *arg);

#endif
