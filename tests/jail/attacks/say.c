/* How attacks say what came of them, and small things that many of them need. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static enum verdict say(enum verdict verdict, const char *prefix, const char *format, va_list arguments)
{
	char text[512];
	vsnprintf(text, sizeof(text), format, arguments);
	dprintf(1, "%s%s\n", prefix, text);
	return verdict;
}

enum verdict is_open(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	enum verdict verdict = say(OPEN, "open: ", format, arguments);
	va_end(arguments);
	return verdict;
}

enum verdict is_contained(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	enum verdict verdict = say(CONTAINED, "contained: ", format, arguments);
	va_end(arguments);
	return verdict;
}

enum verdict is_untried(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	enum verdict verdict = say(UNTRIED, "untried: ", format, arguments);
	va_end(arguments);
	return verdict;
}

enum verdict is_blocked(int error, const char *format, ...)
{
	char prefix[64];
	const char *name = strerrorname_np(error);
	snprintf(prefix, sizeof(prefix), "blocked: %s ", name ? name : "E?");
	va_list arguments;
	va_start(arguments, format);
	enum verdict verdict = say(BLOCKED, prefix, format, arguments);
	va_end(arguments);
	return verdict;
}

enum verdict outcome(const char *what, long result)
{
	return result < 0 ? is_blocked(errno, "%s", what) : is_open("%s", what);
}

enum verdict reached(const char *what, long result, int harmless)
{
	if (result >= 0 || errno == harmless)
		return is_open("%s was granted and only then looked at", what);
	return is_blocked(errno, "%s", what);
}

int try_way(struct ways *ways, const char *name, long result)
{
	if (result >= 0) {
		if (!ways->open)
			ways->open = name;
		return 1;
	}
	if (!ways->refused) {
		ways->refused = name;
		ways->error = errno;
	}
	return 0;
}

enum verdict judge(const struct ways *ways)
{
	if (ways->open)
		return is_open("%s", ways->open);
	if (!ways->refused)
		return is_untried("there was nothing to try");
	return is_blocked(ways->error, "%s", ways->refused);
}

const char *given(const char *name)
{
	const char *value = getenv(name);
	return value ? value : "";
}

long given_number(const char *name)
{
	return strtol(given(name), NULL, 10);
}

const pid_t *host_processes(void)
{
	static pid_t processes[3];
	int count = 0;
	const char *const names[] = { "HOST_PID", "PEER_PID" };
	for (int i = 0; i < 2; i++)
		if (given_number(names[i]) > 0)
			processes[count++] = given_number(names[i]);
	processes[count] = 0;
	return processes;
}

int can_read(const char *path)
{
	char byte;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	ssize_t got = read(fd, &byte, 1);
	int error = got == 0 ? ENODATA : errno;
	close(fd);
	errno = error;
	return got == 1 ? 1 : -1;
}

const char *join(const char *first, const char *second)
{
	static char buffers[8][1024];
	static int next;
	char *buffer = buffers[next++ % 8];
	snprintf(buffer, sizeof(buffers[0]), "%s%s", first, second);
	return buffer;
}

void wait_ms(long ms)
{
	poll(NULL, 0, ms);
}

int in_child(int (*body)(void *), void *argument)
{
	int status;
	pid_t child = fork();
	if (child < 0)
		return -1;
	if (child == 0)
		_exit(body(argument));
	if (waitpid(child, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

long status_line(const char *name, int base)
{
	char line[256];
	long value = -1;
	FILE *status = fopen("/proc/self/status", "re");
	if (!status)
		return -1;
	while (value < 0 && fgets(line, sizeof(line), status))
		if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
			value = strtol(line + strlen(name) + 1, NULL, base);
	fclose(status);
	return value;
}

int is_held(void)
{
	return status_line("NoNewPrivs", 10) == 1 && status_line("Seccomp", 10) == 2;
}

static void give_up(int number)
{
	(void)number;
	_exit(is_blocked(ETIMEDOUT, "slowed down until it got no further"));
}

void be_patient(unsigned seconds)
{
	signal(SIGALRM, give_up);
	alarm(seconds);
}
