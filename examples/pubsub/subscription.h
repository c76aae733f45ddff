/* SPDX-License-Identifier: MIT */
#ifndef PUBSUB_SUBSCRIPTION_H
#define PUBSUB_SUBSCRIPTION_H

#include "peer.h"
#include "topic.h"

struct subscription {
	struct peer *peer;
	struct topic *topic;
	struct weft_subscriber lines;
};

/* The task that sends the lines of a subscription.  arg is the address of a
 * pointer to the subscription. */
int64_t subscription_run(void *arg);

#endif
