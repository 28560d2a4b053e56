// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cmd/rule_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "findings/rules.h"
#include "util/file.h"
#include "util/path.h"

#define FOLDER	  "/etc/sonde/rules.d"
#define BYTES_MAX (256u << 10)

/* fd: negative errno if the file can't be opened. then: what follows from an error. false after printing one. */
static bool add_file(const char *path, int fd, const char *then)
{
	char *text = calloc(1, BYTES_MAX + 2), why[8192] = "";
	ssize_t n = fd >= 0 && text ? read(fd, text, BYTES_MAX + 1) : -1;
	int err = fd < 0		   ? fd :
		  !text			   ? -ENOMEM :
		  n < 0			   ? -errno :
		  n > BYTES_MAX		   ? -EFBIG :
		  strlen(text) < (size_t)n ? -EILSEQ :
					     0;

	if (!err)
		err = rules__add(path, text, why, sizeof(why));
	if (err == -EPERM)
		cmd__error("%s can be written by other users than root: `chown root:root` it and `chmod go-w` it%s",
			   path, then);
	else if (err == -EFBIG)
		cmd__error("%s: more than %u KiB: make several files of it%s", path, BYTES_MAX >> 10, then);
	else if (err)
		cmd__error("%s%s%s%s", *why ? why : path, *why ? "" : ": ", *why ? "" : cmd__reason(err), then);
	if (fd >= 0)
		close(fd);
	free(text);
	return !err;
}

bool rule_files__add(const char *path)
{
	return add_file(path, file__open_regular(path), "");
}

static int has_rules(const struct dirent *entry)
{
	return path__ends_with(entry->d_name, ".rules");
}

void rule_files__add_folder(void)
{
	static const char then[] = "\nits rules are not used";
	static bool is_read;
	const char *other = secure_getenv("SONDE_RULES"), *path = other ? other : FOLDER;
	int folder = is_read ? -ENOENT : file__open_trusted(AT_FDCWD, path, O_DIRECTORY), n;
	struct dirent **list = NULL;
	char name[4096];

	is_read = true;
	if (folder < 0 && folder != -ENOENT)
		add_file(path, folder, then);
	n = folder < 0 ? 0 : scandirat(folder, ".", &list, has_rules, alphasort);
	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, list[i]->d_name);
		add_file(name, file__open_trusted(folder, list[i]->d_name, 0), then);
		free(list[i]);
	}
	free(list);
	if (folder >= 0)
		close(folder);
}
