/* Becoming more than one is: ids, capabilities, priorities, limits, namespaces of one's own, keys. */
#define _GNU_SOURCE
#include "attack.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static enum verdict become_root(void)
{
	struct ways ways = { 0 };
	gid_t root = 0;
	try_way(&ways, "setgroups", setgroups(1, &root));
	try_way(&ways, "setresgid", setresgid(0, 0, 0));
	try_way(&ways, "setresuid", setresuid(0, 0, 0));
	return judge(&ways);
}

static enum verdict raise_capabilities(void)
{
	struct ways ways = { 0 };
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { ~0u, ~0u, ~0u }, { 0x1ff, 0x1ff, 0x1ff } };
	try_way(&ways, "capset", syscall(SYS_capset, &head, data));
	try_way(&ways, "an ambient capability", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
	try_way(&ways, "keepcaps and securebits", prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
	return judge(&ways);
}

static enum verdict new_privileges(void)
{
	struct ways ways = { 0 };
	try_way(&ways, "clearing no_new_privs", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
	long set = status_line("CapBnd", 16);
	errno = EPERM;
	if (set > 0)
		return is_open("the bounding set holds capabilities, new privileges are %s",
			       status_line("NoNewPrivs", 10) == 1 ? "off" : "possible");
	return judge(&ways);
}

static enum verdict raise_limits(void)
{
	struct ways ways = { 0 };
	for (int resource = 0; resource < RLIM_NLIMITS; resource++) {
		struct rlimit limit;
		if (getrlimit(resource, &limit) < 0 || limit.rlim_max == RLIM_INFINITY)
			continue;
		limit.rlim_max += 1;
		limit.rlim_cur = limit.rlim_max;
		try_way(&ways, "raising a hard limit", setrlimit(resource, &limit));
	}
	return judge(&ways);
}

/*
 * Asks for what it may have anyway: a core limit of 0 in the place of 1. To a core that goes to a program, 0 is no limit,
 * and 1 is the one that forbids it.
 */
static enum verdict core_again(void)
{
	struct ways ways = { 0 };
	struct rlimit limit;
	if (getrlimit(RLIMIT_CORE, &limit) < 0)
		return is_blocked(errno, "getrlimit");
	limit.rlim_cur = 0;
	try_way(&ways, "setrlimit", syscall(SYS_setrlimit, RLIMIT_CORE, &limit));
	try_way(&ways, "prlimit", prlimit(0, RLIMIT_CORE, &limit, NULL));
	try_way(&ways, "prlimit by number", prlimit(getpid(), RLIMIT_CORE, &limit, NULL));
	return judge(&ways);
}

static enum verdict raise_priority(void)
{
	struct ways ways = { 0 };
	errno = 0;
	int now = getpriority(PRIO_PROCESS, 0);
	try_way(&ways, "setpriority", setpriority(PRIO_PROCESS, 0, now - 1));
	/* I/O class 1 is realtime. */
	try_way(&ways, "ioprio_set", syscall(SYS_ioprio_set, 1, 0, 1 << 13));
	return judge(&ways);
}

static enum verdict realtime(void)
{
	struct ways ways = { 0 };
	struct sched_param lowest = { .sched_priority = 1 };
	struct {
		unsigned int size, policy;
		unsigned long long flags;
		int nice;
		unsigned int priority;
		unsigned long long runtime, deadline, period;
	} deadline = { .size = 48, .policy = 6, .runtime = 1000000, .deadline = 100000000, .period = 100000000 };
	try_way(&ways, "SCHED_FIFO", sched_setscheduler(0, SCHED_FIFO, &lowest));
	try_way(&ways, "SCHED_RR", sched_setscheduler(0, SCHED_RR, &lowest));
	try_way(&ways, "SCHED_DEADLINE", syscall(SYS_sched_setattr, 0, &deadline, 0));
	return judge(&ways);
}

static enum verdict unshare_user(void)
{
	return outcome("unshare(CLONE_NEWUSER)", unshare(CLONE_NEWUSER));
}

static enum verdict unshare_others(void)
{
	struct ways ways = { 0 };
	const int kinds[] = { CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80 };
	for (int i = 0; i < 7; i++)
		try_way(&ways, "unshare", unshare(kinds[i]));
	return judge(&ways);
}

static enum verdict clone_user(void)
{
	pid_t child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
	if (child == 0)
		_exit(0);
	enum verdict verdict = outcome("clone(CLONE_NEWUSER)", child);
	if (child > 0)
		waitpid(child, NULL, 0);
	return verdict;
}

static enum verdict clone3_user(void)
{
	struct clone_args arguments = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	pid_t child = syscall(SYS_clone3, &arguments, sizeof(arguments));
	if (child == 0)
		_exit(0);
	enum verdict verdict = outcome("clone3(CLONE_NEWUSER)", child);
	if (child > 0)
		waitpid(child, NULL, 0);
	return verdict;
}

/* All capabilities, in a new user namespace: the usual way to the kernel's less tested parts. */
static int mount_in_user_namespace(void *argument)
{
	(void)argument;
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return errno;
	return mount("none", given("OWN_DIR"), "tmpfs", 0, NULL) < 0 ? errno : 0;
}

static enum verdict regain_capabilities(void)
{
	int code = in_child(mount_in_user_namespace, NULL);
	if (code > 0)
		errno = code;
	return outcome("a mount in a new user namespace", code == 0 ? 0 : -1);
}

static long keyctl(int operation, long a, long b, long c, long d)
{
	return syscall(SYS_keyctl, operation, a, b, c, d);
}

static enum verdict add_key(void)
{
	long key = syscall(SYS_add_key, "user", "talon-hostile-own", "x", 1, KEY_SPEC_USER_KEYRING);
	enum verdict verdict = outcome("add_key to the user's keyring", key);
	if (key >= 0)
		keyctl(KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING, 0, 0);
	return verdict;
}

/* A key of another user that every user may read. */
static enum verdict read_key(void)
{
	struct ways ways = { 0 };
	char text[64];
	if (given_number("KEY_ID") == 0)
		return is_untried("no key could be made for it");
	try_way(&ways, "KEYCTL_READ", keyctl(KEYCTL_READ, given_number("KEY_ID"), (long)text, sizeof(text), 0));
	long found = keyctl(KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, (long)"user", (long)"talon-hostile-peer", 0);
	try_way(&ways, "KEYCTL_SEARCH", found);
	try_way(&ways, "request_key", syscall(SYS_request_key, "user", "talon-hostile-peer", NULL, 0));
	return judge(&ways);
}

const struct attack privilege_attacks[] = {
	{ "become-root", become_root },
	{ "raise-capabilities", raise_capabilities },
	{ "new-privileges", new_privileges },
	{ "raise-limits", raise_limits },
	{ "core-again", core_again },
	{ "raise-priority", raise_priority },
	{ "realtime", realtime },
	{ "userns-unshare", unshare_user },
	{ "userns-clone", clone_user },
	{ "userns-clone3", clone3_user },
	{ "userns-capabilities", regain_capabilities },
	{ "unshare-others", unshare_others },
	{ "add-key", add_key },
	{ "read-key", read_key },
	{ NULL, NULL },
};
