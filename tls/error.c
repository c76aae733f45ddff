/* SPDX-License-Identifier: MIT */
/*
 * Errors: OpenSSL's reasons as error numbers, which <weft/tls.h> lists.
 */
#include "tls/error.h"

#include <errno.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

/* The reason of an alert that came is its number and this. */
#define ALERT(number) (SSL_AD_REASON_OFFSET + (number))

void weft__tls_say(char *text, size_t room, const char *said)
{
	size_t bytes = strlen(said);

	if (!room)
		return;
	if (bytes >= room)
		bytes = room - 1;
	memcpy(text, said, bytes);
	text[bytes] = '\0';
}

static int error_of_reason(int reason)
{
	switch (reason) {
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
		return -EKEYREJECTED;
	case ALERT(SSL_AD_BAD_CERTIFICATE):
	case ALERT(SSL_AD_UNSUPPORTED_CERTIFICATE):
	case ALERT(SSL_AD_CERTIFICATE_REVOKED):
	case ALERT(SSL_AD_CERTIFICATE_EXPIRED):
	case ALERT(SSL_AD_CERTIFICATE_UNKNOWN):
	case ALERT(SSL_AD_UNKNOWN_CA):
	case ALERT(SSL_AD_ACCESS_DENIED):
	case ALERT(SSL_AD_CERTIFICATE_REQUIRED):
		return -EACCES;
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SHARED_GROUPS:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
	case SSL_R_NO_SUITABLE_GROUPS:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_PROTOCOLS_AVAILABLE:
	case SSL_R_NO_APPLICATION_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
	case ALERT(SSL_AD_HANDSHAKE_FAILURE):
	case ALERT(SSL_AD_PROTOCOL_VERSION):
	case ALERT(SSL_AD_NO_APPLICATION_PROTOCOL):
		return -EPROTONOSUPPORT;
	case ERR_R_MALLOC_FAILURE:
		return -ENOMEM;
	default:
		return -EPROTO;
	}
}

static void say_reason(unsigned long error, char *text, size_t room)
{
	const char *reason = ERR_reason_error_string(error);

	if (reason)
		weft__tls_say(text, room, reason);
	else if (room)
		ERR_error_string_n(error, text, room);
}

int weft__tls_error_take(char *text, size_t room)
{
	unsigned long error = ERR_peek_last_error();

	ERR_clear_error();
	if (!error) {
		weft__tls_say(text, room, "the stream below ended");
		return -ECONNRESET;
	}
	say_reason(error, text, room);
	return error_of_reason(ERR_GET_REASON(error));
}

int weft__tls_error_take_setup(int otherwise, char *text, size_t room)
{
	unsigned long error, last = ERR_peek_last_error();

	if (last)
		say_reason(last, text, room);
	while ((error = ERR_get_error())) {
		if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
			otherwise = -ENOMEM;
		else if (ERR_SYSTEM_ERROR(error) && ERR_GET_REASON(error) > 0)
			otherwise = -ERR_GET_REASON(error);
	}
	return otherwise;
}
