/* SPDX-License-Identifier: MIT */
/*
 * FIFO - a transfer waits here until the FIFO is ready for it.
 *
 *	poll(2) says             the transfer
 *	ready                    is one of the ring, which finds it ready, too
 *	the other end is gone    has ended: nothing to read, or -EPIPE
 *	nothing                  waits for a poll of the ring
 *
 * A FIFO knows no call that does not wait (RWF_NOWAIT), but with O_NONBLOCK.
 * So the ring itself would leave the end of a FIFO to a thread of the kernel's,
 * and that keeps the file open until a moment after it has said so.  If the
 * task has closed it by then, the next to open the other end would still meet
 * this end, and lose what it writes.  Of two readers the slower may still be
 * left to such a thread.
 */
#ifndef WEFT_IO_FIFO_H
#define WEFT_IO_FIFO_H

#include "io/ring/request.h"

struct weft__fd;

enum weft__fifo {
	WEFT__FIFO_READY, /* the transfer is one for the ring */
	WEFT__FIFO_ENDED, /* it has a result */
	WEFT__FIFO_NOT,	  /* the descriptor is another file's by now */
};

/* The call has begun, and the descriptor was found to be a FIFO.  *ret_result
 * of an end: 0, an error of read(2) or write(2), -ECANCELED or -ETIMEDOUT; or
 * what another file gave.  May suspend, whatever it returns. */
enum weft__fifo weft__fifo_await(struct weft__fd *entry,
				 const struct weft__request *request,
				 ssize_t *ret_result);

#endif
