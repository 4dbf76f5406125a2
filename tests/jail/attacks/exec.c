/* Running what was not granted, and gaining by running it. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int execute(void *path)
{
	char *const arguments[] = { path, "--helper", "prove", NULL };
	execve(path, arguments, environ);
	return errno == ENOENT ? 20 : errno == EACCES ? 21 : errno == EPERM ? 22 : 23;
}

/* A child ran (or did not) and said how it is held. */
static enum verdict proven(const char *what, int code)
{
	switch (code) {
	case FREE:
		return is_open("%s ran, and not in a jail", what);
	case ROOT:
		return is_open("%s ran as root", what);
	case HELD:
		return is_contained("%s runs in the same jail: same uid, no new privileges, filtered", what);
	case 20:
		return is_blocked(ENOENT, "%s", what);
	case 21:
		return is_blocked(EACCES, "%s", what);
	case 22:
		return is_blocked(EPERM, "%s", what);
	case -1:
		return is_blocked(errno, "no child for %s", what);
	default:
		return is_blocked(ECANCELED, "%s: a child ended with %d", what, code);
	}
}

static enum verdict foreign(void)
{
	return proven("a program that was not granted", in_child(execute, (void *)given("FOREIGN_PROGRAM")));
}

/* Without a jail the file's owner decides; the euid shows it, whatever the mode says. */
static enum verdict set_uid(void)
{
	if (access(given("SETUID_PROGRAM"), X_OK) < 0)
		return is_blocked(errno, "the set-uid program");
	int code = in_child(execute, (void *)given("SETUID_PROGRAM"));
	if (code == FREE)
		return is_blocked(ENOTSUP, "it runs, and gives no other uid");
	return proven("a set-uid program", code);
}

/* Copies this program to a place of its own; its descriptor is closed. */
static int copy_to(int to)
{
	static char buffer[1 << 16];
	ssize_t got;
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (from < 0)
		from = open(given("PROGRAM"), O_RDONLY | O_CLOEXEC);
	if (from < 0 || to < 0)
		return -1;
	while ((got = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, got) != got)
			return -1;
	close(from);
	return got;
}

static enum verdict written(void)
{
	const char *const places[] = { given("OWN_DIR"), given("HOME"), "/tmp", "/dev/shm", "/var/tmp", given("PROGRAM_DIR") };
	enum { PLACES = 6 };
	int last = -1;
	const char *last_place = "no place that it can write to";
	for (int i = 0; i < PLACES; i++) {
		const char *path = join(places[i], "/written-program");
		int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
		if (fd < 0)
			continue;
		int copied = copy_to(fd);
		close(fd);
		int code = copied < 0 ? -1 : in_child(execute, (void *)path);
		unlink(path);
		if (code == FREE || code == ROOT || code == HELD)
			return proven("a program that it wrote", code);
		last = code;
		last_place = "a program that it wrote";
	}
	return proven(last_place, last);
}

/* The dynamic loader as an interpreter: the file itself needs no right to be executed, its mapping does. */
static int through_loader(void *path)
{
	const char *const loaders[] = { "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1" };
	for (int i = 0; i < 2; i++) {
		char *const arguments[] = { (char *)loaders[i], path, "--helper", "prove", NULL };
		execve(loaders[i], arguments, environ);
	}
	return errno == ENOENT ? 20 : 21;
}

static enum verdict loader(void)
{
	const char *path = join(given("OWN_DIR"), "/loaded-program");
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || copy_to(fd) < 0)
		return is_blocked(errno, "no copy to load");
	close(fd);
	int code = in_child(through_loader, (void *)path);
	unlink(path);
	/* The loader's own word when the mapping is refused. */
	if (code == 127)
		return is_blocked(EPERM, "mapping what it wrote as code");
	return proven("what it wrote, through the loader", code);
}

static int from_memory(void *descriptor)
{
	char *const arguments[] = { "memfd", "--helper", "prove", NULL };
	fexecve(*(int *)descriptor, arguments, environ);
	return errno == ENOENT ? 20 : errno == EACCES ? 21 : errno == EPERM ? 22 : 23;
}

static enum verdict memory_file(void)
{
	int fd = memfd_create("foreign", 0);
	if (fd < 0)
		return is_blocked(errno, "memfd_create");
	if (copy_to(fd) < 0)
		return is_blocked(errno, "no copy in memory");
	/* A descriptor that is open for writing cannot be executed. */
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int readable = open(path, O_RDONLY | O_CLOEXEC);
	if (readable < 0)
		return is_blocked(errno, "the memory file cannot be opened again");
	close(fd);
	return proven("a foreign program in memory", in_child(from_memory, &readable));
}

/* A shell is granted with the system's programs: what it runs must be held as its parent is. */
static int shell(void *argument)
{
	(void)argument;
	execl("/bin/sh", "sh", "-c", "exec \"$PROGRAM\" --helper prove", NULL);
	return errno == ENOENT ? 20 : 21;
}

static enum verdict granted(void)
{
	return proven("a granted program", in_child(shell, NULL));
}

const struct attack exec_attacks[] = {
	{ "exec-foreign", foreign },
	{ "exec-setuid", set_uid },
	{ "exec-written", written },
	{ "exec-loader", loader },
	{ "exec-memfd", memory_file },
	{ "exec-granted", granted },
	{ NULL, NULL },
};
