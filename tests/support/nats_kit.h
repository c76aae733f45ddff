/* SPDX-License-Identifier: MIT */
/* A real nats-server, and connections to it. */
#ifndef WEFT_TESTS_SUPPORT_NATS_KIT_H
#define WEFT_TESTS_SUPPORT_NATS_KIT_H

#include <nats/nats.h>
#include <weft/nats.h>

#include "tests/support/io_kit.h"
#include "tests/support/server_kit.h"

static struct server nats_server;

static inline natsOptions *nats_options(void)
{
	natsOptions *options = NULL;
	char url[64];

	snprintf(url, sizeof(url), "nats://%s", nats_server.address);
	ck_assert_int_eq(natsOptions_Create(&options), NATS_OK);
	ck_assert_int_eq(natsOptions_SetURL(options, url), NATS_OK);
	return options;
}

static inline struct weft_nats *nats_connect(void)
{
	struct weft_nats *nats = NULL;

	ck_assert_int_eq(weft_nats_connect(nats_options(), &nats), 0);
	return nats;
}

static inline bool nats_begin(const char *program)
{
	if (!server_make_dir(&nats_server))
		return false;
	for (int i = 0; i < SERVER_STARTS_MAX; i++) {
		server_choose_port(&nats_server);
		nats_server.pid = server_spawn(
			&nats_server,
			(const char *const[]){ program, "-a", "127.0.0.1", "-p",
					       nats_server.port, "-js", "-sd",
					       nats_server.dir, NULL });
		if (server_wait(&nats_server))
			return true;
	}
	return false;
}

/* The status of the process; 77 where no server is installed. */
static inline int nats_tests_run(Suite *(*make_suite)(void))
{
	char path[256];
	int status;

	if (!server_program("nats-server", NULL, path)) {
		puts("skipped: nats-server is not installed");
		return 77;
	}
	if (!nats_begin(path))
		return server_failed(&nats_server, "nats-server");
	status = io_tests_run(make_suite());
	server_end(&nats_server, SIGKILL);
	server_remove_dir(&nats_server);
	return status;
}

#endif
