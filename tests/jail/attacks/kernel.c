/*
 * What belongs to the whole machine. Each call has arguments that the kernel refuses after it has looked at the
 * right, so that nothing happens when the right is there.
 */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <sys/io.h>
#endif

static enum verdict bpf(void)
{
	struct ways ways = { 0 };
	union bpf_attr map = { .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1 };
	try_way(&ways, "BPF_MAP_CREATE", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map)));
	try_way(&ways, "a bpf call that needs no right", syscall(SYS_bpf, BPF_OBJ_GET, NULL, 0));
	return judge(&ways);
}

static enum verdict perf(void)
{
	struct perf_event_attr clock = { .type = PERF_TYPE_SOFTWARE,
					 .size = sizeof(clock),
					 .config = PERF_COUNT_SW_TASK_CLOCK,
					 .exclude_kernel = 1,
					 .exclude_hv = 1,
					 .disabled = 1 };
	return outcome("perf_event_open", syscall(SYS_perf_event_open, &clock, 0, -1, -1, 0));
}

static enum verdict io_uring(void)
{
	unsigned char parameters[256] = { 0 };
	return outcome("io_uring_setup", syscall(SYS_io_uring_setup, 1, parameters));
}

/* 1 is UFFD_USER_MODE_ONLY, the form that needs no right. */
static enum verdict userfault(void)
{
	return outcome("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC | 1));
}

static enum verdict modules(void)
{
	struct ways ways = { 0 };
	const char *const call[] = { "init_module", "finit_module", "delete_module" };
	long results[3];
	int errors[3];
	results[0] = syscall(SYS_init_module, NULL, 0, ""), errors[0] = errno;
	results[1] = syscall(SYS_finit_module, -1, "", 0), errors[1] = errno;
	results[2] = syscall(SYS_delete_module, "talon-hostile-none", O_NONBLOCK), errors[2] = errno;
	for (int i = 0; i < 3; i++) {
		/* Wrong arguments after the right was granted; a kernel without modules has not got the calls. */
		int granted = results[i] >= 0 || (errors[i] != EPERM && errors[i] != ENOSYS && errors[i] != EACCES);
		errno = errors[i];
		try_way(&ways, call[i], granted ? 0 : -1);
	}
	return judge(&ways);
}

static enum verdict kexec(void)
{
	/* No such flags, which is looked at second. */
	return reached("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0xffffUL), EINVAL);
}

static enum verdict restart(void)
{
	/* None of the magic numbers, which are looked at second. */
	return reached("reboot", syscall(SYS_reboot, 0, 0, 0, NULL), EINVAL);
}

static enum verdict set_clock(void)
{
	struct timex odd = { .modes = ADJ_TICK, .tick = 1 };
	return reached("adjtimex", adjtimex(&odd), EINVAL);
}

/* The names that it has: no change, but the same right. */
static enum verdict set_names(void)
{
	struct ways ways = { 0 };
	char name[65] = { 0 };
	gethostname(name, sizeof(name) - 1);
	try_way(&ways, "sethostname", sethostname(name, strlen(name)));
	getdomainname(name, sizeof(name) - 1);
	try_way(&ways, "setdomainname", setdomainname(name, strlen(name)));
	return judge(&ways);
}

static enum verdict swap(void)
{
	return reached("swapon", swapon("/talon-hostile-none", 0), ENOENT);
}

static enum verdict accounting(void)
{
	return reached("acct", acct("/talon-hostile-none"), ENOENT);
}

static enum verdict ports(void)
{
#if defined(__x86_64__)
	struct ways ways = { 0 };
	try_way(&ways, "iopl", iopl(3));
	try_way(&ways, "ioperm", ioperm(0x80, 1, 1));
	return judge(&ways);
#else
	return is_untried("this processor has no I/O ports");
#endif
}

/* 3 reads the last messages and leaves them where they are. */
static enum verdict kernel_log(void)
{
	char text[128];
	return outcome("syslog", klogctl(3, text, sizeof(text)));
}

static enum verdict quota(void)
{
	return reached("quotactl", syscall(SYS_quotactl, 0x80000100L /* Q_SYNC */, "/talon-hostile-none", 0, NULL), ENOENT);
}

/* FAN_REPORT_FID is the form that needs no right. */
static enum verdict watch_files(void)
{
	return outcome("fanotify_init", syscall(SYS_fanotify_init, 0x200, O_RDONLY));
}

#if defined(__x86_64__)
/* Call 20 of the 32-bit table is getpid. */
static int old_abi(void *argument)
{
	long result;
	(void)argument;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "r8", "r9", "r10", "r11", "memory");
	return result > 0 ? 0 : (int)-result;
}
#endif

/* Another table of system calls, by which a filter that knows only its own one is got round. */
static enum verdict foreign_abi(void)
{
#if defined(__x86_64__)
	struct ways ways = { 0 };
	try_way(&ways, "a call of the x32 table", syscall(0x40000000 | SYS_getpid));
	int code = in_child(old_abi, NULL);
	if (code == 0)
		return is_open("a call of the 32-bit table");
	if (code == 256 + SIGSYS)
		return is_blocked(EPERM, "killed by SIGSYS for a call of the 32-bit table");
	if (code == 256 + SIGSEGV)
		return judge(&ways);
	errno = code;
	return is_blocked(errno, "a call of the 32-bit table");
#else
	return is_untried("this processor has one table of system calls");
#endif
}

static enum verdict shared_memory(void)
{
	if (given_number("SHM_KEY") == 0)
		return is_untried("no segment could be made for it");
	return outcome("a shared memory segment of the host", shmget(given_number("SHM_KEY"), 1, 0));
}

static enum verdict message_queue(void)
{
	struct ways ways = { 0 };
	try_way(&ways, "a message queue of the host", mq_open("/talon-hostile", O_RDONLY));
	try_way(&ways, "a file in the host's /dev/shm", shm_open("/talon-hostile", O_RDONLY, 0));
	return judge(&ways);
}

/* Every open of a program by any process of the host is an event of such a watch. */
static enum verdict watch_programs(void)
{
	int watch = inotify_init1(IN_CLOEXEC);
	if (watch < 0)
		return is_blocked(errno, "inotify_init1");
	return outcome("a watch on the host's programs", inotify_add_watch(watch, "/usr/bin", IN_OPEN | IN_ACCESS));
}

const struct attack kernel_attacks[] = {
	{ "bpf", bpf },
	{ "perf-event", perf },
	{ "io-uring", io_uring },
	{ "userfaultfd", userfault },
	{ "modules", modules },
	{ "kexec", kexec },
	{ "reboot", restart },
	{ "clock-set", set_clock },
	{ "hostname-set", set_names },
	{ "swapon", swap },
	{ "acct", accounting },
	{ "io-ports", ports },
	{ "kernel-log", kernel_log },
	{ "quota", quota },
	{ "fanotify", watch_files },
	{ "inotify", watch_programs },
	{ "foreign-abi", foreign_abi },
	{ "host-shared-memory", shared_memory },
	{ "host-queues", message_queue },
	{ NULL, NULL },
};
