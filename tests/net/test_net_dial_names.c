/* SPDX-License-Identifier: MIT */
/*
 * Names in the calls that take an address: dialling, listening, sockets of
 * datagrams.  The server of names is part of the test (names_kit.h), so what a
 * name is, and which of its addresses answers, does not depend on the machine.
 */
#include "tests/support/names_kit.h"

/* A listener on 127.0.0.1, and "name:port" with its port. */
static int listener_for(const char *name, char text[300])
{
	char address[WEFT_ADDR_TEXT_BYTES];
	int fd = tcp_listener(address);

	snprintf(text, 300, "%s:%s", name, strrchr(address, ':') + 1);
	return fd;
}

/* Nothing listens on [::1] there, or there is no IPv6. */
NAMES_TEST(name_is_dialled_by_the_address_that_answers)
{
	char text[300];
	int listener = listener_for("both.test", text), fd;

	fd = weft_dial(text, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	fd = weft_tcp_connect(text, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(weft_close(listener), 0);
	ck_assert_int_eq(server_asked(server, "both.test"), 2);
}

/* Of IPv6 there are more addresses than are tried. */
NAMES_TEST(many_addresses_of_one_family_are_not_all)
{
	char text[300];
	int listener = listener_for("many.test", text), fd;

	fd = weft_dial(text, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(weft_close(listener), 0);
	ck_assert_int_ge(server_asked(server, "many.test"), 2);
}

NAMES_TEST(local_address_chooses_the_family)
{
	struct weft_dial_opts opts = WEFT_DIAL_OPTS_INIT;
	char text[300];
	int listener = listener_for("both.test", text), fd;

	opts.local = "127.0.0.1:0";
	fd = weft_dial(text, &opts);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(weft_close(listener), 0);
	opts.local = "[::1]:0";
	ck_assert_int_eq(weft_dial("four.test:1", &opts), -EAFNOSUPPORT);
	ck_assert_int_gt(server_asked(server, NULL), 0);
}

NAMES_TEST(errors_of_names_are_those_of_the_call)
{
	struct weft_socket_opts wrong = { 0 };

	ck_assert_int_eq(weft_dial("none.test:1", NULL), -ENOENT);
	ck_assert_int_eq(weft_tcp_connect("empty.test:1", NULL), -ENODATA);
	ck_assert_int_eq(weft_tcp_listen("none.test:0", NULL), -ENOENT);
	ck_assert_int_eq(weft_tcp_connect("four.test:1", &wrong), -EINVAL);
	ck_assert_int_gt(server_asked(server, NULL), 0);
}

NAMES_TEST(deadline_ends_the_look_up_of_a_call)
{
	int r = 0;

	WEFT_WITHIN(WEFT_MS(20))
		r = weft_tcp_connect("silent.test:1", NULL);
	ck_assert_int_eq(r, -ETIMEDOUT);
	ck_assert_int_ge(server_asked(server, NULL), 0);
}

/* 127.0.0.4 is this machine's, as all of 127.0.0.0/8. */
NAMES_TEST(server_listens_on_a_name)
{
	struct weft_socket_opts wrong = { 0 };
	char text[WEFT_ADDR_TEXT_BYTES];
	int fd = weft_tcp_listen("four.test:0", NULL), client;

	ck_assert_int_ge(fd, 0);
	weft_local_addr_text(fd, text);
	ck_assert_int_eq(strncmp(text, "127.0.0.4:", 10), 0);
	client = weft_tcp_connect(text, NULL);
	ck_assert_int_ge(client, 0);
	close_both((int[]){ client, fd });
	ck_assert_int_eq(weft_tcp_listen("four.test:0", &wrong), -EINVAL);
	fd = weft_tcp_listen("localhost:0", NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(weft_close(fd), 0);
	ck_assert_int_eq(server_asked(server, "localhost"), 0);
}

static struct weft_addr local_of(const struct weft_udp *udp)
{
	struct weft_addr addr;

	ck_assert_int_eq(weft_local_addr(weft_udp_fd(udp), &addr), 0);
	return addr;
}

/* Connected to the address of the name that its own can reach. */
NAMES_TEST(socket_of_datagrams_has_names)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp in, out;
	struct weft_udp_msg msg = { .buf = "x", .bytes = 1 };
	struct weft_addr addr;
	char text[300], byte;

	ck_assert_int_eq(weft_udp_open(&in, "127.0.0.1:0", NULL), 0);
	addr = local_of(&in);
	snprintf(text, sizeof(text), "both.test:%d", weft_addr_port(&addr));
	opts.connect = text;
	ck_assert_int_eq(weft_udp_open(&out, "127.0.0.1:0", &opts), 0);
	ck_assert_int_eq(weft_udp_send(&out, &msg, 1, 0), 1);
	msg = (struct weft_udp_msg){ .buf = &byte, .room = 1 };
	ck_assert_int_eq(weft_udp_recv(&in, &msg, 1, 0), 1);
	ck_assert_int_eq(byte, 'x');
	ck_assert_int_eq(weft_udp_close(&out), 0);
	/* To a name from any address, and from a name. */
	ck_assert_int_eq(weft_udp_open(&out, NULL, &opts), 0);
	ck_assert_int_eq(weft_udp_close(&out), 0);
	ck_assert_int_eq(weft_udp_open(&out, "four.test:0", NULL), 0);
	weft_local_addr_text(weft_udp_fd(&out), text);
	ck_assert_int_eq(strncmp(text, "127.0.0.4:", 10), 0);
	ck_assert_int_eq(weft_udp_close(&out), 0);
	ck_assert_int_eq(weft_udp_open(&out, "localhost:0", NULL), 0);
	ck_assert_int_eq(weft_udp_close(&out), 0);
	ck_assert_int_eq(weft_udp_close(&in), 0);
	ck_assert_int_eq(server_asked(server, "localhost"), 0);
}

NAMES_TEST(socket_of_datagrams_fails_as_its_name_does)
{
	struct weft_udp_opts opts = WEFT_UDP_OPTS_INIT;
	struct weft_udp udp;
	int before = fds_open(), r = 0;

	ck_assert_int_eq(weft_udp_open(&udp, "none.test:0", NULL), -ENOENT);
	opts.connect = "empty.test:1";
	ck_assert_int_eq(weft_udp_open(&udp, NULL, &opts), -ENODATA);
	opts.connect = "four.test:1";
	ck_assert_int_eq(weft_udp_open(&udp, "[::1]:0", &opts),
			 -EAFNOSUPPORT);
	WEFT_WITHIN(WEFT_MS(20))
		r = weft_udp_open(&udp, "silent.test:0", NULL);
	ck_assert_int_eq(r, -ETIMEDOUT);
	opts.reserved[0] = 1;
	ck_assert_int_eq(weft_udp_open(&udp, "four.test:0", &opts), -EINVAL);
	/* The resolver keeps two, and c-ares has some while it asks. */
	wait_until(!names_serving());
	ck_assert_int_le(fds_open(), before + 2);
	ck_assert_int_gt(server_asked(server, NULL), 0);
}

START_TEST(name_needs_a_task)
{
	struct weft_udp udp;

	ck_assert_int_eq(weft_udp_open(&udp, "localhost:0", NULL), -EPERM);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("net/dial_names");
	TCase *tcase = tcase_create("names");

	io_add_test(tcase, name_is_dialled_by_the_address_that_answers);
	io_add_test(tcase, many_addresses_of_one_family_are_not_all);
	io_add_test(tcase, local_address_chooses_the_family);
	io_add_test(tcase, errors_of_names_are_those_of_the_call);
	io_add_test(tcase, deadline_ends_the_look_up_of_a_call);
	io_add_test(tcase, server_listens_on_a_name);
	io_add_test(tcase, socket_of_datagrams_has_names);
	io_add_test(tcase, socket_of_datagrams_fails_as_its_name_does);
	tcase_add_test(tcase, name_needs_a_task);
	suite_add_tcase(suite, tcase);
	return io_tests_run(suite);
}
