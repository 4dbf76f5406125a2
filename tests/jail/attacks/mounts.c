/* The tree of files itself. Whatever would be mounted goes on a scratch directory of the attack's own. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From sys/mount.h, which cannot be had together with linux/mount.h. */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int umount2(const char *target, int flags);

static enum verdict mount_new(void)
{
	return outcome("mount of a tmpfs", mount("none", given("OWN_DIR"), "tmpfs", 0, NULL));
}

static enum verdict mount_proc(void)
{
	return outcome("mount of proc", mount("proc", given("OWN_DIR"), "proc", 0, NULL));
}

static enum verdict mount_bind(void)
{
	return outcome("a bind mount", mount("/usr", given("OWN_DIR"), NULL, MS_BIND, NULL));
}

/* Of the same kind as it is, but writable. */
static enum verdict remount_writable(void)
{
	struct ways ways = { 0 };
	struct mount_attr writable = { .attr_clr = MOUNT_ATTR_RDONLY };
	try_way(&ways, "remount", mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
	try_way(&ways, "mount_setattr", syscall(SYS_mount_setattr, AT_FDCWD, "/usr", 0, &writable, sizeof(writable)));
	return judge(&ways);
}

static enum verdict new_mount_api(void)
{
	struct ways ways = { 0 };
	try_way(&ways, "fsopen", syscall(SYS_fsopen, "tmpfs", 0));
	try_way(&ways, "open_tree", syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE));
	try_way(&ways, "fspick", syscall(SYS_fspick, AT_FDCWD, "/", 0));
	try_way(&ways, "move_mount", syscall(SYS_move_mount, AT_FDCWD, "/usr", AT_FDCWD, given("OWN_DIR"), 0));
	return judge(&ways);
}

/* What is not mounted cannot be unmounted: EINVAL, after the right was granted. */
static enum verdict unmount(void)
{
	return reached("umount2", umount2(given("OWN_DIR"), 0), EINVAL);
}

static enum verdict pivot(void)
{
	const char *own = given("OWN_DIR");
	return reached("pivot_root", syscall(SYS_pivot_root, own, own), EINVAL);
}

static enum verdict change_root(void)
{
	return outcome("chroot", chroot("/"));
}

/* Its own socket's directory, so that the supervisor would find something else at the path. */
static enum verdict rename_socket_directory(void)
{
	const char *directory = given("SOCKET_DIR"), *aside = join(directory, ".aside");
	int result = rename(directory, aside);
	if (result == 0)
		rename(aside, directory);
	return outcome("renaming its socket's directory", result);
}

static enum verdict link_socket_directory(void)
{
	const char *directory = given("SOCKET_DIR"), *aside = join(directory, ".aside");
	if (rename(directory, aside) < 0 && rmdir(directory) < 0)
		return is_blocked(errno, "moving its socket's directory out of the way");
	int result = symlink(given("PEER_RUNTIME"), directory);
	int error = errno;
	unlink(directory);
	if (rename(aside, directory) < 0)
		mkdir(directory, 0700);
	errno = error;
	return outcome("a symbolic link in place of its socket's directory", result);
}

const struct attack mount_attacks[] = {
	{ "mount-tmpfs", mount_new },
	{ "mount-proc", mount_proc },
	{ "mount-bind", mount_bind },
	{ "remount-writable", remount_writable },
	{ "mount-api", new_mount_api },
	{ "umount", unmount },
	{ "pivot-root", pivot },
	{ "chroot", change_root },
	{ "rename-socket-dir", rename_socket_directory },
	{ "link-socket-dir", link_socket_directory },
	{ NULL, NULL },
};
