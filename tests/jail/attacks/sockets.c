/* Unix sockets of others, by path and by name. All of these are open to every user, so that only a jail closes them. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A connected socket, or -1. A leading `@` stands for the abstract name space. */
static int connect_unix(const char *path, int type)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t length = strlen(path);
	if (length == 0 || length >= sizeof(to.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(to.sun_path, path, length);
	if (path[0] == '@')
		to.sun_path[0] = 0;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	socklen_t size = offsetof(struct sockaddr_un, sun_path) + length + (path[0] != '@');
	if (connect(fd, (struct sockaddr *)&to, size) == 0)
		return fd;
	int error = errno;
	close(fd);
	errno = error;
	return -1;
}

static enum verdict any_of(const char *const *paths, int type)
{
	struct ways ways = { 0 };
	for (; *paths; paths++)
		try_way(&ways, *paths, connect_unix(*paths, type));
	return judge(&ways);
}

static enum verdict peer(void)
{
	return outcome("another plugin's socket", connect_unix(given("PEER_SOCKET"), SOCK_STREAM));
}

static enum verdict host(void)
{
	struct ways ways = { 0 };
	try_way(&ways, "host.sock", connect_unix(given("HOST_SOCKET"), SOCK_STREAM));
	try_way(&ways, "admin.sock", connect_unix(given("ADMIN_SOCKET"), SOCK_STREAM));
	return judge(&ways);
}

/* The same files through other processes' roots, which need no path in its own. */
static enum verdict peer_through_proc(void)
{
	struct ways ways = { 0 };
	char path[128];
	for (const pid_t *pid = host_processes(); *pid; pid++) {
		snprintf(path, sizeof(path), "/proc/%d/root%s", *pid, given("PEER_SOCKET"));
		try_way(&ways, "another plugin's socket through /proc", connect_unix(path, SOCK_STREAM));
	}
	return judge(&ways);
}

static enum verdict message_bus(void)
{
	const char *const paths[] = { "/run/dbus/system_bus_socket", "/run/user/1000/bus", NULL };
	return any_of(paths, SOCK_STREAM);
}

static enum verdict containers(void)
{
	const char *const paths[] = { "/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock",
				      "/run/containerd/containerd.sock", NULL };
	return any_of(paths, SOCK_STREAM);
}

/* Lines in the system's journal, and words to the service manager, in Talon's name. */
static enum verdict journal(void)
{
	const char *const paths[] = { "/run/systemd/journal/socket", "/run/systemd/notify", "/dev/log", NULL };
	return any_of(paths, SOCK_DGRAM);
}

static enum verdict abstract(void)
{
	return outcome("an abstract socket of the host", connect_unix(given("ABSTRACT_SOCKET"), SOCK_STREAM));
}

/* The harness passes a descriptor of a secret to every client. */
static int receive_secret(const char *path)
{
	char byte, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	int passed, fd = connect_unix(path, SOCK_STREAM);
	if (fd < 0)
		return -1;
	if (recvmsg(fd, &message, MSG_CMSG_CLOEXEC) < 0 || !CMSG_FIRSTHDR(&message)) {
		errno = ENODATA;
		return -1;
	}
	memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(passed));
	return read(passed, &byte, 1) == 1 ? 1 : -1;
}

static enum verdict passed_descriptor(void)
{
	struct ways ways = { 0 };
	try_way(&ways, "a passed descriptor of a foreign file", receive_secret(given("PASSING_SOCKET")));
	try_way(&ways, "the same over an abstract socket", receive_secret(given("PASSING_ABSTRACT")));
	return judge(&ways);
}

/* Takes a name that a service of the host's could have; the harness connects to it all the while. */
static enum verdict listen_abstract(void)
{
	struct sockaddr_un here = { .sun_family = AF_UNIX };
	const char *name = given("LISTEN_ABSTRACT");
	memcpy(here.sun_path, name, strlen(name));
	here.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t size = offsetof(struct sockaddr_un, sun_path) + strlen(name);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, size) < 0 || listen(fd, 8) < 0)
		return is_blocked(errno, "an abstract name");
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	if (poll(&polled, 1, 500) > 0)
		return is_open("the host connected to the name that it took");
	return is_contained("the name is one of a private network");
}

/* A socket of a type with an abstract name, or -1. */
static int take_name(const char *name, int type)
{
	struct sockaddr_un here = { .sun_family = AF_UNIX };
	memcpy(here.sun_path, name, strlen(name));
	here.sun_path[0] = 0;
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	socklen_t size = offsetof(struct sockaddr_un, sun_path) + strlen(name);
	return fd < 0 ? -1 : bind(fd, (struct sockaddr *)&here, size);
}

/* Takes free names, so that a service that comes later cannot. Which namespace they are in, the host's own name tells. */
static enum verdict bind_abstract(void)
{
	struct ways ways = { 0 };
	const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	const char *const what[] = { "a free stream name", "a free datagram name", "a free seqpacket name" };
	for (int i = 0; i < 3; i++)
		try_way(&ways, what[i], take_name(join(given("LISTEN_ABSTRACT"), what[i]), types[i]));
	if (ways.open && take_name(given("ABSTRACT_SOCKET"), SOCK_STREAM) == 0)
		return is_contained("the names are those of a private network: the host's are free");
	return judge(&ways);
}

/* Inherited descriptors: anything beyond its three was passed by mistake. */
static enum verdict inherited(void)
{
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return is_open("descriptor %d is open", fd);
	return is_blocked(EBADF, "only 0, 1 and 2 are open");
}

const struct attack socket_attacks[] = {
	{ "connect-peer", peer },
	{ "connect-host", host },
	{ "connect-peer-through-proc", peer_through_proc },
	{ "connect-bus", message_bus },
	{ "connect-container-engine", containers },
	{ "connect-journal", journal },
	{ "connect-abstract", abstract },
	{ "listen-abstract", listen_abstract },
	{ "bind-abstract", bind_abstract },
	{ "passed-descriptor", passed_descriptor },
	{ "inherited-descriptors", inherited },
	{ NULL, NULL },
};
