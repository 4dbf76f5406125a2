/* Other processes: signals, tracing, their memory, descriptors, limits and namespaces. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static enum verdict each(const char *what, long (*way)(pid_t))
{
	struct ways ways = { 0 };
	for (const pid_t *pid = host_processes(); *pid; pid++)
		try_way(&ways, what, way(*pid));
	return judge(&ways);
}

/* Signal 0 only asks whether a signal could be sent. */
static long ask(pid_t pid)
{
	return kill(pid, 0);
}

static enum verdict signal_host(void)
{
	return each("kill", ask);
}

static int pidfd(pid_t pid)
{
	return syscall(SYS_pidfd_open, pid, 0);
}

static long ask_by_pidfd(pid_t pid)
{
	int fd = pidfd(pid);
	return fd < 0 ? -1 : syscall(SYS_pidfd_send_signal, fd, 0, NULL, 0);
}

static enum verdict signal_by_pidfd(void)
{
	return each("pidfd_send_signal", ask_by_pidfd);
}

/* Unlike PTRACE_ATTACH it does not stop the other one. */
static long seize(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, 0, 0);
}

static enum verdict trace_host(void)
{
	return each("PTRACE_SEIZE", seize);
}

static int trace_me(void *argument)
{
	(void)argument;
	return ptrace(PTRACE_TRACEME, 0, 0, 0) < 0 ? errno : 0;
}

/* Of one's own child; refused too, because a traced process can be made to get round a system call filter. */
static enum verdict trace_child(void)
{
	int code = in_child(trace_me, NULL);
	if (code > 0)
		errno = code;
	return outcome("PTRACE_TRACEME", code == 0 ? 0 : -1);
}

/* Nothing is mapped at address 0, so that nothing is read or written: EFAULT comes after the right was granted. */
static long read_nothing(pid_t pid)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { NULL, 1 };
	long result = process_vm_readv(pid, &here, 1, &there, 1, 0);
	return result < 0 && errno == EFAULT ? 0 : result;
}

static long write_nothing(pid_t pid)
{
	char byte = 0;
	struct iovec here = { &byte, 1 }, there = { NULL, 1 };
	long result = process_vm_writev(pid, &here, 1, &there, 1, 0);
	return result < 0 && errno == EFAULT ? 0 : result;
}

static enum verdict read_memory(void)
{
	return each("process_vm_readv", read_nothing);
}

static enum verdict write_memory(void)
{
	return each("process_vm_writev", write_nothing);
}

static long take_descriptor(pid_t pid)
{
	int fd = pidfd(pid);
	return fd < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 0, 0);
}

static enum verdict steal_descriptor(void)
{
	return each("pidfd_getfd", take_descriptor);
}

/* Only reads. */
static long limits(pid_t pid)
{
	struct rlimit limit;
	return prlimit(pid, RLIMIT_NOFILE, NULL, &limit);
}

static enum verdict others_limits(void)
{
	return each("prlimit", limits);
}

/* To the priority that it has: no change, but the same right. */
static long same_priority(pid_t pid)
{
	errno = 0;
	int now = getpriority(PRIO_PROCESS, pid);
	return errno ? -1 : setpriority(PRIO_PROCESS, pid, now);
}

static enum verdict others_priority(void)
{
	return each("setpriority", same_priority);
}

static long enter(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = pidfd(pid);
	return fd < 0 ? -1 : syscall(SYS_setns, fd, 0x00020000 /* CLONE_NEWNS */);
}

static enum verdict enter_namespace(void)
{
	return each("setns", enter);
}

/* Its own parent: the monitor in our jail, which holds what the supervisor sent it. */
static enum verdict monitor(void)
{
	struct ways ways = { 0 };
	const char *const files[] = { "mem", "environ", "fd/0", "root/." };
	pid_t parent = getppid();
	char path[64];
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", parent, files[i]);
		try_way(&ways, files[i], open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	}
	try_way(&ways, "PTRACE_SEIZE", seize(parent));
	try_way(&ways, "process_vm_readv", read_nothing(parent));
	try_way(&ways, "pidfd_getfd", take_descriptor(parent));
	return judge(&ways);
}

/* The right was granted when the kernel finds the arguments wrong, which it looks at second. */
static long wrong_but_granted(long result)
{
	return result < 0 && errno == EINVAL ? 0 : result;
}

/* A monitor that may open no more files sees no more processes. More now than at most: no limit changes. */
static enum verdict limit_monitor(void)
{
	struct ways ways = { 0 };
	struct rlimit wrong = { 1, 0 };
	const int resources[] = { RLIMIT_NOFILE, RLIMIT_AS, RLIMIT_CPU };
	for (int i = 0; i < 3; i++)
		try_way(&ways, "prlimit", wrong_but_granted(prlimit(getppid(), resources[i], &wrong, NULL)));
	return judge(&ways);
}

/* All of a group's or a user's at once: one step down, which stays if it hits, so only what nothing else hits is tried. */
static long yield_all(int which, pid_t parent)
{
	errno = 0;
	int before = getpriority(PRIO_PROCESS, parent);
	if (errno || setpriority(which, which == PRIO_USER ? 0 : getpgid(parent), before + 1) < 0)
		return -1;
	int hit = getpriority(PRIO_PROCESS, parent) != before;
	errno = EPERM;
	return hit ? 0 : -1;
}

/* A monitor that gets no processor comes too late. To what it has, or to no processor at all, which is refused. */
static enum verdict reschedule_monitor(void)
{
	struct ways ways = { 0 };
	struct sched_param none = { 0 };
	cpu_set_t empty;
	pid_t parent = getppid();
	CPU_ZERO(&empty);
	int hit = try_way(&ways, "setpriority", same_priority(parent));
	hit |= try_way(&ways, "sched_setaffinity", wrong_but_granted(sched_setaffinity(parent, sizeof(empty), &empty)));
	int policy = sched_getscheduler(parent);
	hit |= try_way(&ways, "sched_setscheduler", sched_setscheduler(parent, policy < 0 ? SCHED_OTHER : policy, &none));
	/* I/O class 0 is none: that of every process that has not asked for one. */
	hit |= try_way(&ways, "ioprio_set", syscall(SYS_ioprio_set, 1, parent, 0));
	if (!hit) {
		try_way(&ways, "setpriority for its group", yield_all(PRIO_PGRP, parent));
		try_way(&ways, "setpriority for its user", yield_all(PRIO_USER, parent));
	}
	return judge(&ways);
}

const struct attack process_attacks[] = {
	{ "limit-monitor", limit_monitor },
	{ "reschedule-monitor", reschedule_monitor },
	{ "look-into-monitor", monitor },
	{ "signal", signal_host },
	{ "signal-pidfd", signal_by_pidfd },
	{ "ptrace", trace_host },
	{ "ptrace-child", trace_child },
	{ "vm-readv", read_memory },
	{ "vm-writev", write_memory },
	{ "pidfd-getfd", steal_descriptor },
	{ "others-limits", others_limits },
	{ "others-priority", others_priority },
	{ "setns", enter_namespace },
	{ NULL, NULL },
};
