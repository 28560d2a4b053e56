/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which files may be probed: the attacher's own rule, which the worker can't change. It uses the inode, owner and
 * mode of the opened file, never a path.
 *
 * A setuid or setgid program's file gets no probes, because it does not run for its owner. The libraries that sonde
 * itself is linked with, above all the C library, get no probes of programs that declare no library (SITE), because
 * the family's host code chooses those sites. Declared functions of such a library are probed as usual.
 *
 * With --trusted-files a file must also belong to root or to the user of a process that was seen to map it. Another
 * user could otherwise change the file while it is probed.
 */
#pragma once

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
 * Notes that a process maps the file behind this descriptor (which may be an O_PATH one). true: the process belongs
 * to the file's owner, who is not root, and *out identifies the file. Called by the opener, which sends the note to
 * the attacher.
 */
bool ownership__note(int fd, pid_t pid, struct inode_note *out);
/* Adds such a file. */
void ownership__add(struct ownership *o, const struct inode_note *note);
/*
 * May the file be probed? site: by a program that declares no library. Returns 0; -EPERM: it is a setuid program or
 * one of sonde's own libraries; -EACCES: its owner is not trusted.
 */
int ownership__check(const struct ownership *o, int fd, bool site);
