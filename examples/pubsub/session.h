/* SPDX-License-Identifier: MIT */
#ifndef PUBSUB_SESSION_H
#define PUBSUB_SESSION_H

#include <stdint.h>

/* The task of a connection; closes it at the end.  arg points to the
 * descriptor. */
int64_t session_run(void *arg);

#endif
