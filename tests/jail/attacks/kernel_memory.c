/*
 * Memory that the kernel allocates for a process and that is in no process's account: only a control group counts it.
 * Each attack holds what it got for a while (HOLD_MS), because a watch that looks now and then has to see it.
 */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	TARGET_MIB = 512,
	SENDERS = 16,
	/* Landlock has a rule for each port of TCP; a rule is 64 bytes or more. */
	PORTS = 65536,
	RULESETS = 64,
	/* A lock is some 200 bytes. Few in each file, because the kernel looks through all of a file's. */
	LOCKED_FILES = 900,
	LOCKS_PER_FILE = 400,
	PATIENCE_S = 30,
};

/* Fills both directions of a pair. The sending end is closed where that hides the sender from a list of sockets. */
static long fill(int pair[2])
{
	static char block[64 << 10];
	int size = 8 << 20;
	long sent = 0;
	ssize_t wrote;
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	while ((wrote = write(pair[0], block, sizeof(block))) > 0)
		sent += wrote;
	close(pair[0]);
	return sent;
}

/* One process of several: as many sockets as it may have, or its part of the whole. */
static void send_and_hold(int ready)
{
	int pair[2];
	long sent = 0;
	while (sent < ((long)TARGET_MIB << 20) / SENDERS && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0)
		sent += fill(pair);
	if (write(ready, &sent, sizeof(sent)) != sizeof(sent))
		_exit(1);
	for (;;)
		pause();
}

/* What was sent over sockets and is not read. */
static enum verdict socket_buffers(void)
{
	pid_t senders[SENDERS];
	long sent = 0, part;
	int ready[2], count = 0;
	be_patient(PATIENCE_S);
	if (pipe(ready) < 0)
		return is_blocked(errno, "pipe");
	for (; count < SENDERS && (senders[count] = fork()) >= 0; count++)
		if (senders[count] == 0)
			send_and_hold(ready[1]);
	close(ready[1]);
	for (int i = 0; i < count && read(ready[0], &part, sizeof(part)) == sizeof(part); i++)
		sent += part;
	wait_ms(given_number("HOLD_MS"));
	int killed = 0;
	for (int i = 0; i < count; i++)
		killed += waitpid(senders[i], NULL, WNOHANG) == senders[i];
	for (int i = 0; i < count; i++)
		kill(senders[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	if (killed || sent < ((long)TARGET_MIB << 20) * 9 / 10)
		return is_blocked(ENOBUFS, "%ld MiB in sockets, %d senders were killed", sent >> 20, killed);
	return is_open("%ld MiB in the buffers of sockets", sent >> 20);
}

/* linux/landlock.h of Debian 12 has no ports yet. */
struct landlock_net {
	uint64_t handled_fs, handled_net;
};
struct landlock_port {
	uint64_t allowed, port;
};

/* Sets of Landlock's rules that are never used. */
static enum verdict landlock_rules(void)
{
	struct landlock_net handled = { .handled_net = 2 };
	be_patient(PATIENCE_S);
	for (int count = 0; count < RULESETS; count++) {
		int set = syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0);
		if (set < 0)
			return is_blocked(errno, "landlock_create_ruleset, the %dth", count + 1);
		for (int port = 0; port < PORTS; port++) {
			struct landlock_port rule = { .allowed = 2, .port = port };
			if (syscall(SYS_landlock_add_rule, set, 2, &rule, 0) < 0)
				return is_blocked(errno, "landlock_add_rule in set %d", count + 1);
		}
	}
	wait_ms(given_number("HOLD_MS"));
	return is_open("%d sets of %d rules", RULESETS, PORTS);
}

/* Locks on single bytes, of the process or of the open file. */
static enum verdict byte_locks(int command)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	char name[64];
	be_patient(PATIENCE_S);
	for (int file = 0; file < LOCKED_FILES; file++) {
		snprintf(name, sizeof(name), "/locks-%d", file);
		int fd = open(join(given("OWN_DIR"), name), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			return is_blocked(errno, "open of file %d", file + 1);
		unlink(join(given("OWN_DIR"), name));
		for (int count = LOCKS_PER_FILE; count > 0; count--) {
			/* Every second byte, or the kernel would join them. */
			lock.l_start = 2L * count;
			if (fcntl(fd, command, &lock) < 0)
				return is_blocked(errno, "fcntl, lock %d", file * LOCKS_PER_FILE + LOCKS_PER_FILE - count + 1);
		}
	}
	wait_ms(given_number("HOLD_MS"));
	return is_open("%d locks", LOCKED_FILES * LOCKS_PER_FILE);
}

static enum verdict process_locks(void)
{
	return byte_locks(F_SETLK);
}

static enum verdict file_locks(void)
{
	return byte_locks(F_OFD_SETLK);
}

const struct attack kernel_memory_attacks[] = {
	{ "memory-sockets", socket_buffers },
	{ "memory-rulesets", landlock_rules },
	{ "memory-locks", process_locks },
	{ "memory-file-locks", file_locks },
	{ NULL, NULL },
};
