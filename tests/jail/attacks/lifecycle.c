/*
 * Outliving one's end. The verdict is the harness's: it stops the program as the supervisor does, and then looks for
 * what is left. What is printed here only tells that the attack was under way.
 */
#define _GNU_SOURCE
#include "attack.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

/* Until it is killed. */
static enum verdict stay(void)
{
	for (;;)
		pause();
	return OPEN;
}

static enum verdict ignore_signals(void)
{
	for (int number = 1; number < 32; number++)
		signal(number, SIG_IGN);
	is_open("under way");
	return stay();
}

static void leave_behind(void)
{
	if (fork() == 0) {
		setsid();
		prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
		for (int number = 1; number < 32; number++)
			signal(number, SIG_IGN);
		if (fork() != 0)
			_exit(0);
		/* Long enough for the harness to find it, and not for ever where nothing ends it. */
		alarm(60);
		signal(SIGALRM, SIG_DFL);
		for (;;)
			pause();
	}
}

static enum verdict daemonize(void)
{
	leave_behind();
	wait_ms(50);
	return is_open("under way");
}

static enum verdict daemon_and_stay(void)
{
	leave_behind();
	is_open("under way");
	return stay();
}

static enum verdict stop_itself(void)
{
	is_open("under way");
	kill(getpid(), SIGSTOP);
	return stay();
}

/* Of itself, with what is in its memory. */
static enum verdict dump_core(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY }, limit;
	setrlimit(RLIMIT_CORE, &all);
	getrlimit(RLIMIT_CORE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_CORE, &limit);
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	is_open("under way");
	abort();
}

/* The end of its own monitor, which is process 1 where it has numbers of its own. */
static enum verdict kill_monitor(void)
{
	struct ways ways = { 0 };
	const int signals[] = { SIGSTOP, SIGTERM, SIGKILL };
	for (int i = 0; i < 3; i++)
		if (kill(getppid(), signals[i]) < 0)
			try_way(&ways, "killing its monitor", -1);
	is_open("under way");
	return stay();
}

const struct attack lifecycle_attacks[] = {
	{ "ignore-signals", ignore_signals },
	{ "daemon", daemonize },
	{ "daemon-and-stay", daemon_and_stay },
	{ "stop-itself", stop_itself },
	{ "dump-core", dump_core },
	{ "kill-monitor", kill_monitor },
	{ NULL, NULL },
};
