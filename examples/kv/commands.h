/* SPDX-License-Identifier: MIT */
#ifndef KV_COMMANDS_H
#define KV_COMMANDS_H

#include "command.h"

/* strings.c */
int command_get(struct call *call);
int command_mget(struct call *call);
int command_mset(struct call *call); /* each key for itself: not atomic */

/* set.c */
int command_set(struct call *call);

/* numbers.c */
int command_incr(struct call *call);
int command_decr(struct call *call);

/* keys.c */
int command_del(struct call *call);
int command_exists(struct call *call);
int command_dbsize(struct call *call);
int command_flushall(struct call *call);

/* times.c */
int command_expire(struct call *call);
int command_pexpire(struct call *call);
int command_ttl(struct call *call);
int command_pttl(struct call *call);

/* talk.c */
int command_ping(struct call *call);
int command_echo(struct call *call);
int command_quit(struct call *call);
int command_command(struct call *call);
int command_config(struct call *call);

#endif
