/* SPDX-License-Identifier: MIT */
/*
 * Datagrams, many with one system call.  Like syscall.h: -errno, no call waits,
 * and each is out of line.
 */
#ifndef WEFT_IO_OS_DATAGRAMS_H
#define WEFT_IO_OS_DATAGRAMS_H

#include <sys/socket.h>

/* How many messages were sent or received, at least one.  An error of a later
 * message is found by the next call.  Messages are without padding: all zero
 * where nothing is set.  The length of one that was received is that of the
 * whole datagram (MSG_TRUNC). */
int weft__datagrams_send(int fd, struct mmsghdr *messages, unsigned count);
int weft__datagrams_recv(int fd, struct mmsghdr *messages, unsigned count);

#endif
