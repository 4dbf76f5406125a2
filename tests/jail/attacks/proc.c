/* /proc, /sys and the control groups: what the kernel shows of others, and which settings it accepts. */
#define _GNU_SOURCE
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The way to a file of each process that the harness named. */
static enum verdict of_host(const char *file, int flags)
{
	struct ways ways = { 0 };
	for (const pid_t *pid = host_processes(); *pid; pid++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/%s", *pid, file);
		try_way(&ways, file, open(path, flags | O_CLOEXEC));
	}
	return judge(&ways);
}

static int holds_secret(const char *path)
{
	static char text[1 << 16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, text, sizeof(text));
	close(fd);
	if (got > 0 && memmem(text, got, "TALON-HOSTILE-SECRET", 20))
		return 1;
	errno = ENODATA;
	return -1;
}

static enum verdict init_environ(void)
{
	return outcome("a secret in the environment of process 1", holds_secret("/proc/1/environ"));
}

/* Every number that /proc shows, whatever it is. Its own environment holds no secret. */
static enum verdict any_environ(void)
{
	struct ways ways = { 0 };
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	if (!proc)
		return is_blocked(errno, "/proc");
	while ((entry = readdir(proc)))
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
			try_way(&ways, "a secret in another environment",
				holds_secret(join(join("/proc/", entry->d_name), "/environ")));
	closedir(proc);
	return judge(&ways);
}

static enum verdict see_processes(void)
{
	struct ways ways = { 0 };
	for (const pid_t *pid = host_processes(); *pid; pid++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/status", *pid);
		try_way(&ways, "a process of the host", access(path, F_OK));
	}
	return judge(&ways);
}

static enum verdict read_memory(void)
{
	return of_host("mem", O_RDONLY);
}

static enum verdict write_memory(void)
{
	return of_host("mem", O_RDWR);
}

static enum verdict see_descriptors(void)
{
	return of_host("fd/0", O_RDONLY | O_NONBLOCK);
}

/* The root of another process is another way to the files that are not in its own. */
static enum verdict through_root(void)
{
	struct ways ways = { 0 };
	const char *const ways_there[] = { "/proc/self/root", "/proc/self/cwd/../../../../../..", "/proc/1/root",
					   "/proc/1/cwd/../../../../../.." };
	for (int i = 0; i < 4; i++)
		try_way(&ways, ways_there[i], can_read(join(ways_there[i], given("TALON_CONFIG"))));
	for (const pid_t *pid = host_processes(); *pid; pid++) {
		char path[64];
		snprintf(path, sizeof(path), "/proc/%d/root", *pid);
		try_way(&ways, "/proc/PID/root", can_read(join(path, given("TALON_CONFIG"))));
	}
	return judge(&ways);
}

static enum verdict kernel_memory(void)
{
	struct ways ways = { 0 };
	const char *const paths[] = { "/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem" };
	/* What is covered by an empty file can be opened, and has nothing to say. */
	for (int i = 0; i < 4; i++)
		try_way(&ways, paths[i], can_read(paths[i]));
	return judge(&ways);
}

/* What the kernel shows of every process on the machine, not only of the caller. */
static enum verdict kernel_tells(void)
{
	struct ways ways = { 0 };
	const char *const paths[] = { "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats",
				      "/proc/key-users", "/proc/kpagecount", "/proc/kpageflags" };
	for (int i = 0; i < 7; i++)
		try_way(&ways, paths[i], can_read(paths[i]));
	return judge(&ways);
}

/* Opened and closed again: nothing is written. */
static enum verdict writable(const char *const *paths)
{
	struct ways ways = { 0 };
	for (; *paths; paths++) {
		int fd = open(*paths, O_WRONLY | O_CLOEXEC);
		if (try_way(&ways, *paths, fd))
			close(fd);
	}
	return judge(&ways);
}

static enum verdict write_sysctl(void)
{
	const char *const paths[] = { "/proc/sys/kernel/core_pattern",	    "/proc/sys/kernel/hostname",
				      "/proc/sys/vm/drop_caches",	    "/proc/sys/kernel/modprobe",
				      "/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward",
				      "/proc/sys/fs/binfmt_misc/register",  "/proc/irq/default_smp_affinity",
				      NULL };
	return writable(paths);
}

static enum verdict sysrq(void)
{
	const char *const paths[] = { "/proc/sysrq-trigger", "/proc/sys/kernel/sysrq", NULL };
	return writable(paths);
}

static enum verdict write_sysfs(void)
{
	const char *const paths[] = { "/sys/power/state", "/sys/kernel/uevent_helper", "/sys/kernel/mm/ksm/run",
				      "/sys/module/kernel/parameters/panic", "/sys/block/vda/uevent", NULL };
	return writable(paths);
}

static enum verdict write_cgroups(void)
{
	const char *const paths[] = { "/sys/fs/cgroup/cgroup.procs",	     "/sys/fs/cgroup/unified/cgroup.procs",
				      "/sys/fs/cgroup/memory/cgroup.procs",  "/sys/fs/cgroup/pids/cgroup.procs",
				      "/sys/fs/cgroup/memory/release_agent", "/sys/fs/cgroup/cgroup.subtree_control",
				      NULL };
	return writable(paths);
}

static enum verdict debugfs(void)
{
	struct ways ways = { 0 };
	const char *const paths[] = { "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/kernel/security", "/sys/fs/bpf" };
	for (int i = 0; i < 4; i++)
		try_way(&ways, paths[i], open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	return judge(&ways);
}

static enum verdict oom_score(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	return outcome("to be killed last when memory runs out", fd < 0 ? -1 : write(fd, "-500", 4));
}

const struct attack proc_attacks[] = {
	{ "proc-1-environ", init_environ },
	{ "proc-any-environ", any_environ },
	{ "proc-see-processes", see_processes },
	{ "proc-read-memory", read_memory },
	{ "proc-write-memory", write_memory },
	{ "proc-descriptors", see_descriptors },
	{ "proc-through-root", through_root },
	{ "kernel-memory", kernel_memory },
	{ "kernel-tells", kernel_tells },
	{ "write-sysctl", write_sysctl },
	{ "sysrq", sysrq },
	{ "write-sysfs", write_sysfs },
	{ "write-cgroups", write_cgroups },
	{ "debugfs", debugfs },
	{ "oom-score", oom_score },
	{ NULL, NULL },
};
