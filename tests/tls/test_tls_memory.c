/* SPDX-License-Identifier: MIT */
/*
 * Suite tls/memory: how much memory an idle connection holds, by the counts of
 * OpenSSL's allocator and of the runtime's; and connections that get none.
 */
#include <malloc.h>

#include "tests/tls/tls_kit.h"

/* Where OpenSSL alone holds more than its version 3.0, OWN_MAX above that. */
enum { CONNECTIONS = 200, BYTES_MAX = 24 << 10, OWN_MAX = 4 << 10 };

/* Bytes that are held now, of OpenSSL's allocator and of the runtime's. */
static weft__atomic(int64_t) held, held_by_runtime;

/* Allocations until one of OpenSSL's fails; below 0: none does. */
static weft__atomic(int64_t) until_failure = -1;

static bool fails(void)
{
	/* relaxed: a count. */
	return weft__sub(&until_failure, (int64_t)1, relaxed) == 1;
}

static void *count_new(size_t bytes, const char *file, int line)
{
	void *memory = fails() ? NULL : malloc(bytes);

	(void)file, (void)line;
	/* relaxed: counts. */
	weft__add(&held, (int64_t)malloc_usable_size(memory), relaxed);
	return memory;
}

static void count_free(void *memory, const char *file, int line)
{
	(void)file, (void)line;
	/* relaxed: counts. */
	weft__sub(&held, (int64_t)malloc_usable_size(memory), relaxed);
	free(memory);
}

static void *count_renew(void *memory, size_t bytes, const char *file, int line)
{
	void *renewed;

	(void)file, (void)line;
	if (fails())
		return NULL;
	/* relaxed: counts. */
	weft__sub(&held, (int64_t)malloc_usable_size(memory), relaxed);
	renewed = realloc(memory, bytes);
	/* relaxed: counts. */
	weft__add(&held, (int64_t)malloc_usable_size(renewed), relaxed);
	return renewed;
}

static void *runtime_new(size_t bytes, size_t align, void *arg)
{
	void *memory = aligned_alloc(align, (bytes + align - 1) & -align);

	(void)arg;
	/* relaxed: counts. */
	weft__add(&held_by_runtime, (int64_t)bytes, relaxed);
	return memory;
}

static void runtime_free(void *memory, size_t bytes, size_t align, void *arg)
{
	(void)arg, (void)align;
	/* relaxed: counts. */
	weft__sub(&held_by_runtime, (int64_t)bytes, relaxed);
	free(memory);
}

static int64_t bytes_held(void)
{
	/* relaxed: a count. */
	return weft__load(&held, relaxed);
}

static int64_t bytes_of_runtime(void)
{
	/* relaxed: a count. */
	return weft__load(&held_by_runtime, relaxed);
}

/* It has been used in both directions, and waits at both ends. */
static void make_idle(struct ends *ends, struct weft_tls_context *contexts[2])
{
	for (int i = 0; i < 2; i++)
		ends->end[i].context = contexts[i];
	meet(ends, 0);
	EXPECT(ends->end[0].r == 0 && ends->end[1].r == 0);
	pass_on(ends, 0, "some bytes");
	pass_on(ends, 1, "and others");
	for (int i = 0; i < 2; i++)
		EXPECT(peek_within(stream_of(ends, i), WEFT_US(1)) ==
		       -ETIMEDOUT);
}

static SSL *bare_end(SSL_CTX **ret_context, BIO *bio, int version, bool serves)
{
	SSL_CTX *context = SSL_CTX_new(TLS_method());
	SSL *ssl;

	EXPECT(context && SSL_CTX_set_max_proto_version(context, version));
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	EXPECT(SSL_CTX_use_certificate(context, server_cert.x509));
	EXPECT(SSL_CTX_use_PrivateKey(context, server_cert.key));
	ssl = SSL_new(context);
	EXPECT(ssl && BIO_up_ref(bio));
	SSL_set_bio(ssl, bio, bio);
	if (serves)
		SSL_set_accept_state(ssl);
	else
		SSL_set_connect_state(ssl);
	*ret_context = context;
	return ssl;
}

/* So much of OpenSSL's memory has an end that is used without weft. */
static int64_t bytes_of_bare_end(uint32_t version, int end)
{
	SSL_CTX *contexts[2];
	BIO *bios[2];
	SSL *ssl[2];
	int64_t bytes;
	char byte;

	EXPECT(BIO_new_bio_pair(&bios[0], 0, &bios[1], 0));
	for (int i = 0; i < 2; i++)
		ssl[i] = bare_end(&contexts[i], bios[i], (int)version, i);
	while (SSL_do_handshake(ssl[0]) + SSL_do_handshake(ssl[1]) != 2)
		;
	for (int i = 0; i < 2; i++) {
		EXPECT(SSL_write(ssl[i], "x", 1) == 1);
		EXPECT(SSL_read(ssl[!i], &byte, 1) == 1);
	}
	for (int i = 0; i < 2; i++)
		EXPECT(SSL_free_buffers(ssl[i]));
	ERR_clear_error();
	bytes = bytes_held();
	SSL_free(ssl[end]);
	bytes -= bytes_held();
	SSL_free(ssl[!end]);
	for (int i = 0; i < 2; i++) {
		SSL_CTX_free(contexts[i]);
		BIO_free(bios[i]);
	}
	return bytes;
}

static int64_t bytes_max(uint32_t version, int end, int64_t of_runtime)
{
	int64_t max = bytes_of_bare_end(version, end) + of_runtime + OWN_MAX;

	return max > BYTES_MAX ? max : BYTES_MAX;
}

/* The connections give back to OpenSSL's allocator what they hold.  The
 * runtime's streams are the same at both ends, and their shared buffers grow
 * with what the closes send. */
static void expect_little(struct ends *many, int end, int64_t of_runtime,
			  int64_t max)
{
	int64_t each = bytes_held();

	for (int i = 0; i < CONNECTIONS; i++)
		(void)weft_stream_close(stream_of(&many[i], end));
	each = (each - bytes_held()) / CONNECTIONS;
	/* It did count. */
	ck_assert_int_gt(each, 1000);
	each += of_runtime;
	ck_assert_msg(each <= max, "end %d: %ld bytes, %ld of weft", end,
		      (long)each, (long)of_runtime);
}

static int64_t measure(void *arg)
{
	struct ends *many = calloc(CONNECTIONS, sizeof(*many)), first;
	struct weft_tls_context *contexts[2];
	int64_t of_runtime;

	EXPECT(many);
	join_ends(&first, *(uint32_t *)arg);
	pass_on(&first, 0, "warm");
	of_runtime = bytes_of_runtime();
	for (int i = 0; i < 2; i++)
		contexts[i] = first.end[i].context;
	for (int i = 0; i < CONNECTIONS; i++)
		make_idle(&many[i], contexts);
	of_runtime = (bytes_of_runtime() - of_runtime) / (2 * CONNECTIONS);
	for (int i = 0; i < 2; i++)
		expect_little(many, i, of_runtime,
			      bytes_max(*(uint32_t *)arg, i, of_runtime));
	part(&first);
	free(many);
	return 0;
}

START_TEST(idle_connection_holds_little)
{
	uint32_t version = _i ? WEFT_TLS_1_3 : WEFT_TLS_1_2;
	struct weft_allocator allocator = { .alloc = runtime_new,
					    .dealloc = runtime_free };
	struct weft_opts opts = WEFT_OPTS_INIT;

	opts.workers = 1;
	opts.allocator = &allocator;
	ck_assert_int_eq(io_run_opts(measure, &version, &opts), 0);
}
END_TEST

/* ---- No memory ----------------------------------------------------------- */

static void fail_after(int64_t allocations)
{
	/* relaxed: a count. */
	weft__store(&until_failure, allocations, relaxed);
}

static int64_t read_some(void *arg)
{
	struct end *end = *(struct end **)arg;
	const void *data;

	/* Of any result. */
	if (end->r == 0 && weft_stream_peek(&end->tls.stream, &data) < 0)
		expect_no_notes();
	expect_no_notes();
	return 0;
}

/* Or the peer is to find an end. */
static void say_something(struct ends *ends, int i)
{
	if (ends->end[i].r == 0 &&
	    weft_stream_write_all(stream_of(ends, i), "x", 1, NULL) < 0)
		(void)weft_shutdown(ends->fds[i], SHUT_WR);
}

/* Handshakes that have returned -ENOMEM. */
static unsigned refused;

/* A connection in which that allocation fails.  False: there are fewer. */
static bool lives_without(struct weft_tls_context *contexts[2], int64_t nth)
{
	struct ends ends = { .fds = { 0 } };
	bool failed;

	for (int i = 0; i < 2; i++)
		ends.end[i].context = contexts[i];
	fail_after(nth);
	WEFT_WITHIN (WEFT_SEC(20)) {
		meet(&ends, 0);
		for (int i = 0; i < 2; i++) {
			refused += ends.end[i].r == -ENOMEM;
			say_something(&ends, i);
		}
		WEFT_SCOPE (scope, NULL)
			for (int i = 0; i < 2; i++)
				kit_go(scope, read_some, &ends.end[i]);
		EXPECT(!weft_deadline_passed());
	}
	part(&ends);
	/* relaxed: a count. */
	failed = weft__load(&until_failure, relaxed) <= 0;
	fail_after(-1);
	return failed;
}

/* Each error is an end, and nothing waits for ever or is lost. */
static int64_t lose_allocations(void *arg)
{
	struct weft_tls_context *contexts[2];
	struct ends first;
	int64_t held_before = 0;

	(void)arg;
	join_ends(&first, 0);
	for (int i = 0; i < 2; i++)
		contexts[i] = first.end[i].context;
	for (int64_t nth = 1; lives_without(contexts, nth); nth++)
		if (nth == 1)
			held_before = bytes_held();
	EXPECT(refused > 0);
	/* But for tickets that clients keep. */
	ck_assert_int_lt(bytes_held() - held_before, 1 << 20);
	pass_on(&first, 0, "still there");
	part(&first);
	return 0;
}

START_TEST(connection_without_memory_ends)
{
	io_run(lose_allocations, NULL, 1);
}
END_TEST

/* The first allocations: of the stream below, then of the connection. */
static int64_t dial_without_memory(void *arg)
{
	struct weft_tls_context *context = context_new(NULL);
	char address[WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(address), before = fds_open();
	struct weft_tls tls;

	(void)arg;
	for (int64_t nth = 1; nth <= 3; nth++) {
		fail_after(nth);
		EXPECT(weft_dial_tls(&tls, context, address, NULL) == -ENOMEM);
		fail_after(-1);
		expect_no_notes();
		ck_assert_int_eq(fds_open(), before);
	}
	EXPECT(weft_close(fd) == 0);
	weft_tls_context_free(context);
	return 0;
}

START_TEST(dialling_without_memory_leaves_nothing_open)
{
	io_run(dial_without_memory, NULL, 1);
}
END_TEST

/* Of its thousands of allocations each 13th. */
START_TEST(context_without_memory_is_not_made)
{
	struct weft_tls_opts opts = opts_with(&server_cert, &authority);
	struct weft_tls_context *context;
	int64_t nth = 0;
	int r;

	opts.alpn = "h2";
	context = context_new(&opts);
	weft_tls_context_free(context);
	refused = 0;
	do {
		fail_after(nth += 13);
		context = NULL;
		r = weft_tls_context_new(&opts, &context);
		EXPECT((r == 0) == (context != NULL));
		expect_no_notes();
		refused += r == -ENOMEM;
		weft_tls_context_free(context);
		/* relaxed: a count. */
	} while (weft__load(&until_failure, relaxed) <= 0);
	fail_after(-1);
	EXPECT(r == 0 && refused > 0);
}
END_TEST

/* ---- A peer that takes no answer ----------------------------------------- */

static int64_t read_nothing(void *arg)
{
	struct weft_stream *stream = *(struct weft_stream **)arg;
	const void *data;

	EXPECT(weft_stream_peek(stream, &data) == -ECANCELED);
	return 0;
}

/* Asks for new keys again and again, each of which is answered, and reads no
 * answer: until it is not read from either. */
static int64_t ask_and_not_listen(void *arg)
{
	enum { ASKS = 60000, HELD_MAX = 1 << 20 };
	int64_t before, most = 0;
	struct ends ends;
	int r = 0;

	(void)arg;
	join_ends(&ends, WEFT_TLS_1_3);
	kit_make_small(ends.fds);
	before = bytes_held();
	WEFT_SUPERVISE (scope) {
		kit_go(scope, read_nothing, stream_of(&ends, 1));
		for (int i = 0; r == 0 && i < ASKS; i++) {
			WEFT_WITHIN (WEFT_MS(500))
				r = weft_tls_update_keys(&ends.end[0].tls);
			if (bytes_held() - before > most)
				most = bytes_held() - before;
		}
		weft_scope_cancel(scope);
	}
	ck_assert_msg(most <= HELD_MAX, "%ld bytes", (long)most);
	ck_assert_int_eq(r, -ETIMEDOUT);
	for (int i = 0; i < 2; i++)
		WEFT_WITHIN (WEFT_US(1))
			(void)weft_stream_close(stream_of(&ends, i));
	free_contexts(&ends);
	return 0;
}

START_TEST(answers_that_nobody_takes_are_bounded)
{
	ck_assert_int_eq(io_run_opts(ask_and_not_listen, NULL, NULL), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tls/memory");
	TCase *idle = tcase_create("idle");

	/* Before OpenSSL allocates anything. */
	if (!CRYPTO_set_mem_functions(count_new, count_renew, count_free))
		return EXIT_FAILURE;
	tcase_set_timeout(idle, 60);
	tcase_add_loop_test(idle, idle_connection_holds_little, 0, 2);
	tcase_add_test(idle, connection_without_memory_ends);
	tcase_add_test(idle, dialling_without_memory_leaves_nothing_open);
	tcase_add_test(idle, context_without_memory_is_not_made);
	tcase_add_test(idle, answers_that_nobody_takes_are_bounded);
	suite_add_tcase(suite, idle);
	return tls_tests_run(suite);
}
