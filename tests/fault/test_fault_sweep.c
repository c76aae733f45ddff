/* SPDX-License-Identifier: MIT */
/*
 * Suite fault/sweep: no call that fails does harm.
 *
 * Of each scene (tests/fault/fault_scene.c), and each kind of call
 * (tests/fault/fault.h), the first call fails, in the next run the second one,
 * and so on until a run meets none that fails; by itself, and with all that
 * follow for a while.
 *
 *	each run, in a process of its own:
 *	the scene with the fault --> the scene without --> what is left?
 *
 * A call of the scene succeeds, or gives an error that is documented, and that
 * only after a call has failed.  The runtime ends; what it held, it has given
 * back; and the scene without the fault has no error at all.
 */
#include <check.h>
#include <dirent.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fault/fault_scene.h"
#include "tests/support/engine.h"
#include "tests/support/few.h"
#include "tests/support/needs.h"
#include "tests/support/threads.h"

/* The exit status of a process that has no complaint. */
enum { FAILED_A_CALL = 10, FAILED_NONE = 11 };

/* A runtime that is not done by then hangs. */
enum { SECONDS_MAX = 30 };

struct sweep {
	const struct fault_scene *scene;
	enum fault_kind kind;
	unsigned workers;
	int error;
	unsigned n;
	bool lasts;
};

/* ---- Resources that are left -------------------------------------------- */

struct left {
	struct fault_held held;
	int fds, threads, rings;
};

static int entries(const char *folder)
{
	DIR *dir = opendir(folder);
	int count = 0;

	EXPECT(dir != NULL);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Mappings of rings. */
static int rings_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	int count = 0;

	EXPECT(maps != NULL);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, "io_uring") != NULL;
	fclose(maps);
	return count;
}

static struct left left_now(void)
{
	struct left left = {
		.fds = entries("/proc/self/fd"),
		/* The kernel's for io_uring may outlive a runtime. */
		.threads = threads_count("iou-", false),
		.rings = rings_mapped(),
	};

	left.held = fault_held();
	return left;
}

static bool left_equal(const struct left *a, const struct left *b)
{
	return a->held.blocks == b->held.blocks &&
	       a->held.mapped_pages == b->held.mapped_pages &&
	       a->fds == b->fds && a->threads == b->threads &&
	       a->rings == b->rings;
}

static void left_say(const char *when, const struct left *left)
{
	fprintf(stderr,
		"%s: %zu blocks, %zu pages, %d descriptors, %d threads, "
		"%d mappings of rings\n",
		when, left->held.blocks, left->held.mapped_pages, left->fds,
		left->threads, left->rings);
}

/* A thread that was detached goes by itself. */
static void expect_left(const struct left *before, uint64_t blocks_ever)
{
	weft_nsec until_ns = weft_now() + WEFT_SEC(20);
	struct left now = left_now();

	while (!left_equal(before, &now) && weft_now() < until_ns) {
		poll(NULL, 0, 1);
		now = left_now();
	}
	if (left_equal(before, &now))
		return;
	left_say("before", before);
	left_say("after", &now);
	fault_name_blocks(blocks_ever);
	_exit(EXIT_FAILURE);
}

/* ---- A run -------------------------------------------------------------- */

static void run(const struct sweep *sweep)
{
	uint64_t blocks_ever = fault_blocks_ever();
	struct left before = left_now();
	bool fired;

	alarm(SECONDS_MAX);
	fault_begin(sweep->kind, sweep->error, sweep->n, sweep->lasts);
	sweep->scene->run(sweep->workers);
	fault_end();
	fired = fault_fired();
	fault_begin(FAULT_NONE, 0, 0, false);
	sweep->scene->run(sweep->workers);
	expect_left(&before, blocks_ever);
	_exit(fired ? FAILED_A_CALL : FAILED_NONE);
}

/* The output of the child goes to a file, for run_complain(). */
static int run_apart(const struct sweep *sweep, int said)
{
	int status;
	pid_t child;

	ck_assert_int_eq(ftruncate(said, 0), 0);
	ck_assert_int_eq(lseek(said, 0, SEEK_SET), 0);
	child = fork();
	ck_assert_int_ge(child, 0);
	if (child == 0) {
		EXPECT(dup2(said, STDERR_FILENO) == STDERR_FILENO);
		fault_install();
		run(sweep);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	return status;
}

static void run_complain(const struct sweep *sweep, int status, int said)
{
	char how[64], text[1024];
	ssize_t bytes = pread(said, text, sizeof(text) - 1, 0);

	text[bytes > 0 ? bytes : 0] = 0;

	if (WIFSIGNALED(status))
		snprintf(how, sizeof(how), "killed: %s",
			 strsignal(WTERMSIG(status)));
	else
		snprintf(how, sizeof(how), "exit status %d",
			 WEXITSTATUS(status));
	ck_abort_msg("'%s', %u workers, kind %d, %s, call %u%s: %s: %s",
		     sweep->scene->name, sweep->workers, sweep->kind,
		     strerrorname_np(sweep->error), sweep->n,
		     sweep->lasts ? " and those that follow" : "", how, text);
}

/* ---- Sweeps ------------------------------------------------------------- */

enum { ERRORS_MAX = 6 };

static const int errors[FAULT_KINDS][ERRORS_MAX] = {
	[FAULT_HEAP] = { ENOMEM },
	[FAULT_OWN] = { ENOMEM },
	[FAULT_MAP] = { ENOMEM },
	[FAULT_THREAD] = { EAGAIN },
	[FAULT_FD] = { EMFILE, ENFILE, ENOMEM },
	[FAULT_SETUP] = { ENOMEM, EMFILE, ENFILE, EPERM },
	[FAULT_PROBE] = { ENOMEM },
	[FAULT_CANCEL] = { EALREADY, ENOENT, EINTR, ETIME },
	[FAULT_ENTER] = { EINTR, EAGAIN, EBUSY, ENOMEM },
	[FAULT_WATCH] = { ENOMEM, ENOSPC },
	[FAULT_SOCKET] = { ENOBUFS, ENOMEM, EADDRINUSE },
	[FAULT_FILE] = { EAGAIN, EOPNOTSUPP, EIO, ENOMEM, EINTR },
	[FAULT_MESSAGE] = { EAGAIN, ENOMEM, ENOBUFS, EINTR },
	[FAULT_ASIDE] = { EPERM, ENOSYS, EAGAIN },
};

static unsigned errors_count(enum fault_kind kind)
{
	unsigned count = 0;

	while (count < ERRORS_MAX && errors[kind][count])
		count++;
	return count;
}

/* Until a run meets no call that fails.  The errors take turns: with `first` on
 * the first call.  Of a few calls, two workers meet others than one. */
static void sweep_with(struct sweep *sweep, unsigned first, unsigned step)
{
	unsigned count = errors_count(sweep->kind);
	unsigned begin = 1 + (sweep->workers - 1) % step;
	int status = 0, said = memfd_create("said", MFD_CLOEXEC);

	ck_assert_int_ge(said, 0);
	for (sweep->n = begin; status != FAILED_NONE; sweep->n += step) {
		sweep->error = errors[sweep->kind][(first + sweep->n) % count];
		status = run_apart(sweep, said);
		if (!WIFEXITED(status) ||
		    (WEXITSTATUS(status) != FAILED_A_CALL &&
		     WEXITSTATUS(status) != FAILED_NONE))
			run_complain(sweep, status, said);
		status = WEXITSTATUS(status);
	}
	close(said);
}

/* Each call with each error, by itself and with those that follow, where there
 * is time.  Else one worker meets the one, and two the other; and of a slow
 * scene, or with WEFT_TEST_FEW, not each call fails. */
static void sweep_kind(enum fault_kind kind, int i)
{
	bool all = getenv("WEFT_TEST_LONG") != NULL;
	struct sweep sweep = {
		.scene = &fault_scenes[i / 2],
		.kind = kind,
		.workers = i % 2 ? 2 : 1,
	};
	unsigned step = all ? 1 : test_few() * (sweep.scene->slow ? 10 : 1);

	scene_allocator = kind == FAULT_OWN ? &fault_allocator : NULL;

	/* The first run makes what is made once and kept. */
	sweep.scene->run(sweep.workers);
	for (unsigned first = 0; first < (all ? errors_count(kind) : 1);
	     first++) {
		sweep.lasts = sweep.workers == 2;
		sweep_with(&sweep, first, step);
		if (!all)
			continue;
		sweep.lasts = !sweep.lasts;
		sweep_with(&sweep, first, step);
	}
}

#define SWEEP(name, kind)             \
	START_TEST(name)              \
	{                             \
		sweep_kind(kind, _i); \
	}                             \
	END_TEST

SWEEP(an_allocation_fails, FAULT_HEAP)
SWEEP(an_allocation_of_the_program_fails, FAULT_OWN)
SWEEP(a_mapping_fails, FAULT_MAP)
SWEEP(a_thread_cannot_be_made, FAULT_THREAD)
SWEEP(there_is_no_descriptor, FAULT_FD)
SWEEP(a_ring_is_refused, FAULT_SETUP)
SWEEP(a_ring_cannot_be_probed, FAULT_PROBE)
SWEEP(a_request_is_not_cancelled, FAULT_CANCEL)
SWEEP(a_ring_cannot_be_entered, FAULT_ENTER)
SWEEP(a_descriptor_cannot_be_watched, FAULT_WATCH)
SWEEP(a_socket_is_refused_its_address, FAULT_SOCKET)
SWEEP(a_file_is_not_moved_at_once, FAULT_FILE)
SWEEP(a_message_is_not_moved_at_once, FAULT_MESSAGE)
SWEEP(what_is_not_needed_is_refused, FAULT_ASIDE)

/* Before Linux 5.16 a signal that dumps core ends all that share the memory. */
static bool child_ends_alone(void)
{
	const struct rlimit no_core = { 0, 0 };
	pid_t child = vfork();
	int status;

	if (child == 0) {
		(void)setrlimit(RLIMIT_CORE, &no_core);
		(void)kill(getpid(), SIGSYS);
		_exit(1);
	}
	return child > 0 && waitpid(child, &status, 0) == child;
}

static void add(TCase *tc, const TTest *test)
{
	tcase_add_loop_test(tc, test, 0, 2 * fault_scenes_count);
}

static Suite *fault_suite(void)
{
	Suite *suite = suite_create("fault/sweep");
	TCase *memory = tcase_create("memory");
	TCase *kernel = tcase_create("kernel");

	tcase_set_timeout(memory, 300);
	add(memory, an_allocation_fails);
	add(memory, an_allocation_of_the_program_fails);
	add(memory, a_mapping_fails);
	add(memory, a_thread_cannot_be_made);
	suite_add_tcase(suite, memory);

	tcase_set_timeout(kernel, 300);
	add(kernel, there_is_no_descriptor);
	add(kernel, a_ring_is_refused);
	add(kernel, a_ring_cannot_be_probed);
	add(kernel, a_request_is_not_cancelled);
	add(kernel, a_ring_cannot_be_entered);
	add(kernel, a_descriptor_cannot_be_watched);
	add(kernel, a_socket_is_refused_its_address);
	/* The ring moves it then; epoll has nothing but the same calls. */
	if (test_needs(test_has_uring(), "what_is_not_moved_at_once",
		       NEEDS_URING)) {
		add(kernel, a_file_is_not_moved_at_once);
		add(kernel, a_message_is_not_moved_at_once);
	}
	add(kernel, what_is_not_needed_is_refused);
	suite_add_tcase(suite, kernel);
	return suite;
}

int main(void)
{
	SRunner *runner;
	int failed;

	/* One arena, however many threads. */
	mallopt(M_ARENA_MAX, 1);
	scene_has_children = test_needs(test_can(child_ends_alone),
					"processes",
					"a kernel that ends a child alone");
	runner = srunner_create(fault_suite());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
