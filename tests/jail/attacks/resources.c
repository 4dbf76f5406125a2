/* Taking more than one's share. Each stops at a stated number, which a machine has room for. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	CHILDREN = 1000,
	THREADS = 1000,
	DESCRIPTORS = 4096,
	FILES = 5000,
	FILL_MIB = 192,
	PIECE_MIB = 8,
	SPIN_MS = 1000,
	SPINNERS = 4,
};

static enum verdict fork_bomb(void)
{
	static pid_t children[CHILDREN];
	int count = 0, error = 0;
	while (count < CHILDREN) {
		pid_t child = fork();
		if (child == 0) {
			/* Holds the harness's pipes no longer than it has to. */
			close(0), close(1), close(2);
			for (;;)
				pause();
		}
		if (child < 0) {
			error = errno;
			break;
		}
		children[count++] = child;
	}
	for (int i = 0; i < count; i++)
		kill(children[i], SIGKILL);
	for (int i = 0; i < count; i++)
		waitpid(children[i], NULL, 0);
	return error ? is_blocked(error, "at %d children", count) : is_open("stopped at %d children", count);
}

static void *idle(void *argument)
{
	(void)argument;
	for (;;)
		pause();
	return NULL;
}

static enum verdict thread_bomb(void)
{
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int count = 0; count < THREADS; count++) {
		pthread_t thread;
		int error = pthread_create(&thread, &small, idle, NULL);
		if (error)
			return is_blocked(error, "at %d threads", count);
	}
	return is_open("stopped at %d threads", THREADS);
}

static enum verdict descriptors(void)
{
	for (int count = 0; count < DESCRIPTORS; count++)
		if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0)
			return is_blocked(errno, "at %d descriptors", count);
	return is_open("stopped at %d descriptors", DESCRIPTORS);
}

/* Fills a directory with files of a few MiB each; all of them are gone in the end. */
static enum verdict fill(const char *directory)
{
	static char block[1 << 20];
	char path[1024];
	int written = 0, files = 0, error = 0;
	memset(block, 'x', sizeof(block));
	/* A file that may grow no more must not end us. */
	signal(SIGXFSZ, SIG_IGN);
	while (!error && written < FILL_MIB) {
		snprintf(path, sizeof(path), "%s/fill-%d", directory, files++);
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		for (int mib = 0; fd >= 0 && mib < PIECE_MIB && !error; mib++)
			if (write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
				written++;
			else
				error = errno ? errno : ENOSPC;
		if (fd < 0)
			error = errno;
		else
			close(fd);
	}
	for (int i = 0; i < files; i++) {
		snprintf(path, sizeof(path), "%s/fill-%d", directory, i);
		unlink(path);
	}
	return error ? is_blocked(error, "at %d MiB", written) : is_open("stopped at %d MiB", written);
}

static enum verdict fill_tmp(void)
{
	return fill("/tmp");
}

static enum verdict fill_home(void)
{
	return fill(given("HOME"));
}

static enum verdict fill_shm(void)
{
	return fill("/dev/shm");
}

static enum verdict fill_inodes(void)
{
	char path[1024];
	int count = 0, error = 0;
	for (; count < FILES && !error; count++) {
		snprintf(path, sizeof(path), "%s/inode-%d", given("OWN_DIR"), count);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0)
			error = errno;
		else
			close(fd);
	}
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/inode-%d", given("OWN_DIR"), i);
		unlink(path);
	}
	return error ? is_blocked(error, "at %d files", count - 1) : is_open("stopped at %d files", count);
}

/* A hole of 64 GiB takes no room; a limit refuses it all the same. */
static enum verdict large_file(void)
{
	const char *path = join(given("OWN_DIR"), "/large");
	signal(SIGXFSZ, SIG_IGN);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return is_blocked(errno, "a file");
	int result = ftruncate(fd, 64LL << 30);
	int error = errno;
	unlink(path);
	errno = error;
	return outcome("a file of 64 GiB", result);
}

static long now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void spin(void)
{
	for (long end = now_ms() + SPIN_MS; now_ms() < end;)
		;
}

/* All cores for a while. Whether the neighbours kept serving is the harness's to see. */
static enum verdict spin_all(void)
{
	pid_t children[SPINNERS];
	int started = 0;
	while (started < SPINNERS && (children[started] = fork()) > 0)
		started++;
	if (started < SPINNERS && children[started] == 0) {
		spin();
		_exit(0);
	}
	for (int i = 0; i < started; i++)
		waitpid(children[i], NULL, 0);
	errno = 0;
	int nice = getpriority(PRIO_PROCESS, 0);
	if (nice > 0)
		return is_contained("all cores, but it yields to others: nice %d", nice);
	return is_open("all cores, nice %d", nice);
}

const struct attack resource_attacks[] = {
	{ "fork-bomb", fork_bomb },
	{ "thread-bomb", thread_bomb },
	{ "descriptor-hog", descriptors },
	{ "fill-tmp", fill_tmp },
	{ "fill-home", fill_home },
	{ "fill-shm", fill_shm },
	{ "fill-inodes", fill_inodes },
	{ "large-file", large_file },
	{ "cpu-hog", spin_all },
	{ NULL, NULL },
};
