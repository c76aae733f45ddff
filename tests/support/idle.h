/* SPDX-License-Identifier: MIT */
/*
 * A process that waits spends next to no processor time.
 */
#ifndef WEFT_TESTS_SUPPORT_IDLE_H
#define WEFT_TESTS_SUPPORT_IDLE_H

/* Waits for some windows of 200 ms, as a task or as a thread, until the process
 * spent next to nothing in one: other programs may make the same work dearer,
 * and a loop would take a processor in all of them.  Fails after 16, and says
 * what the last one was spent on. */
void expect_idle(void);

#endif
