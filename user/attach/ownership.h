/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose file is probed: the attacher's own rule, which the worker can't change. It goes by inode, owner and mode of the
 * very file, never by a path.
 *
 * The file of a setuid or setgid program gets no probe: its users are not those whom it works for. Nor do the libraries
 * that sonde itself is linked with, the C library before all, of a program that declares no library (SITE): its
 * places come from the family's host code. Declared functions of such a library are probed as any.
 *
 * With --trusted-files a file also has to belong to root or to the user of a process that was seen to map it: what
 * another user can write to is not probed, as that user could change it while it is.
 */
#ifndef SONDE_ATTACH_OWNERSHIP_H
#define SONDE_ATTACH_OWNERSHIP_H

#include "core/types.h"

#include <stdbool.h>
#include <sys/types.h>

struct ownership;

/* NULL: no memory. */
struct ownership *ownership__new(bool trusted_files);
void ownership__free(struct ownership *o);
struct inode_note {
	dev_t dev;
	ino_t ino;
	uid_t owner;
};

/*
 * A process maps the file behind this descriptor (also of O_PATH). true: it is the process of the file's owner, who is not
 * root, and *out names the file. For the opener, which writes it to the attacher.
 */
bool ownership__note(int fd, pid_t pid, struct inode_note *out);
/* Such a file. */
void ownership__add(struct ownership *o, const struct inode_note *note);
/*
 * May the file be probed? site: by a program that declares no library. 0; -EPERM: it is a setuid program's or one of
 * the system's own libraries; -EACCES: its owner is not trusted.
 */
int ownership__check(const struct ownership *o, int fd, bool site);

#endif
