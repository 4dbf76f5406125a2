/* Beyond the machine, and to what listens on it by number. */
#define _GNU_SOURCE
#include "attack.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long an answer by UDP may take: on one machine it takes none. */
enum { ANSWER_MS = 500 };

/* Readable within the time; otherwise -1 and ETIMEDOUT. */
static int wait_for(int fd, short events, int ms)
{
	struct pollfd polled = { .fd = fd, .events = events };
	if (poll(&polled, 1, ms) > 0)
		return 0;
	errno = ETIMEDOUT;
	return -1;
}

/* Waits for the end of what a connecting call began, no longer than an answer takes, and closes. */
static int connected(int fd, int result)
{
	if (result < 0 && errno == EINPROGRESS && (result = wait_for(fd, POLLOUT, ANSWER_MS)) == 0) {
		int error = 0;
		socklen_t length = sizeof(error);
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
		errno = error;
		result = error ? -1 : 0;
	}
	int error = errno;
	close(fd);
	errno = error;
	return result;
}

/* Connected means that the other side has accepted it. */
static int connect_tcp(const char *address, int port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
	int is_six = inet_pton(AF_INET6, address, &six.sin6_addr) == 1;
	inet_pton(AF_INET, address, &four.sin_addr);
	int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	int result = is_six ? connect(fd, (struct sockaddr *)&six, sizeof(six)) :
			      connect(fd, (struct sockaddr *)&four, sizeof(four));
	return connected(fd, result);
}

static enum verdict tcp_loopback(void)
{
	struct ways ways = { 0 };
	try_way(&ways, "TCP to 127.0.0.1", connect_tcp("127.0.0.1", given_number("TCP_PORT")));
	try_way(&ways, "TCP to ::1", connect_tcp("::1", given_number("TCP6_PORT")));
	return judge(&ways);
}

static enum verdict tcp_host(void)
{
	return outcome("TCP to an address of the host", connect_tcp(given("HOST_ADDRESS"), given_number("TCP_PORT")));
}

/* The one port that the profile with ports names. */
static enum verdict tcp_granted(void)
{
	return outcome("TCP to the granted port", connect_tcp(given("HOST_ADDRESS"), given_number("GRANTED_PORT")));
}

/* Connects by sending: a connection without a call that is named so. */
static long send_fast(int way, int fd, struct sockaddr_in *to)
{
	struct iovec word = { "ping", 4 };
	struct mmsghdr message = { .msg_hdr = { .msg_name = to, .msg_namelen = sizeof(*to), .msg_iov = &word, .msg_iovlen = 1 } };
	switch (way) {
	case 0:
		return sendto(fd, "ping", 4, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)to, sizeof(*to));
	case 1:
		return sendmsg(fd, &message.msg_hdr, MSG_FASTOPEN | MSG_NOSIGNAL);
	default:
		return sendmmsg(fd, &message, 1, MSG_FASTOPEN | MSG_NOSIGNAL);
	}
}

static int connect_fast(int way)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(given_number("TCP_PORT")) };
	inet_pton(AF_INET, given("HOST_ADDRESS"), &to.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	return connected(fd, send_fast(way, fd, &to) < 0 ? -1 : 0);
}

/* The first bit of the setting is the side that connects. Where it cannot be read, it is on as usual. */
static int fast_open_is_off(void)
{
	char digit = '1';
	int fd = open("/proc/sys/net/ipv4/tcp_fastopen", O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, &digit, 1) != 1)
		digit = '1';
	return !(digit & 1);
}

static enum verdict fast_open(void)
{
	struct ways ways = { 0 };
	const char *const names[] = { "sendto", "sendmsg", "sendmmsg" };
	for (int way = 0; way < 3; way++)
		try_way(&ways, names[way], connect_fast(way));
	if (!ways.open && ways.error == EOPNOTSUPP && fast_open_is_off())
		return is_untried("net.ipv4.tcp_fastopen is off");
	return judge(&ways);
}

static int ask_udp(const char *address, int port)
{
	char answer[16];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	inet_pton(AF_INET, address, &to.sin_addr);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || send(fd, "ping", 4, 0) < 0 ||
	    wait_for(fd, POLLIN, ANSWER_MS) < 0)
		return -1;
	return recv(fd, answer, sizeof(answer), 0);
}

static enum verdict udp(void)
{
	struct ways ways = { 0 };
	try_way(&ways, "UDP to 127.0.0.1", ask_udp("127.0.0.1", given_number("UDP_PORT")));
	try_way(&ways, "UDP to an address of the host", ask_udp(given("HOST_ADDRESS"), given_number("UDP_PORT")));
	return judge(&ways);
}

/* As any program asks for a name: the harness answers for this one. */
static enum verdict dns(void)
{
	struct addrinfo *found, hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	errno = 0;
	int code = getaddrinfo("talon-hostile.test", NULL, &hints, &found);
	if (code == 0) {
		freeaddrinfo(found);
		return is_open("a name was resolved");
	}
	return is_blocked(errno ? errno : ENETUNREACH, "%s", gai_strerror(code));
}

static int open_socket(int family, int type, int protocol)
{
	return socket(family, type | SOCK_CLOEXEC, protocol);
}

static enum verdict raw(void)
{
	struct ways ways = { 0 };
	try_way(&ways, "a raw IP socket", open_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	try_way(&ways, "a raw IPv6 socket", open_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
	try_way(&ways, "a packet socket", open_socket(AF_PACKET, SOCK_RAW, 0x0300));
	try_way(&ways, "a packet socket without headers", open_socket(AF_PACKET, SOCK_DGRAM, 0x0300));
	return judge(&ways);
}

static enum verdict netlink(void)
{
	struct ways ways = { 0 };
	const int protocols[] = { NETLINK_ROUTE, NETLINK_SOCK_DIAG, NETLINK_NETFILTER, NETLINK_KOBJECT_UEVENT,
				  NETLINK_AUDIT, NETLINK_GENERIC };
	for (int i = 0; i < 6; i++)
		try_way(&ways, "a netlink socket", open_socket(AF_NETLINK, SOCK_RAW, protocols[i]));
	return judge(&ways);
}

static enum verdict vsock(void)
{
	return outcome("a vsock socket", open_socket(AF_VSOCK, SOCK_STREAM, 0));
}

/* Each family is a separate part of the kernel, rarely used and rarely reviewed. */
static enum verdict odd_families(void)
{
	struct ways ways = { 0 };
	for (int family = AF_AX25; family < 46; family++) {
		if (family == AF_INET6 || family == AF_NETLINK || family == AF_PACKET || family == AF_VSOCK)
			continue;
		errno = 0;
		int fd = open_socket(family, SOCK_DGRAM, 0);
		if (fd < 0)
			fd = open_socket(family, SOCK_SEQPACKET, 0);
		try_way(&ways, "a socket of an odd family", fd);
	}
	return judge(&ways);
}

/*
 * Listens at every address, until a client connects or the time is over. The harness knocks at the port
 * all the while.
 */
static enum verdict listen_tcp(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(given_number("LISTEN_PORT")) };
	int one = 1, fd = open_socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return is_blocked(errno, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(fd, 8) < 0)
		return is_blocked(errno, "bind and listen");
	if (wait_for(fd, POLLIN, ANSWER_MS) < 0)
		return is_contained("it listens in a private network, where no client comes");
	return is_open("the host's network connected to its port");
}

/* Of linux/in.h since 6.3: from which ports the kernel picks one for this socket, the last in the upper half. */
enum { LOCAL_PORT_RANGE = 51 };

/*
 * The kernel picks a port for a socket that listens without having been bound, which no rule on `bind` sees. It has the
 * choice of one here, at which the harness knocks.
 */
static enum verdict listen_unbound(void)
{
	int range = given_number("LISTEN_PORT") << 16 | given_number("LISTEN_PORT");
	int fd = open_socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return is_blocked(errno, "socket");
	if (setsockopt(fd, IPPROTO_IP, LOCAL_PORT_RANGE, &range, sizeof(range)) < 0)
		return is_untried("the kernel does not let a socket choose its ports");
	if (listen(fd, 8) < 0)
		return is_blocked(errno, "listen");
	if (wait_for(fd, POLLIN, ANSWER_MS) < 0)
		return is_contained("it listens where no client gets through");
	return is_open("the host's network connected to its port");
}

static enum verdict low_port(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(81) };
	int fd = open_socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		return is_blocked(errno, "socket");
	return outcome("a port of the system's services", bind(fd, (struct sockaddr *)&here, sizeof(here)));
}

const struct attack network_attacks[] = {
	{ "tcp-loopback", tcp_loopback },
	{ "tcp-host", tcp_host },
	{ "tcp-granted-port", tcp_granted },
	{ "fast-open", fast_open },
	{ "udp", udp },
	{ "dns", dns },
	{ "raw-sockets", raw },
	{ "netlink", netlink },
	{ "vsock", vsock },
	{ "odd-families", odd_families },
	{ "listen-tcp", listen_tcp },
	{ "listen-unbound", listen_unbound },
	{ "bind-low-port", low_port },
	{ NULL, NULL },
};
