/* SPDX-License-Identifier: MIT */
#ifndef WEFT_IO_FILE_H
#define WEFT_IO_FILE_H

/* A descriptor is new: what was known of the last file that had the number is
 * forgotten.  kind: an enum weft__fd_kind.  Returns fd. */
int weft__file_opened(int fd, int kind);

#endif
