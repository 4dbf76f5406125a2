/* The terminal from which the supervisor was started. The harness gives a pseudo terminal as standard input. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Types into the terminal, as if its user had. The upper half of the number is what a careless filter compares too. */
static enum verdict type_into(void)
{
	struct ways ways = { 0 };
	char key = ' ', copy[2] = { 6 };
	int own = open("/dev/tty", O_RDWR | O_CLOEXEC);
	const int terminals[] = { 0, own };
	/* A session of its own may take a free terminal as its own, which is what TIOCSTI asks for. */
	if (getsid(0) != getpid())
		setsid();
	ioctl(0, TIOCSCTTY, 0);
	for (int i = 0; i < 2; i++) {
		try_way(&ways, "TIOCSTI", syscall(SYS_ioctl, terminals[i], (unsigned long)TIOCSTI, &key));
		try_way(&ways, "TIOCSTI with more bits", syscall(SYS_ioctl, terminals[i], TIOCSTI | 1UL << 32, &key));
		try_way(&ways, "TIOCLINUX", syscall(SYS_ioctl, terminals[i], (unsigned long)TIOCLINUX, copy));
	}
	return judge(&ways);
}

static enum verdict own_terminal(void)
{
	return outcome("the terminal of the session", open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
}

const struct attack terminal_attacks[] = {
	{ "type-into-terminal", type_into },
	{ "open-terminal", own_terminal },
	{ NULL, NULL },
};
