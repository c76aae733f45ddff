/* SPDX-License-Identifier: MIT */
/*
 * Socket addresses, there and back: what the kernel makes of them, and random
 * ones.
 *
 * An address is bound to a socket, and the kernel's answer must be the same
 * address.  After that, random texts and random socket addresses: each that is
 * taken must come back the same from its text, and none may crash.  The random
 * numbers come from a seed, which WEFT_TEST_SEED sets, so that a run can be
 * repeated.
 */
#include "tests/support/net_addr_kit.h"

#define RANDOM_TEXTS 100000

/* ---- Kernel ----------------------------------------------------------- */

/* Binds @addr and returns the address as the kernel reports it. */
static void bind_and_ask(const struct weft_addr *addr, struct weft_addr *ret)
{
	struct sockaddr_storage storage;
	socklen_t bytes = sizeof(storage);
	int fd = socket(weft_addr_family(addr), SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	memset(&storage, 0xa5, sizeof(storage));
	ck_assert_msg(bind(fd, weft_addr_sockaddr(addr),
			   weft_addr_sockaddr_bytes(addr)) == 0,
		      "bind: %s", strerror(errno));
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&storage, &bytes),
			 0);
	close(fd);
	must_take(&storage, bytes, ret);
}

/* For a name of 108 bytes the kernel returns the length 111, which is more than
 * it accepts. */
START_TEST(kernel_returns_the_unix_path_that_was_bound)
{
	static const size_t lengths[] = { 40, 106, 107, 108 };
	char directory[] = "/tmp/weft_addr.XXXXXX";
	struct weft_addr bound, asked;
	char path[110];

	ck_assert_ptr_nonnull(mkdtemp(directory));
	memset(path, 'a', sizeof(path));
	memcpy(path, directory, strlen(directory));
	path[strlen(directory)] = '/';
	path[lengths[_i]] = '\0';
	must_parse(path, &bound);
	bind_and_ask(&bound, &asked);
	ck_assert(weft_addr_equal(&bound, &asked));
	must_round_trip(&asked);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(rmdir(directory), 0);
}
END_TEST

START_TEST(kernel_returns_the_abstract_name_that_was_bound)
{
	struct weft_addr bound, asked;
	char text[128];

	snprintf(text, sizeof(text), "unix:@weft\\x00addr %ld\\x00",
		 (long)getpid());
	must_parse(text, &bound);
	bind_and_ask(&bound, &asked);
	ck_assert(weft_addr_equal(&bound, &asked));
	must_format(&asked, text);
}
END_TEST

START_TEST(kernel_chooses_a_port_for_port_zero)
{
	struct weft_addr bound, asked;

	must_parse("127.0.0.1:0", &bound);
	bind_and_ask(&bound, &asked);
	ck_assert_int_gt(weft_addr_port(&asked), 0);
	must_round_trip(&asked);
}
END_TEST

/* ---- Random ----------------------------------------------------------- */

/* xorshift64*: a seed gives the same texts on every machine. */
static uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static size_t random_below(uint64_t *state, size_t limit)
{
	return (size_t)((random_next(state) >> 32) % limit);
}

/* WEFT_TEST_SEED=n repeats a run. */
static uint64_t random_seed(void)
{
	const char *chosen = getenv("WEFT_TEST_SEED");
	struct timespec now;
	uint64_t seed;

	clock_gettime(CLOCK_REALTIME, &now);
	seed = chosen ? strtoull(chosen, NULL, 0) :
			(uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30;
	printf("WEFT_TEST_SEED=%" PRIu64 "\n", seed);
	fflush(stdout);
	return seed | 1;
}

/* A valid text with up to three changed bytes, or random bytes. */
static void random_text(uint64_t *state, char *text, size_t text_bytes)
{
	static const char likely[] = "[]%:./\\@x0123456789abcdefunix\n ";
	size_t i, n, changes;

	if (random_below(state, 4) != 0) {
		i = random_below(state, COUNT_OF(good));
		n = (size_t)snprintf(text, text_bytes, "%s", good[i].text);
		changes = random_below(state, 4);
		while (changes-- > 0)
			text[random_below(state, n)] = likely[random_below(
				state, sizeof(likely) - 1)];
		return;
	}
	n = random_below(state, text_bytes);
	for (i = 0; i < n; i++)
		text[i] = random_below(state, 2) == 0 ?
				  (char)random_next(state) :
				  likely[random_below(state,
						      sizeof(likely) - 1)];
	text[n] = '\0';
}

START_TEST(random_texts_that_parse_round_trip_and_no_text_crashes)
{
	uint64_t state = random_seed();
	struct weft_addr addr;
	int i, parsed = 0;
	char text[200];

	for (i = 0; i < RANDOM_TEXTS; i++) {
		random_text(&state, text, sizeof(text));
		if (weft_addr_parse(text, &addr) < 0)
			continue;
		must_round_trip(&addr);
		parsed++;
	}
	/* Otherwise the generator would only make texts that are refused. */
	ck_assert_int_gt(parsed, RANDOM_TEXTS / 100);
	ck_assert_int_lt(parsed, RANDOM_TEXTS);
}
END_TEST

START_TEST(random_sockaddrs_that_are_taken_round_trip)
{
	static const sa_family_t families[] = { AF_INET, AF_INET6, AF_UNIX };
	uint64_t state = random_seed();
	unsigned char raw[sizeof(struct sockaddr_storage)];
	char text[WEFT_ADDR_TEXT_BYTES];
	struct weft_addr addr;
	size_t i, j, n;

	for (i = 0; i < RANDOM_TEXTS; i++) {
		for (j = 0; j < sizeof(raw); j++)
			raw[j] = (unsigned char)(random_next(&state) >> 32);
		memcpy(raw, &families[i % 3], sizeof(families[0]));
		/* Makes abstract names and short paths frequent enough. */
		if (random_below(&state, 4) == 0)
			raw[2 + random_below(&state, 4)] = 0;
		n = random_below(&state, sizeof(raw) + 1);
		if (weft_addr_from_sockaddr((struct sockaddr *)raw,
					    (socklen_t)n, &addr) < 0)
			continue;
		n = (size_t)weft_addr_format(&addr, text, sizeof(text));
		ck_assert_uint_lt(n, sizeof(text));
		if (strcmp(text, "unix:") != 0 && strcmp(text, "unix:@") != 0)
			must_round_trip(&addr);
	}
}
END_TEST

/* ---- Suite ------------------------------------------------------------ */

static void kernel_tests(Suite *suite)
{
	TCase *tcase = tcase_create("kernel");

	tcase_add_loop_test(tcase, kernel_returns_the_unix_path_that_was_bound,
			    0, 4);
	tcase_add_test(tcase, kernel_returns_the_abstract_name_that_was_bound);
	tcase_add_test(tcase, kernel_chooses_a_port_for_port_zero);
	suite_add_tcase(suite, tcase);
}

static void random_tests(Suite *suite)
{
	TCase *tcase = tcase_create("random");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(
		tcase,
		random_texts_that_parse_round_trip_and_no_text_crashes);
	tcase_add_test(tcase, random_sockaddrs_that_are_taken_round_trip);
	suite_add_tcase(suite, tcase);
}

int main(void)
{
	Suite *suite = suite_create("net/addr_round_trip");
	SRunner *runner;
	int failed;

	kernel_tests(suite);
	random_tests(suite);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
