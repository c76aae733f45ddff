/* SPDX-License-Identifier: MIT */
/*
 * Names, their channel - the options of a channel of c-ares.
 *
 * c-ares 1.18 opens the hosts file for each question that it looks up there;
 * weft has that file as a table (names_hosts.c).  So where the file is the
 * first source, c-ares asks servers alone.  It is, but for a choice of
 * resolv.conf or nsswitch.conf; only a channel shows which one c-ares has read
 * there, so a first channel is made for that.
 */
#include "net/names_channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>

enum {
	SERVERS_MAX = 8,
	RECEIVE_BYTES = 1 << 20, /* the system may allow less */
};

/* ---- Servers ------------------------------------------------------------- */

/* Takes one server of a list, with port 53 if it has none. */
static int server_parse(const char *text, size_t bytes, struct weft_addr *addr)
{
	char whole[WEFT_ADDR_TEXT_BYTES];

	/* ":53" alone is an address, but not that of a server. */
	if (bytes == 0 || text[0] == ':' ||
	    bytes + sizeof(":53") > sizeof(whole))
		return -EINVAL;
	memcpy(whole, text, bytes);
	whole[bytes] = '\0';
	if (weft_addr_parse(whole, addr) < 0) {
		memcpy(whole + bytes, ":53", sizeof(":53"));
		if (weft_addr_parse(whole, addr) < 0)
			return -EINVAL;
	}
	return weft_addr_port(addr) > 0 ? 0 : -EINVAL;
}

/* Returns their number. */
static int servers_parse(const char *text, struct weft_addr addrs[SERVERS_MAX])
{
	int count = 0;

	for (;;) {
		size_t bytes = strcspn(text, ",");

		if (count == SERVERS_MAX ||
		    server_parse(text, bytes, &addrs[count++]) < 0)
			return -EINVAL;
		if (text[bytes] == '\0')
			return count;
		text += bytes + 1;
	}
}

bool weft__names_servers_valid(const char *servers)
{
	struct weft_addr addrs[SERVERS_MAX];

	return servers_parse(servers, addrs) > 0;
}

static void server_node(const struct weft_addr *addr,
			struct ares_addr_port_node *node)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	node->family = weft_addr_family(addr);
	node->udp_port = node->tcp_port = weft_addr_port(addr);
	if (node->family == AF_INET) {
		memcpy(&in, &addr->storage, sizeof(in));
		node->addr.addr4 = in.sin_addr;
	} else {
		memcpy(&in6, &addr->storage, sizeof(in6));
		memcpy(&node->addr.addr6, &in6.sin6_addr,
		       sizeof(node->addr.addr6));
	}
}

static int servers_set(ares_channel channel, const char *servers)
{
	struct ares_addr_port_node nodes[SERVERS_MAX] = { 0 };
	struct weft_addr addrs[SERVERS_MAX];
	int count = servers_parse(servers, addrs);

	for (int i = 0; i < count; i++) {
		server_node(&addrs[i], &nodes[i]);
		nodes[i].next = i + 1 < count ? &nodes[i + 1] : NULL;
	}
	return ares_set_servers_ports(channel, nodes);
}

static int library_status;

static void library_init(void)
{
	library_status = ares_library_init(ARES_LIB_INIT_ALL);
}

int weft__names_status_error(int status)
{
	switch (status) {
	case ARES_SUCCESS:
		return 0;
	case ARES_ENOTFOUND:
		return -ENOENT;
	case ARES_ENODATA:
		return -ENODATA;
	case ARES_ETIMEOUT:
		return -ETIMEDOUT;
	case ARES_ENOMEM:
		return -ENOMEM;
	case ARES_EBADNAME:
	case ARES_EBADSTR:
		return -EINVAL;
	case ARES_ESERVFAIL:
	case ARES_EREFUSED:
	case ARES_ENOTIMP:
	case ARES_ECONNREFUSED:
		return -EAGAIN;
	case ARES_ECANCELLED:
	case ARES_EDESTRUCTION:
		return -ECANCELED;
	default:
		return -EBADMSG;
	}
}

static int channel_init(const struct weft__names_opts *opts,
			struct ares_options *options, int mask,
			ares_channel *ret_channel)
{
	if (opts->resolv_conf) {
		options->resolvconf_path = opts->resolv_conf;
		mask |= ARES_OPT_RESOLVCONF;
	}
	if (opts->timeout_ns) {
		uint64_t ms = opts->timeout_ns / 1000000;

		options->timeout = ms > 0 ? (int)ms : 1;
		mask |= ARES_OPT_TIMEOUTMS;
	}
	if (opts->tries) {
		options->tries = (int)opts->tries;
		mask |= ARES_OPT_TRIES;
	}
	/* Many answers may come at the same time. */
	options->socket_receive_buffer_size = RECEIVE_BYTES;
	mask |= ARES_OPT_SOCK_RCVBUF;
	return ares_init_options(ret_channel, options, mask);
}

/* The letters of the sources in their order: "f" the file, "b" servers.  Where
 * the program names the servers the files of the system do not count. */
static int lookups_of(const struct weft__names_opts *opts, ares_channel channel,
		      char lookups[4])
{
	struct ares_options options;
	int mask, status;

	if (opts->servers) {
		memcpy(lookups, "fb", sizeof("fb"));
		return ARES_SUCCESS;
	}
	status = ares_save_options(channel, &options, &mask);
	if (status == ARES_SUCCESS)
		strncpy(lookups, options.lookups ? options.lookups : "fb", 3);
	ares_destroy_options(&options);
	lookups[3] = '\0';
	return status;
}

int weft__names_channel_open(const struct weft__names_opts *opts,
			     ares_sock_state_cb socket_state, void *arg,
			     ares_channel *ret_channel,
			     struct weft__names_sources *ret_sources)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct ares_options options = { .sock_state_cb = socket_state,
					.sock_state_cb_data = arg };
	int mask = ARES_OPT_SOCK_STATE_CB, status;
	ares_channel channel = NULL;
	char lookups[4] = "";

	pthread_once(&once, library_init);
	status = library_status;
	if (status == ARES_SUCCESS)
		status = channel_init(opts, &options, mask, &channel);
	if (status == ARES_SUCCESS)
		status = lookups_of(opts, channel, lookups);
	if (status == ARES_SUCCESS && lookups[0] == 'f') {
		ares_destroy(channel);
		channel = NULL;
		options.lookups = lookups + 1;
		status = channel_init(opts, &options, mask | ARES_OPT_LOOKUPS,
				      &channel);
	}
	if (status == ARES_SUCCESS && opts->servers)
		status = servers_set(channel, opts->servers);
	if (status == ARES_SUCCESS) {
		ret_sources->hosts_first = lookups[0] == 'f';
		ret_sources->servers = strcmp(lookups, "f") != 0;
		*ret_channel = channel;
	} else if (channel) {
		ares_destroy(channel);
	}
	return weft__names_status_error(status);
}
