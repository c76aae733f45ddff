/* SPDX-License-Identifier: MIT */
/*
 * Certificates that a test makes for itself, so that the tree has no keys.
 * They have keys on a curve, which are made quickly.
 *
 * They are made before the tests run, which only read them.
 */
#ifndef WEFT_TESTS_TLS_CERTIFICATES_H
#define WEFT_TESTS_TLS_CERTIFICATES_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "tests/support/expect.h"

struct certificate {
	EVP_PKEY *key;
	X509 *x509;
	char *cert_pem;
	char *key_pem;
};

/* The contents of a certificate; zero in a field: the default. */
struct certificate_wish {
	const char *name;		  /* its subject */
	const char *hosts;		  /* "DNS:a.test,IP:127.0.0.1" */
	const struct certificate *issuer; /* itself */
	long days;			  /* valid until then: 1; or it was */
	bool may_sign;
	bool rsa; /* the kind of its key: on a curve */
};

static inline char *pem_text(BIO *bio)
{
	char *data, *text;
	long bytes = BIO_get_mem_data(bio, &data);

	text = malloc((size_t)bytes + 1);
	EXPECT(text);
	memcpy(text, data, (size_t)bytes);
	text[bytes] = '\0';
	BIO_free(bio);
	return text;
}

static inline void add_extension(X509 *x509, X509 *issuer, int nid,
				 const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;

	X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	EXPECT(extension && X509_add_ext(x509, extension, -1));
	X509_EXTENSION_free(extension);
}

static inline void set_names(X509 *x509, const struct certificate_wish *wish)
{
	static long serial;
	X509_NAME *name = X509_get_subject_name(x509);

	EXPECT(X509_set_version(x509, 2));
	EXPECT(ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial));
	EXPECT(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
					  (const unsigned char *)wish->name, -1,
					  -1, 0));
	EXPECT(X509_set_issuer_name(
		x509, wish->issuer ? X509_get_subject_name(wish->issuer->x509) :
				     name));
}

static inline struct certificate
certificate_new(const struct certificate_wish *wish)
{
	enum { DAY = 24 * 60 * 60 };
	struct certificate made = { .key = wish->rsa ? EVP_RSA_gen(2048) :
						       EVP_EC_gen("P-256"),
				    .x509 = X509_new() };
	const struct certificate *issuer = wish->issuer ? wish->issuer : &made;
	BIO *cert = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_mem());

	EXPECT(made.key && made.x509 && cert && key);
	set_names(made.x509, wish);
	EXPECT(X509_gmtime_adj(X509_getm_notBefore(made.x509), -30L * DAY));
	EXPECT(X509_gmtime_adj(X509_getm_notAfter(made.x509),
			       (wish->days ? wish->days : 1) * DAY));
	EXPECT(X509_set_pubkey(made.x509, made.key));
	add_extension(made.x509, issuer->x509, NID_basic_constraints,
		      wish->may_sign ? "critical,CA:TRUE" :
				       "critical,CA:FALSE");
	if (wish->hosts)
		add_extension(made.x509, issuer->x509, NID_subject_alt_name,
			      wish->hosts);
	EXPECT(X509_sign(made.x509, issuer->key, EVP_sha256()));
	EXPECT(PEM_write_bio_X509(cert, made.x509));
	EXPECT(PEM_write_bio_PrivateKey(key, made.key, NULL, NULL, 0, NULL,
					NULL));
	made.cert_pem = pem_text(cert);
	made.key_pem = pem_text(key);
	return made;
}

static inline void certificate_free(struct certificate *certificate)
{
	EVP_PKEY_free(certificate->key);
	X509_free(certificate->x509);
	free(certificate->cert_pem);
	free(certificate->key_pem);
}

#endif
