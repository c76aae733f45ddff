/* SPDX-License-Identifier: MIT */
/*
 * libcurl: transfers in tasks, which share connections.  In libweft-curl; its
 * users also include <curl/curl.h>.
 *
 *	CURL *easy = curl_easy_init();
 *
 *	curl_easy_setopt(easy, CURLOPT_URL, "http://127.0.0.1:8080/");
 *	WEFT_WITHIN(WEFT_SEC(10))
 *		r = weft_curl_perform(curl, easy);
 *	curl_easy_cleanup(easy);
 *
 * A transfer is libcurl's easy handle, with all its options and callbacks.  All
 * transfers of an object are in one multi handle of libcurl: they reuse each
 * other's connections, and share those of HTTP/2.  While tasks wait for their
 * transfers, one of them waits for all sockets and lets libcurl go on.
 *
 * So the callbacks of a transfer may run in another task than its own.  They
 * must not suspend, and must not call libweft-curl or use the multi handle.
 */
#ifndef WEFT_CURL_H
#define WEFT_CURL_H

#include <weft/config.h>

WEFT_BEGIN_DECLS

struct weft_curl;

/* Makes an object for the tasks of one runtime; calls curl_global_init() before
 * the first.  Does not suspend.  Returns 0, -ENOMEM, or an error of
 * epoll_create1(2) or timerfd_create(2). */
WEFT_API int weft_curl_open(struct weft_curl **ret_curl);

/* The CURLM of the object, for curl_multi_setopt() before the first transfer:
 * limits of connections and the like.  The callbacks for sockets and for time
 * are taken.  Does not suspend. */
WEFT_API void *weft_curl_multi(struct weft_curl *curl);

/*
 * Carries out the transfer of an easy handle (a CURL *), as
 * curl_easy_perform().  It sets CURLOPT_NOSIGNAL and CURLOPT_QUICK_EXIT, and
 * CURLOPT_PRIVATE until it returns.  Suspends.  A transfer whose task is
 * cancelled or late is removed, and its connection is closed.  (libcurl before
 * 7.87 then waits for the thread that looks up its name.)
 *
 * Returns a CURLcode: CURLE_OK is 0, the errors are positive; or -ECANCELED or
 * -ETIMEDOUT; -EBUSY: the handle is in use; -EINVAL: it is none; -ENOMEM;
 * -EPERM (not in a task, or in a future).
 */
WEFT_API int weft_curl_perform(struct weft_curl *curl,
			       void *easy) WEFT_WARN_UNUSED;

/* Closes all connections and frees the object; NULL is none.  Suspends, and
 * ignores deadlines and cancellation.  Returns 0, -EPERM (not in a task), or
 * -EBUSY: a task is in a call on it. */
WEFT_API int weft_curl_close(struct weft_curl *curl);

WEFT_END_DECLS

#endif
