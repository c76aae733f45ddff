/* SPDX-License-Identifier: MIT */
/*
 * Suite io/stream/terminal: a stream over a terminal, which goes both ways and
 * is no socket.
 */
#include <pty.h>
#include <termios.h>

#include "tests/support/stream_kit.h"

IO_TEST(terminal_gives_a_line_at_a_time)
{
	struct weft_stream stream;
	int master, slave;
	char line[80];

	EXPECT(openpty(&master, &slave, NULL, NULL, NULL) == 0);
	weft_stream_init(&stream, slave);
	for (int i = 0; i < 3; i++) {
		EXPECT(peek_within(&stream, WEFT_US(100)) == -ETIMEDOUT);
		EXPECT(write(master, "hallo\n", 6) == 6);
		EXPECT(weft_stream_line(&stream, line, sizeof(line)) == 6);
		EXPECT(strcmp(line, "hallo\n") == 0);
	}
	EXPECT(weft_stream_close(&stream) == 0);
	return weft_close(master);
}

/* Even a slow machine needs less. */
#define LONG_NS WEFT_SEC(20)

struct terminal {
	struct weft_stream stream;
	int master;
	uint64_t asked; /* bytes before the answer */
	weft__atomic(bool) done;
};

static void terminal_open(struct terminal *it)
{
	struct termios mode;
	int slave;

	*it = (struct terminal){ .asked = 3 };
	EXPECT(openpty(&it->master, &slave, NULL, NULL, NULL) == 0);
	EXPECT(tcgetattr(slave, &mode) == 0);
	cfmakeraw(&mode);
	EXPECT(tcsetattr(slave, TCSANOW, &mode) == 0);
	weft_stream_init(&it->stream, slave);
}

static int64_t answer(void *arg)
{
	struct terminal *it = *(struct terminal **)arg;
	char bytes[512];
	uint64_t got = 0;

	while (got < it->asked) {
		ssize_t n = weft_read(it->master, bytes, sizeof(bytes));

		EXPECT(n > 0);
		got += (uint64_t)n;
	}
	EXPECT(weft_write_all(it->master, "reply", 5, NULL) == 0);
	return 0;
}

static int64_t be_ready(void *arg)
{
	struct terminal *it = *(struct terminal **)arg;

	while (!weft__load(&it->done, acquire))
		EXPECT(weft_yield() == 0);
	return 0;
}

/* The reader has put three bytes, and waits for the answer to all of them.
 * Other tasks are ready, so that a send of its own would go through a ring. */
static void expect_answer(struct terminal *it)
{
	char bytes[5];

	WEFT_SCOPE (scope, NULL) {
		kit_go(scope, answer, it);
		for (int i = 0; i < 4; i++)
			kit_go(scope, be_ready, it);
		WEFT_WITHIN (LONG_NS)
			EXPECT(weft_stream_read_all(&it->stream, bytes, 5,
						    NULL) == 0);
		weft__store(&it->done, true, release);
	}
	EXPECT(memcmp(bytes, "reply", 5) == 0);
	EXPECT(weft_stream_close(&it->stream) == 0);
	EXPECT(weft_close(it->master) == 0);
}

IO_TEST(reader_writes_what_it_put_before_it_waits)
{
	for (int i = 0; i < 10; i++) {
		struct terminal it;
		char byte;

		terminal_open(&it);
		/* Now it is known that this is no socket; or not yet. */
		EXPECT(write(it.master, "x", 1) == 1);
		if (i % 2)
			EXPECT(weft_stream_read(&it.stream, &byte, 1) == 1);
		EXPECT(weft_stream_put(&it.stream, "cmd", 3) == 0);
		if (i % 2 == 0)
			EXPECT(weft_stream_read(&it.stream, &byte, 1) == 1);
		expect_answer(&it);
	}
	return 0;
}

/* The first time that it writes there is no room, until a deadline passes. */
IO_TEST(reader_that_was_interrupted_writes_later)
{
	struct terminal it;
	ssize_t n = 0;

	terminal_open(&it);
	while (n >= 0) {
		it.asked += (uint64_t)n;
		WEFT_WITHIN (WEFT_MS(20))
			n = weft_write(weft_stream_fd(&it.stream), "filling",
				       7);
	}
	EXPECT(n == -ETIMEDOUT);
	EXPECT(weft_stream_put(&it.stream, "cmd", 3) == 0);
	for (int i = 0; i < 3; i++)
		EXPECT(peek_within(&it.stream, WEFT_MS(1)) == -ETIMEDOUT);
	expect_answer(&it);
	return 0;
}

int main(void)
{
	Suite *suite = suite_create("io/stream/terminal");
	TCase *tcase = tcase_create("terminal");

	tcase_set_timeout(tcase, 60);
	io_add_test(tcase, terminal_gives_a_line_at_a_time);
	io_add_test(tcase, reader_writes_what_it_put_before_it_waits);
	io_add_test(tcase, reader_that_was_interrupted_writes_later);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
