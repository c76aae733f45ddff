/* SPDX-License-Identifier: MIT */
/*
 * Socket addresses: IPv4, IPv6 and Unix, to and from text.
 *
 * No function here suspends, blocks on the network, looks up a host name or
 * keeps state: each may be called from any thread, in a task or outside a
 * runtime.  While one thread writes a struct weft_addr, no other may use it.
 *
 *	text                     address
 *	127.0.0.1:80             IPv4
 *	[::1]:80                 IPv6, always in brackets
 *	[fe80::1%eth0]:80        IPv6 with a scope: the name of an interface ...
 *	[fe80::1%2]:80           ... or, if it is all digits, its index
 *	:80                      any address, the same as [::]:80
 *	unix:/run/a.sock         Unix, a path; it may be relative
 *	/run/a.sock              the same; only an absolute path may stand alone
 *	unix:@name               Unix, abstract: a name without a file
 *
 * After "unix:", and only there, \xHH (two hexadecimal digits) stands for one
 * byte, so that every name can be written on one line; any other backslash
 * there is an error.  A path that stands alone is taken byte by byte.
 */
#ifndef WEFT_ADDR_H
#define WEFT_ADDR_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <weft/config.h>

WEFT_BEGIN_DECLS

/* An address, as a value: copy it and keep it where you like; there is nothing
 * to free.  All bytes zero mean "no address".  Fill it with weft_addr_parse()
 * or weft_addr_from_sockaddr(), which bring it into the form that
 * weft_addr_equal() compares. */
struct weft_addr {
	struct sockaddr_storage storage; /* all zero beyond its length */
	socklen_t bytes;		 /* of storage in use; 0: no address */
	uint32_t reserved;		 /* zero */
};

static_assert(sizeof(struct weft_addr) == 136,
	      "struct weft_addr is part of the ABI");

/* Enough room for the text of any address, with its NUL: the longest is a Unix
 * path of 108 bytes that all need an escape. */
#define WEFT_ADDR_TEXT_BYTES 448

/*
 * Reads an address from text, in one of the forms above, into *ret_addr.
 *
 * A port is decimal, 0 to 65535, and required; with 0, bind(2) picks a free
 * port.  Nothing may precede or follow the address, not even a space.  Numbers
 * (of an IPv4 address, a port or an index) have no leading zero, which some
 * programs read as octal.  (Spaces within a Unix name belong to the name.)
 * Host names are not looked up: "localhost" is -EINVAL, too.
 *
 * "[::]:80" includes IPv4 unless the socket is IPV6_V6ONLY.  The name of an
 * interface is looked up during the call; an index is not checked, and the
 * kernel refuses it later if there is no such interface.
 *
 * Returns 0, or, with *ret_addr unchanged:
 *   -EINVAL        the text is not an address, or a pointer is NULL
 *   -ENAMETOOLONG  a Unix path of more than 108 bytes, or an abstract name of
 *                  more than 107
 *   -ENODEV        no interface has the name given as scope
 *   -EMFILE, -ENFILE, -ENOMEM
 *                  the interface could not be looked up
 */
WEFT_API WEFT_WARN_UNUSED
int weft_addr_parse(const char *text, struct weft_addr *ret_addr);

/*
 * Writes an address as text, as snprintf() would: at most text_bytes with the
 * NUL, cut off where it does not fit, and always terminated unless text_bytes
 * is 0 (then text may be NULL).  WEFT_ADDR_TEXT_BYTES are always enough.
 *
 * weft_addr_parse() turns the text back into an equal address.  To keep that
 * true when interfaces change, a scope is written as its index; in a Unix name,
 * control characters, backslashes and the leading @ of a path are written as
 * \xHH.  Only the two addresses without a name do not parse: "unix:", of an
 * unbound Unix socket, and "unix:@", the empty abstract name.
 *
 * Returns the length of the whole text without its NUL, or -EINVAL, with an
 * empty text, if addr is NULL or holds no address of a known family.
 */
WEFT_API
int weft_addr_format(const struct weft_addr *addr, char *text,
		     size_t text_bytes);

/*
 * Takes over an address of bytes bytes from a system call or another library.
 * sockaddr is copied, need not be aligned, and is brought into one form: a
 * length beyond the end of the address is cut, padding is cleared.
 *
 * Returns 0, or, with *ret_addr unchanged: -EINVAL if a pointer is NULL, or
 * bytes is too small for the family or, for a Unix address, too large;
 * -EAFNOSUPPORT if the family is not IPv4, IPv6 or Unix.
 */
WEFT_API WEFT_WARN_UNUSED
int weft_addr_from_sockaddr(const struct sockaddr *sockaddr, socklen_t bytes,
			    struct weft_addr *ret_addr);

/* Returns the address in the form for system calls; its length is
 * weft_addr_sockaddr_bytes().  The result points into *addr and is valid as
 * long as that.  A path in it is NUL-terminated, if necessary by the byte after
 * that length. */
WEFT_API
const struct sockaddr *weft_addr_sockaddr(const struct weft_addr *addr);

/* Returns the length of weft_addr_sockaddr(addr); 0 if it is no address. */
WEFT_API
socklen_t weft_addr_sockaddr_bytes(const struct weft_addr *addr);

/* Returns AF_INET, AF_INET6, AF_UNIX, or AF_UNSPEC if addr is no address. */
WEFT_API
int weft_addr_family(const struct weft_addr *addr);

/* Returns the port, 0 to 65535, in the host's byte order, or -EAFNOSUPPORT if
 * addr has none: a Unix address, or no address. */
WEFT_API
int weft_addr_port(const struct weft_addr *addr);

/* Returns whether a and b are the same address: family, host, port and scope,
 * or the Unix name byte by byte.  An IPv6 flow label does not count, and IPv4
 * differs from the same address mapped into IPv6.  Two that are no address are
 * equal; so are two unnamed Unix addresses, though the sockets differ. */
WEFT_API
bool weft_addr_equal(const struct weft_addr *a, const struct weft_addr *b);

WEFT_END_DECLS

#endif /* WEFT_ADDR_H */
