/* `attack NAME` runs one attack; `attack --list` names them all; `attack --helper NAME …` is the harness's own. */
#define _GNU_SOURCE
#include "attack.h"

#include <stdio.h>
#include <string.h>

static const struct attack *const themes[] = {
	files_attacks,   proc_attacks,    exec_attacks,     process_attacks, privilege_attacks,
	mount_attacks,   kernel_attacks,  network_attacks,  socket_attacks,  resource_attacks,
	memory_attacks,  kernel_memory_attacks, terminal_attacks, lifecycle_attacks,
};

static const struct attack *find(const char *name)
{
	for (size_t theme = 0; theme < sizeof(themes) / sizeof(themes[0]); theme++)
		for (const struct attack *attack = themes[theme]; attack->name; attack++)
			if (!name)
				puts(attack->name);
			else if (strcmp(attack->name, name) == 0)
				return attack;
	return NULL;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		find(NULL);
		return 0;
	}
	if (argc >= 3 && strcmp(argv[1], "--helper") == 0)
		return run_helper(argv[2], argc - 3, argv + 3);
	const struct attack *attack = argc == 2 ? find(argv[1]) : NULL;
	if (!attack)
		return is_untried("usage: attack NAME | --list");
	return attack->run();
}
