/* SPDX-License-Identifier: MIT */
#include "callbacks.h"

bool callbacks_new(struct server *server)
{
	server->option = NULL;
	if (nghttp2_session_callbacks_new(&server->callbacks) < 0) {
		server->callbacks = NULL;
		return false;
	}
	callbacks_set_incoming(server->callbacks);
	callbacks_set_outgoing(server->callbacks);
	if (nghttp2_option_new(&server->option) < 0) {
		server->option = NULL;
		return false;
	}
	/* See on_data() in incoming.c. */
	nghttp2_option_set_no_auto_window_update(server->option, 1);
	/* They would be kept for priorities that name them. */
	nghttp2_option_set_no_closed_streams(server->option, 1);
	return true;
}

void callbacks_free(struct server *server)
{
	nghttp2_option_del(server->option);
	nghttp2_session_callbacks_del(server->callbacks);
}
