/* SPDX-License-Identifier: MIT */
#ifndef CHAT_CLIENT_H
#define CHAT_CLIENT_H

#include <stdint.h>

/* The task of a connection; closes it at the end.  arg points to the
 * descriptor. */
int64_t client_run(void *arg);

#endif
