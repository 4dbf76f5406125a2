/* The harness's own programs, in the same file so that one build makes all: no attacks. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <mqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* Says by its exit code how it is held. */
static int prove(void)
{
	if (geteuid() == 0 || getegid() == 0)
		return ROOT;
	return is_held() ? HELD : FREE;
}

/* An ordinary process of the host, with things that are its own. Ends with its standard input. */
static int stand_in(void)
{
	char byte;
	long key = syscall(SYS_add_key, "user", "talon-hostile-peer", "secret", 6, KEY_SPEC_USER_KEYRING);
	if (key > 0)
		syscall(SYS_keyctl, KEYCTL_SETPERM, key, 0x3f3f3f3fL);
	int shm_key = 0x7a10 + (int)(getuid() & 0xffff);
	int segment = shmget(shm_key, 4096, IPC_CREAT | 0666);
	umask(0);
	mqd_t queue = mq_open("/talon-hostile", O_CREAT | O_RDWR, 0666, NULL);
	shm_open("/talon-hostile", O_CREAT | O_RDWR, 0666);
	printf("%ld %d %d\n", key > 0 ? key : 0, segment < 0 ? 0 : shm_key, queue != (mqd_t)-1);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	if (key > 0)
		syscall(SYS_keyctl, KEYCTL_UNLINK, key, KEY_SPEC_USER_KEYRING);
	shmctl(segment, IPC_RMID, NULL);
	mq_unlink("/talon-hostile");
	shm_unlink("/talon-hostile");
	return 0;
}

/* A plugin that serves: gives back on its socket what it gets, one connection after the other. */
static int serve(const char *path)
{
	struct sockaddr_un here = { .sun_family = AF_UNIX };
	char bytes[64];
	ssize_t got;
	snprintf(here.sun_path, sizeof(here.sun_path), "%s", path);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	umask(0);
	if (bind(listener, (struct sockaddr *)&here, sizeof(here)) < 0 || listen(listener, 64) < 0) {
		perror("serve");
		return 1;
	}
	puts("serving");
	fflush(stdout);
	for (;;) {
		int peer = accept(listener, NULL, NULL);
		if (peer < 0)
			continue;
		struct timeval patience = { .tv_sec = 5 };
		setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		while ((got = read(peer, bytes, sizeof(bytes))) > 0)
			if (write(peer, bytes, got) != got)
				break;
		close(peer);
	}
}

/* The loopback interface of the outer namespace, up, and with a second address like one of a real card. */
static int loopback(const char *address)
{
	struct ifreq request = { 0 };
	struct sockaddr_in second = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	inet_pton(AF_INET, address, &second.sin_addr);
	strcpy(request.ifr_name, "lo");
	request.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return perror("loopback up"), 1;
	strcpy(request.ifr_name, "lo:1");
	memcpy(&request.ifr_addr, &second, sizeof(second));
	if (ioctl(fd, SIOCSIFADDR, &request) < 0)
		return perror("second address"), 1;
	return 0;
}

/* Runs a program with a pseudo terminal as its standard input and controlling terminal. */
static int with_terminal(char **command)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		return perror("a pseudo terminal"), 1;
	setsid();
	int slave = open(ptsname(master), O_RDWR);
	if (slave < 0 || dup2(slave, 0) < 0)
		return perror("its other end"), 1;
	ioctl(0, TIOCSCTTY, 0);
	/* The master stays open in the program, or the terminal would be hung up. */
	fcntl(master, F_SETFD, 0);
	execvp(command[0], command);
	return perror(command[0]), 1;
}

int run_helper(const char *name, int argc, char **argv)
{
	if (strcmp(name, "prove") == 0)
		return prove();
	if (strcmp(name, "stand-in") == 0)
		return stand_in();
	if (strcmp(name, "serve") == 0 && argc == 1)
		return serve(argv[0]);
	if (strcmp(name, "loopback") == 0 && argc == 1)
		return loopback(argv[0]);
	if (strcmp(name, "with-terminal") == 0 && argc >= 1)
		return with_terminal(argv);
	fprintf(stderr, "no helper %s with %d arguments\n", name, argc);
	return 1;
}
