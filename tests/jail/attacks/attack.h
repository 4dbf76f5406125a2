/*
 * What every attack needs. An attack tries one thing and says in one line how that went; it is harmless when it
 * succeeds: it opens without writing, sends signal 0, mounts on a scratch path, stops at a stated number.
 *
 * What it aims at comes by environment variables (`given`), which the harness sets; see `targets` there.
 */
#ifndef ATTACK_H
#define ATTACK_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

/* Also the exit code. */
enum verdict {
	OPEN = 0,      /* it succeeded */
	BLOCKED = 1,   /* something refused it */
	UNTRIED = 2,   /* it cannot be tried here, whatever holds */
	CONTAINED = 3, /* it succeeded, and what came of it is shown to be held like everything else */
};

struct attack {
	const char *name;
	enum verdict (*run)(void);
};

/* One table for each theme, ended by an entry without a name. */
extern const struct attack files_attacks[], proc_attacks[], exec_attacks[], process_attacks[], privilege_attacks[],
	mount_attacks[], kernel_attacks[], network_attacks[], socket_attacks[], resource_attacks[], memory_attacks[],
	kernel_memory_attacks[], terminal_attacks[], lifecycle_attacks[];

/* Each prints the line and gives the verdict back. */
enum verdict is_open(const char *format, ...) __attribute__((format(printf, 1, 2)));
enum verdict is_blocked(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));
enum verdict is_contained(const char *format, ...) __attribute__((format(printf, 1, 2)));
enum verdict is_untried(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The outcome of a system call: open if it succeeded, otherwise blocked by its errno. */
enum verdict outcome(const char *what, long result);

/*
 * The outcome of a call whose arguments are wrong on purpose, so that it does no harm: the kernel looks at them only
 * after it has granted the right, so `harmless` as the error means that the door was open.
 */
enum verdict reached(const char *what, long result, int harmless);

/* Several ways to one goal: the first that leads there decides, otherwise the first refusal is told. */
struct ways {
	int error;
	const char *refused;
	const char *open;
};
/* Notes one way. `result` is negative, with errno, when it was refused. True if it leads to the goal. */
int try_way(struct ways *ways, const char *name, long result);
enum verdict judge(const struct ways *ways);

/* An environment variable that the harness sets; empty if it does not. */
const char *given(const char *name);
/* The same as a number; 0 without. */
long given_number(const char *name);
/* The processes of the host that attacks aim at, ended by 0. */
const pid_t *host_processes(void);

/* 1 if at least one byte can be read from a file; otherwise -1 and errno. */
int can_read(const char *path);
/* Joins two texts in a buffer of its own, used again after eight calls. */
const char *join(const char *first, const char *second);
/* Waits so many milliseconds. */
void wait_ms(long ms);

/*
 * Ends the attack as blocked after this time: the kernel may slow down who comes near a limit until nothing happens any more.
 */
void be_patient(unsigned seconds);
/* What a child that runs `body` exits with; -1 and errno if there is none, 256 and its signal if one ended it. */
int in_child(int (*body)(void *), void *argument);
/* A line of /proc/self/status as a number, in the given base; -1 if it is not there. */
long status_line(const char *name, int base);
/* Whether this process is held as every jailed one: no new privileges, a system call filter. */
int is_held(void);

/* What this program exits with when it is run with `--helper prove`: how it is held. */
enum proof { FREE = 10, HELD = 11, ROOT = 12 };

/* Programs of the harness's own that are no attacks; see helper.c. -1 if there is none of that name. */
int run_helper(const char *name, int argc, char **argv);

#endif
