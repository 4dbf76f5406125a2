/* Files of others: secrets of the host, of Talon and of other plugins. */
#define _GNU_SOURCE
#include "attack.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static enum verdict read_shadow(void)
{
	struct ways ways = { 0 };
	const char *const paths[] = { "/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/var/backups/shadow.bak" };
	for (int i = 0; i < 4; i++)
		try_way(&ways, paths[i], can_read(paths[i]));
	return judge(&ways);
}

static enum verdict read_homes(void)
{
	struct ways ways = { 0 };
	const char *const paths[] = { "/root/.ssh/id_ed25519", "/home/operator/.ssh/id_ed25519" };
	for (int i = 0; i < 2; i++)
		try_way(&ways, paths[i], can_read(paths[i]));
	return judge(&ways);
}

static enum verdict read_peer_state(void)
{
	return outcome("another plugin's state", can_read(given("PEER_STATE")));
}

static enum verdict read_talon_config(void)
{
	return outcome("Talon's configuration with its keys", can_read(given("TALON_CONFIG")));
}

static enum verdict list_peer_runtime(void)
{
	DIR *directory = opendir(given("PEER_RUNTIME"));
	if (!directory)
		return is_blocked(errno, "another plugin's runtime directory");
	closedir(directory);
	return is_open("another plugin's runtime directory");
}

/* An own directory is its business; everywhere else nothing may be made. */
static enum verdict write_outside(void)
{
	struct ways ways = { 0 };
	const char *const places[] = { "/",     "/etc", "/usr",  "/usr/lib", "/opt",  "/var", "/var/lib", "/var/tmp",
				       "/run",  "/home", "/root", "/srv",     "/mnt",  "/dev", "/proc",    "/sys",
				       NULL,    NULL };
	for (int i = 0; i < 18; i++) {
		const char *place = places[i] ? places[i] : given(i == 16 ? "PROGRAM_DIR" : "PEER_RUNTIME");
		const char *path = join(place, "/talon-hostile-probe");
		int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (try_way(&ways, place, fd)) {
			close(fd);
			unlink(path);
		}
	}
	return judge(&ways);
}

static enum verdict replace_program(void)
{
	struct ways ways = { 0 };
	const char *program = given("PROGRAM");
	const char *aside = join(program, ".aside");
	if (try_way(&ways, "renamed its own program", rename(program, aside)))
		rename(aside, program);
	if (try_way(&ways, "changed its own program's mode", chmod(program, 0777)))
		chmod(program, 0755);
	try_way(&ways, "opened its own program for writing", open(program, O_WRONLY | O_CLOEXEC));
	return judge(&ways);
}

static enum verdict hardlink_foreign(void)
{
	struct ways ways = { 0 };
	const char *own = join(given("OWN_DIR"), "/linked");
	const char *const targets[] = { given("PEER_STATE"), given("TALON_CONFIG"), "/etc/passwd" };
	for (int i = 0; i < 3; i++)
		if (try_way(&ways, "a hard link to a foreign file", link(targets[i], own)))
			unlink(own);
	return judge(&ways);
}

/* What the link says is resolved for the one who follows it: it leads to nothing that is not there anyway. */
static enum verdict symlink_foreign(void)
{
	const char *own = join(given("OWN_DIR"), "/link");
	if (symlink(given("TALON_CONFIG"), own) < 0)
		return is_blocked(errno, "making a symbolic link");
	int result = can_read(own);
	int error = errno;
	unlink(own);
	errno = error;
	return outcome("a foreign file through a symbolic link of its own", result);
}

/* By the number of the root directory of its file system, which needs no path to it. */
static enum verdict by_handle(void)
{
	struct {
		struct file_handle head;
		unsigned char bytes[MAX_HANDLE_SZ];
	} handle = { .head.handle_bytes = MAX_HANDLE_SZ };
	int mount, root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (name_to_handle_at(AT_FDCWD, "/usr", &handle.head, &mount, 0) < 0 && errno != EPERM && errno != ENOSYS) {
		/* A kernel that checks the right first says EPERM whatever the handle is. */
		handle.head.handle_type = 1;
		handle.head.handle_bytes = 8;
		memset(handle.bytes, 0, sizeof(handle.bytes));
	}
	int fd = open_by_handle_at(root, &handle.head, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ESTALE)
		return is_open("open_by_handle_at was granted and only then looked at");
	return outcome("open_by_handle_at", fd);
}

static enum verdict make_device(void)
{
	struct ways ways = { 0 };
	const char *path = join(given("OWN_DIR"), "/device");
	if (try_way(&ways, "a character device", mknod(path, S_IFCHR | 0600, makedev(1, 1))))
		unlink(path);
	if (try_way(&ways, "a block device", mknod(path, S_IFBLK | 0600, makedev(254, 0))))
		unlink(path);
	return judge(&ways);
}

static enum verdict open_devices(void)
{
	struct ways ways = { 0 };
	const char *const names[] = { "mem",   "kmem", "port",        "kmsg",  "sda",     "vda",  "nvme0n1", "kvm",
				      "tty",   "tty0", "tty1",        "loop0", "loop-control", "fuse", "net/tun", "uinput",
				      "hpet",  "rtc0", "vhost-vsock", "vsock", "dri/card0", "autofs", "btrfs-control",
				      "mapper/control", "console", "ptmx", "pts/ptmx" };
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		try_way(&ways, names[i], open(join("/dev/", names[i]), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
	return judge(&ways);
}

/* A call that says yes and leaves the bit out has refused it. */
static int bit_set(const char *path, long result)
{
	struct stat about;
	if (result < 0 || lstat(path, &about) < 0)
		return -1;
	errno = EPERM;
	return about.st_mode & (S_ISUID | S_ISGID) ? 0 : -1;
}

/* A file that gets its name later, when the mode is set already. */
static long make_without_name(const char *path)
{
	char own[32];
	int fd = open(given("OWN_DIR"), O_RDWR | O_TMPFILE | O_CLOEXEC, 04755);
	if (fd < 0)
		return -1;
	snprintf(own, sizeof(own), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, own, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 ? -1 : fd;
}

static long make(int way, const char *path)
{
	switch (way) {
	case 0:
		return openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 04755);
	case 1:
		return openat(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 02755);
	case 2:
		return creat(path, 04755);
	case 3:
		return make_without_name(path);
	default:
		return mknod(path, S_IFREG | 04755, 0);
	}
}

static long change(int way, const char *path, int fd)
{
	switch (way) {
	case 0:
		return chmod(path, 04755);
	case 1:
		return chmod(path, 02755);
	case 2:
		return fchmod(fd, 04755);
	case 3:
		return fchmodat(AT_FDCWD, path, 04755, 0);
	default:
		return syscall(452 /* fchmodat2 */, AT_FDCWD, path, 04755, 0);
	}
}

/* A program of its own that every user would run with its rights; the files and their bits are removed at once. */
static enum verdict set_uid_bit(void)
{
	struct ways ways = { 0 };
	const char *const making[] = { "open", "open with the group's", "creat", "O_TMPFILE", "mknod" };
	const char *const changing[] = { "chmod", "chmod with the group's", "fchmod", "fchmodat", "fchmodat2" };
	const char *path = join(given("OWN_DIR"), "/set-uid");
	for (int way = 0; way < 5; way++) {
		long fd = make(way, path);
		try_way(&ways, making[way], bit_set(path, fd));
		if (fd > 2)
			close(fd);
		unlink(path);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
		try_way(&ways, changing[way], bit_set(path, change(way, path, fd)));
		close(fd);
		unlink(path);
	}
	return judge(&ways);
}

/*
 * The same by a call that has the mode in memory, where no filter sees it. What comes of it is held if the file lies
 * where no process can execute it, and no bit counts.
 */
static enum verdict hidden_set_uid_bit(void)
{
	struct open_how how = { .flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, .mode = 04755 };
	struct statvfs about = { 0 };
	const char *path = join(given("OWN_DIR"), "/set-uid");
	int set = bit_set(path, syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)));
	int error = errno;
	statvfs(path, &about);
	unlink(path);
	errno = error;
	const unsigned long bars = ST_NOSUID | ST_NOEXEC;
	if (set == 0 && (about.f_flag & bars) == bars)
		return is_contained("openat2 set it where it means nothing");
	return outcome("openat2", set);
}

/* A process that opens a leased file for writing waits until its holder releases it, for 45 seconds if it does not. */
static enum verdict lease(void)
{
	struct ways ways = { 0 };
	const char *own = join(given("OWN_DIR"), "/leased");
	close(open(own, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	const char *const paths[] = { own, given("PROGRAM"), given("TALON_CONFIG") };
	for (int i = 0; i < 3; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		try_way(&ways, "a lease", fcntl(fd, F_SETLEASE, F_RDLCK));
		try_way(&ways, "a lease against readers, too", fcntl(fd, F_SETLEASE, F_WRLCK));
		/* Which gives it back. */
		close(fd);
	}
	unlink(own);
	return judge(&ways);
}

const struct attack files_attacks[] = {
	{ "set-uid-bit", set_uid_bit },
	{ "set-uid-bit-hidden", hidden_set_uid_bit },
	{ "lease", lease },
	{ "read-shadow", read_shadow },
	{ "read-homes", read_homes },
	{ "read-peer-state", read_peer_state },
	{ "read-talon-config", read_talon_config },
	{ "list-peer-runtime", list_peer_runtime },
	{ "write-outside", write_outside },
	{ "replace-program", replace_program },
	{ "hardlink-foreign", hardlink_foreign },
	{ "symlink-foreign", symlink_foreign },
	{ "open-by-handle", by_handle },
	{ "mknod", make_device },
	{ "open-devices", open_devices },
	{ NULL, NULL },
};
