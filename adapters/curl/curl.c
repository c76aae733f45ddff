/* SPDX-License-Identifier: MIT */
/*
 * Transfers of libcurl in tasks.
 *
 * libcurl names the sockets and the one time that it waits for.  All are in one
 * epoll set, the time as a timerfd.  Of the tasks that wait for their transfers
 * one drives: it waits for the set with weft_poll(), tells libcurl what is
 * ready, and wakes the tasks whose transfers are done.  The others wait for
 * their events.  A task that no longer drives wakes one that does.
 *
 * A transfer that another task adds changes the set or the time, and so wakes
 * the task that drives.
 *
 * **Invariants**
 *   CURL1  While a transfer's task is idle, another one drives.
 *
 * **Concurrency**: the lock is a pthread mutex around each use of the multi
 * handle, which one thread at a time may use.  It is never held in a call that
 * suspends.  An event is set under the lock, and its task takes the lock before
 * it returns, so that its frame outlives the setter's call.
 *
 * *Rejected*: a request for each socket in weft's own rings.  It needs a task
 * or a future for each, and libcurl changes its wish several times in a
 * transfer.
 */
#include <weft/curl.h>

#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <weft/weft.h>

/* Sockets that are looked at in one go; more come in the next. */
enum { EVENTS_MAX = 64 };

/* In the frame of its task, which waits. */
struct transfer {
	CURL *easy;
	void *user_private;
	/* Under lock: */
	struct transfer *next, *before; /* in idle; NULL: not */
	bool done;
	CURLcode code;
	struct weft_event event;
};

struct weft_curl {
	int epoll_fd, timer_fd;
	pthread_mutex_t lock;
	/* Under lock: */
	CURLM *multi;
	bool driven;
	unsigned users;
	struct transfer idle; /* a ring of those that wait; only its links */
};

/* ---- The set ---- */

static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *arg,
			  void *known)
{
	struct weft_curl *curl = arg;
	struct epoll_event event = { .data.fd = fd };
	int r;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		epoll_ctl(curl->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	event.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) |
		       (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
	r = epoll_ctl(curl->epoll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd,
		      &event);
	if (r == 0 && !known)
		curl_multi_assign(curl->multi, fd, curl);
	return r;
}

static int time_changed(CURLM *multi, long timeout_ms, void *arg)
{
	struct weft_curl *curl = arg;
	struct itimerspec time = { .it_value = { 0, 0 } };

	(void)multi;
	if (timeout_ms > 0) {
		time.it_value.tv_sec = timeout_ms / 1000;
		time.it_value.tv_nsec = timeout_ms % 1000 * 1000000;
	} else if (timeout_ms == 0) {
		time.it_value.tv_nsec = 1; /* 0 would be never */
	}
	return timerfd_settime(curl->timer_fd, 0, &time, NULL);
}

/* ---- Driving ---- */

static void idle_remove(struct transfer *t)
{
	t->before->next = t->next;
	t->next->before = t->before;
	t->next = t->before = NULL;
}

static void idle_append(struct weft_curl *curl, struct transfer *t)
{
	t->next = &curl->idle;
	t->before = curl->idle.before;
	t->before->next = t;
	curl->idle.before = t;
}

static void wake(struct transfer *t)
{
	if (t->next)
		idle_remove(t);
	weft_event_set(&t->event);
}

/* For CURL1. */
static void nudge(struct weft_curl *curl)
{
	if (!curl->driven && curl->idle.next != &curl->idle)
		wake(curl->idle.next);
}

/* Takes a handle out of the multi handle, and gives it back as it was. */
static void take_out(struct weft_curl *curl, struct transfer *t)
{
	curl_multi_remove_handle(curl->multi, t->easy);
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t->user_private);
}

static void collect(struct weft_curl *curl)
{
	struct transfer *t;
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(curl->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
				  (char **)&t);
		t->code = message->data.result;
		t->done = true;
		take_out(curl, t);
		wake(t);
	}
}

static void socket_ready(struct weft_curl *curl, const struct epoll_event *e)
{
	uint64_t times;
	int fd = e->data.fd, what = 0, running;

	if (fd == curl->timer_fd) {
		/* Nothing is there if the time has changed meanwhile. */
		if (read(fd, &times, sizeof(times)) == sizeof(times))
			curl_multi_socket_action(curl->multi,
						 CURL_SOCKET_TIMEOUT, 0,
						 &running);
		return;
	}
	if (e->events & (EPOLLIN | EPOLLHUP))
		what |= CURL_CSELECT_IN;
	if (e->events & EPOLLOUT)
		what |= CURL_CSELECT_OUT;
	if (e->events & EPOLLERR)
		what |= CURL_CSELECT_ERR;
	curl_multi_socket_action(curl->multi, fd, what, &running);
}

/* Lets libcurl do what it can do now. */
static void drive(struct weft_curl *curl)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(curl->epoll_fd, events, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++)
		socket_ready(curl, &events[i]);
	collect(curl);
}

/* Under lock, which it gives up meanwhile. */
static int wait_once(struct weft_curl *curl, struct transfer *t)
{
	bool drives = !curl->driven;
	int r;

	if (drives)
		curl->driven = true;
	else
		idle_append(curl, t);
	weft_event_clear(&t->event);
	pthread_mutex_unlock(&curl->lock);
	r = drives ? weft_poll(curl->epoll_fd, POLLIN) :
		     weft_event_wait(&t->event);
	pthread_mutex_lock(&curl->lock);
	if (drives)
		curl->driven = false;
	else if (t->next)
		idle_remove(t);
	if (drives && r > 0)
		drive(curl);
	return r < 0 ? r : 0;
}

/* ---- Calls ---- */

/* 0, or -EPERM, -ECANCELED, -ETIMEDOUT. */
static int may_wait(void)
{
	/* Where a wait may begin, this finds that there is no descriptor. */
	int r = weft_poll(-1, 0);

	if (r != -EBADF)
		return r;
	/* A deadline that passed just now need not be noticed yet. */
	return weft_deadline_passed() ? weft_yield() : 0;
}

static int error_of(CURLMcode code)
{
	switch (code) {
	case CURLM_OK:
		return 0;
	case CURLM_ADDED_ALREADY:
		return -EBUSY;
	case CURLM_OUT_OF_MEMORY:
		return -ENOMEM;
	default:
		return -EINVAL;
	}
}

/* Under lock. */
static int begin(struct weft_curl *curl, struct transfer *t)
{
	int running, r;

	curl_easy_getinfo(t->easy, CURLINFO_PRIVATE, (char **)&t->user_private);
	r = error_of(curl_multi_add_handle(curl->multi, t->easy));
	if (r < 0)
		return r;
	curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
	/* Without it libcurl changes the action for SIGPIPE of the process. */
	curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Without it a transfer that is removed waits for the thread that looks
	 * up its name, which holds up all others. */
	curl_easy_setopt(t->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	curl_multi_socket_action(curl->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(curl);
	return 0;
}

int weft_curl_perform(struct weft_curl *curl, void *easy)
{
	struct transfer t = { .easy = easy };
	int r = may_wait();

	if (r == 0 && !easy)
		r = -EINVAL;
	if (r < 0)
		return r;
	pthread_mutex_lock(&curl->lock);
	curl->users++;
	r = begin(curl, &t);
	if (r == 0) {
		while (r == 0 && !t.done)
			r = wait_once(curl, &t);
		if (t.done)
			r = (int)t.code;
		else
			take_out(curl, &t);
	}
	curl->users--;
	nudge(curl);
	pthread_mutex_unlock(&curl->lock);
	return r;
}

void *weft_curl_multi(struct weft_curl *curl)
{
	return curl->multi;
}

/* ---- Life ---- */

static void init_libcurl(void)
{
	(void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void object_free(struct weft_curl *curl)
{
	if (curl->multi)
		curl_multi_cleanup(curl->multi);
	if (curl->timer_fd >= 0)
		close(curl->timer_fd);
	pthread_mutex_destroy(&curl->lock);
	free(curl);
}

static int watch_timer(struct weft_curl *curl)
{
	struct epoll_event event = { .events = EPOLLIN,
				     .data.fd = curl->timer_fd };

	if (epoll_ctl(curl->epoll_fd, EPOLL_CTL_ADD, curl->timer_fd, &event) <
	    0)
		return errno == ENOSPC ? -ENOMEM : -errno;
	curl_multi_setopt(curl->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
	curl_multi_setopt(curl->multi, CURLMOPT_SOCKETDATA, curl);
	curl_multi_setopt(curl->multi, CURLMOPT_TIMERFUNCTION, time_changed);
	curl_multi_setopt(curl->multi, CURLMOPT_TIMERDATA, curl);
	return 0;
}

int weft_curl_open(struct weft_curl **ret_curl)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct weft_curl *curl = calloc(1, sizeof(*curl));
	int r = 0;

	if (!curl)
		return -ENOMEM;
	pthread_once(&once, init_libcurl);
	pthread_mutex_init(&curl->lock, NULL);
	curl->idle.next = curl->idle.before = &curl->idle;
	curl->timer_fd = -1;
	curl->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (curl->epoll_fd < 0)
		r = -errno;
	if (r == 0) {
		curl->timer_fd = timerfd_create(CLOCK_MONOTONIC,
						TFD_CLOEXEC | TFD_NONBLOCK);
		if (curl->timer_fd < 0)
			r = -errno;
	}
	if (r == 0) {
		curl->multi = curl_multi_init();
		r = curl->multi ? watch_timer(curl) : -ENOMEM;
	}
	if (r < 0) {
		if (curl->epoll_fd >= 0)
			close(curl->epoll_fd);
		object_free(curl);
		return r;
	}
	*ret_curl = curl;
	return 0;
}

int weft_curl_close(struct weft_curl *curl)
{
	unsigned users;
	int r;

	if (!curl)
		return 0;
	pthread_mutex_lock(&curl->lock);
	users = curl->users;
	pthread_mutex_unlock(&curl->lock);
	if (users > 0)
		return -EBUSY;
	r = weft_close(curl->epoll_fd);
	if (r == -EPERM)
		return r;
	/* The sockets that libcurl closes now are in no set. */
	curl->epoll_fd = -1;
	object_free(curl);
	return 0;
}
