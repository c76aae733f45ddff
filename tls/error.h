/* SPDX-License-Identifier: MIT */
/*
 * Error - what OpenSSL says in the error queue of the thread, as an error
 * number and a text.  Each call takes the whole queue, so that the next task on
 * the thread finds none.
 */
#ifndef WEFT_TLS_ERROR_H
#define WEFT_TLS_ERROR_H

#include <stddef.h>

/* Copies a text, as much of it as there is room for; room 0: nothing. */
void weft__tls_say(char *text, size_t room, const char *said);

/* Of a connection: never 0.  -ECONNRESET if the queue is empty. */
int weft__tls_error_take(char *text, size_t room);

/* Of a context: -ENOMEM, the error of a file, or `otherwise`. */
int weft__tls_error_take_setup(int otherwise, char *text, size_t room);

#endif
