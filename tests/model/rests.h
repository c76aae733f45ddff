/* SPDX-License-Identifier: MIT */
/*
 * Rests - the part of the model of the driver in which a worker rests while its
 * thread waits for the ring's descriptor, and a thread from outside wakes it.
 * Included by tests/model/model_driver.c in its midst.
 */
/* The timer of a rest; its descriptor is not modelled. */
void weft__rest_until(struct weft__shard *shard, uint64_t until_ns,
		      uint64_t now_ns)
{
	(void)now_ns;
	shard->timer_ns = until_ns;
}

void weft__rest_persist(struct weft__shard *shard)
{
	(void)shard;
}

void weft__rest_end(struct weft__shard *shard)
{
	(void)shard;
}

int weft__rest_open(struct weft__shard *shard)
{
	(void)shard;
	return 0;
}

/* A turn of a foreign loop ends with a rest; then its thread waits. */
static void rest_until_notified(uint32_t times)
{
	struct weft__worker *worker = weft__worker_self();

	worker->rest.wanted = true;
	while (weft__load(&notified, relaxed) < times) {
		unsigned before = naps;

		park(worker);
		if (!worker->rest.rests)
			continue;
		model_assert(
			!weft__ring_unsubmitted(&weft__shard(worker)->ring),
			"who rests has submitted all");
		kernel_await(worker->index,
			     weft__shard(worker)->timer_ns == UINT64_MAX);
		weft__worker_rouse(worker);
		if (naps != before && weft__load(&notified, relaxed) < times)
			weft__spin_hint();
	}
	weft__store(&heard, times, relaxed);
}

THREAD(rest_1, rest_until_notified(1);)
THREAD(rest_2, rest_until_notified(2);)
THREAD(ask_and_rest, ask(WEFT__OPCODE_NONE); rest_until_notified(1);)
