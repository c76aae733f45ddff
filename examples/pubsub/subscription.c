/* SPDX-License-Identifier: MIT */
#include "subscription.h"

int64_t subscription_run(void *arg)
{
	struct subscription *mine = *(struct subscription **)arg;
	struct line line;
	int r = 0;

	while (r == 0) {
		int64_t missed = weft_broadcast_recv(&mine->lines, &line);

		if (missed < 0)
			return missed;
		if (missed > 0)
			r = peer_say(mine->peer, "MISSED %s %lld\n",
				     mine->topic->name, (long long)missed);
		if (r == 0)
			r = peer_say(mine->peer, "%s\n", line.text);
	}
	return r;
}
