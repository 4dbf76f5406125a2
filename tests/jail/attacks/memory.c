/*
 * Memory, in all the forms in which it can be had. What is had is held for a while (HOLD_MS), because where the kernel
 * does not count it for the group, a watch that looks now and then has to see it.
 */
#define _GNU_SOURCE
#include "attack.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	HOG_MIB = 512,
	CHILDREN = 8,
	PIECE_MIB = 64,
	LOCKED_MIB = 16,
	TABLES_MIB = 256,
	/* What one page of a page table maps, on every processor with pages of 4 KiB. */
	TABLE_MAPS = 2 << 20,
	/* Half a second is what it takes where nothing slows it down. */
	PATIENCE_S = 20,
};

static enum verdict held(const char *what)
{
	wait_ms(given_number("HOLD_MS"));
	return is_open("%d MiB %s", HOG_MIB, what);
}

/* Memory that is really there. Volatile, or the compiler would leave out the writes. */
static int touched(size_t size, int kind)
{
	volatile char *piece = mmap(NULL, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
	if (piece == MAP_FAILED)
		return 0;
	for (size_t at = 0; at < size; at += 4096)
		piece[at] = 1;
	return 1;
}

static enum verdict one_process(void)
{
	be_patient(PATIENCE_S);
	for (int mib = 0; mib < HOG_MIB; mib++)
		if (!touched(1 << 20, MAP_PRIVATE))
			return is_blocked(errno, "at %d MiB", mib);
	return held("touched");
}

/* Each has less than one may have; together they have more than all may have. */
static enum verdict many_children(void)
{
	pid_t children[CHILDREN];
	int ready[2], count = 0, had = 0;
	char byte;
	be_patient(PATIENCE_S);
	if (pipe(ready) < 0)
		return is_blocked(errno, "pipe");
	for (; count < CHILDREN; count++) {
		children[count] = fork();
		if (children[count] < 0)
			return is_blocked(errno, "at %d children", count);
		if (children[count] == 0) {
			if (!touched(PIECE_MIB << 20, MAP_PRIVATE))
				_exit(1);
			if (write(ready[1], "x", 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
	}
	close(ready[1]);
	while (had < CHILDREN && read(ready[0], &byte, 1) == 1)
		had++;
	wait_ms(given_number("HOLD_MS"));
	int killed = 0;
	for (int i = 0; i < CHILDREN; i++)
		killed += waitpid(children[i], NULL, WNOHANG) == children[i];
	for (int i = 0; i < CHILDREN; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	if (had < CHILDREN || killed)
		return is_blocked(ENOMEM, "%d of %d children had their memory, %d were killed", had, CHILDREN, killed);
	return is_open("%d children with %d MiB each", CHILDREN, PIECE_MIB);
}

/* Files in memory that are not mapped are in no process's resident memory. */
static enum verdict memory_files(void)
{
	static char block[1 << 20];
	be_patient(PATIENCE_S);
	memset(block, 1, sizeof(block));
	signal(SIGXFSZ, SIG_IGN);
	for (int mib = 0, fd = -1; mib < HOG_MIB; mib++) {
		if (mib % PIECE_MIB == 0 && (fd = memfd_create("hog", MFD_CLOEXEC)) < 0)
			return is_blocked(errno, "memfd_create at %d MiB", mib);
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			return is_blocked(errno, "at %d MiB", mib);
	}
	return held("in memory files");
}

/* Shared anonymous memory counts for no process's data segment. */
static enum verdict shared(void)
{
	be_patient(PATIENCE_S);
	for (int mib = 0; mib < HOG_MIB; mib += PIECE_MIB)
		if (!touched(PIECE_MIB << 20, MAP_SHARED))
			return is_blocked(errno, "at %d MiB", mib);
	return held("shared");
}

/* Segments that are not attached are in no process's resident memory. */
static enum verdict segments(void)
{
	int ids[HOG_MIB / PIECE_MIB], count = 0, error = 0;
	be_patient(PATIENCE_S);
	for (; count < HOG_MIB / PIECE_MIB; count++) {
		ids[count] = shmget(IPC_PRIVATE, PIECE_MIB << 20, 0600 | IPC_CREAT);
		char *piece = ids[count] < 0 ? (char *)-1 : shmat(ids[count], NULL, 0);
		if (piece == (char *)-1) {
			error = errno;
			break;
		}
		memset(piece, 1, PIECE_MIB << 20);
		shmdt(piece);
	}
	if (!error)
		wait_ms(given_number("HOLD_MS"));
	for (int i = 0; i < count; i++)
		shmctl(ids[i], IPC_RMID, NULL);
	return error ? is_blocked(error, "at %d MiB", count * PIECE_MIB) : is_open("%d MiB in segments", HOG_MIB);
}

/* Shared, as the limit on a process's data would stop private memory. */
static void *hog_without_leader(void *argument)
{
	int mib = 0;
	(void)argument;
	/* Zero means that the main thread has ended: it is no member of the group any more that could be asked. */
	while (status_line("VmRSS", 10) >= 0)
		wait_ms(1);
	while (mib < HOG_MIB && touched(PIECE_MIB << 20, MAP_SHARED))
		mib += PIECE_MIB;
	_exit(mib < HOG_MIB ? is_blocked(errno, "at %d MiB", mib) : held("in a process whose first thread has ended"));
}

/* The account of a process whose first thread has ended is empty, though the others go on. */
static enum verdict zombie_leader(void)
{
	pthread_t thread;
	be_patient(PATIENCE_S);
	int error = pthread_create(&thread, NULL, hog_without_leader, NULL);
	if (error)
		return is_blocked(error, "pthread_create");
	syscall(SYS_exit, 0);
	return OPEN;
}

/*
 * The kernel's own memory for what is mapped. What was only read is one page of zeros that is counted nowhere; the
 * tables that say so are 4 KiB for every 2 MiB.
 */
static enum verdict page_tables(void)
{
	const size_t piece = 1L << 30;
	long had = 0;
	be_patient(PATIENCE_S);
	/* Twice as many as it takes, if the account did not grow. */
	for (int count = 0; count < TABLES_MIB && had < TABLES_MIB; count++) {
		volatile char *at = mmap(NULL, piece, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			return is_blocked(errno, "at %ld MiB of page tables", had);
		for (size_t offset = 0; offset < piece; offset += TABLE_MAPS)
			(void)at[offset];
		had = status_line("VmPTE", 10) >> 10;
	}
	if (had < TABLES_MIB)
		return is_untried("the page tables stayed at %ld MiB", had);
	wait_ms(given_number("HOLD_MS"));
	return is_open("%ld MiB of page tables", had);
}

/* Shared memory stays in memory when its only mapping releases it, and is in no process's resident memory then. */
static enum verdict released(void)
{
	be_patient(PATIENCE_S);
	for (int mib = 0; mib < HOG_MIB; mib++) {
		char *piece = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (piece == MAP_FAILED)
			return is_blocked(errno, "at %d MiB", mib);
		memset(piece, 1, 1 << 20);
		if (madvise(piece, 1 << 20, MADV_DONTNEED) < 0)
			return is_blocked(errno, "MADV_DONTNEED at %d MiB", mib);
	}
	return held("of shared memory that it has released");
}

static enum verdict locked(void)
{
	size_t size = LOCKED_MIB << 20;
	char *piece = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (piece == MAP_FAILED)
		return is_blocked(errno, "mmap");
	return outcome("16 MiB locked in memory", mlock(piece, size));
}

const struct attack memory_attacks[] = {
	{ "memory-one-process", one_process },
	{ "memory-many-children", many_children },
	{ "memory-files", memory_files },
	{ "memory-shared", shared },
	{ "memory-segments", segments },
	{ "memory-zombie-leader", zombie_leader },
	{ "memory-page-tables", page_tables },
	{ "memory-dontneed", released },
	{ "memory-locked", locked },
	{ NULL, NULL },
};
