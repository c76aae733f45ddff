/* SPDX-License-Identifier: MIT */
#include "runtime/base/handler.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* SIG_DFL or SIG_IGN; the kernel does not look at SA_SIGINFO for them. */
static bool is_plain(const struct sigaction *action, void (*plain)(int))
{
	return action->sa_handler == plain;
}

/* Is weft's handler in force? */
static bool is_in_force(const struct weft__handler *handler,
			const struct sigaction *now)
{
	return (now->sa_flags & SA_SIGINFO) &&
	       now->sa_sigaction == handler->fn;
}

static bool is_same(const struct sigaction *one, const struct sigaction *two)
{
	for (int i = 1; i < NSIG; i++)
		if (sigismember(&one->sa_mask, i) !=
		    sigismember(&two->sa_mask, i))
			return false;
	return one->sa_handler == two->sa_handler &&
	       one->sa_flags == two->sa_flags;
}

/* H4 */
static void before_set(struct weft__handler *handler,
		       const struct sigaction *now)
{
	/* relaxed: set by the caller alone. */
	const struct sigaction *before = weft__load(&handler->before, relaxed);
	struct sigaction *next = &handler->actions[before == handler->actions];

	if (before && is_same(before, now))
		return;
	*next = *now;
	/* pairs: [handler.before] */
	weft__store(&handler->before, next, release);
}

/* H3.  Where there is no handler, SA_RESTART says nothing: signal(3) sets it
 * with SIG_DFL, too. */
static int flags_kept(const struct sigaction *action)
{
	return is_plain(action, SIG_DFL) || is_plain(action, SIG_IGN) ?
		       action->sa_flags & SA_NODEFER :
		       action->sa_flags & (SA_NODEFER | SA_RESTART);
}

int weft__handler_set(struct weft__handler *handler, int number)
{
	struct sigaction action, now;

	if (sigaction(number, NULL, &now) < 0)
		return -errno;
	if (is_in_force(handler, &now))
		return 0;
	/* relaxed: see the header. */
	if (weft__load(&handler->set, relaxed) && !is_plain(&now, SIG_DFL) &&
	    !is_plain(&now, SIG_IGN))
		return 0; /* H2 */
	before_set(handler, &now); /* H1 */
	/* relaxed: the handler is not in force. */
	weft__store(&handler->used, false, relaxed);
	action = (struct sigaction){
		.sa_sigaction = handler->fn,
		.sa_mask = now.sa_mask, /* H3 */
		.sa_flags = SA_SIGINFO | SA_ONSTACK | handler->flags |
			    flags_kept(&now),
	};
	if (sigaction(number, &action, NULL) < 0)
		return -errno;
	/* relaxed: see the header. */
	weft__store(&handler->set, true, relaxed);
	return 0;
}

void weft__handler_reset(struct weft__handler *handler, int number)
{
	struct sigaction now, none = { .sa_handler = SIG_DFL };

	if (sigaction(number, NULL, &now) < 0 || !is_in_force(handler, &now))
		return; /* H2 */
	/* relaxed: set by the caller alone; a signal that comes now may meet
	 * either action. */
	sigaction(number,
		  weft__load(&handler->used, relaxed) ?
			  &none :
			  weft__load(&handler->before, relaxed),
		  NULL);
	/* relaxed: see the header. */
	weft__store(&handler->set, false, relaxed);
}

bool weft__handler_is_default(struct weft__handler *handler)
{
	/* pairs: [handler.before] */
	return is_plain(weft__load(&handler->before, acquire), SIG_DFL);
}

/* The signal is sent again to this thread, where it is blocked until the
 * handler returns.  A fault would occur again, but not one that is reported
 * late, nor a signal that a process has sent. */
void weft__handler_default(int number, siginfo_t *info)
{
	struct sigaction action = { .sa_handler = SIG_DFL };

	sigaction(number, &action, NULL);
	if (syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid),
		    number, info) < 0)
		raise(number);
}

/* The kernel ignores no fault; faults have positive codes.  It sets the default
 * action before it calls a handler with SA_RESETHAND. */
void weft__handler_pass(struct weft__handler *handler, int number,
			siginfo_t *info, void *context)
{
	/* pairs: [handler.before] */
	const struct sigaction *before = weft__load(&handler->before, acquire);

	if (is_plain(before, SIG_IGN) && info->si_code <= 0)
		return;
	if (is_plain(before, SIG_IGN) || is_plain(before, SIG_DFL) ||
	    ((before->sa_flags & (int)SA_RESETHAND) &&
	     /* relaxed: one thread is first, and that is all. */
	     weft__swap(&handler->used, true, relaxed)))
		weft__handler_default(number, info);
	else if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(number, info, context);
	else
		before->sa_handler(number);
}
