/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

#include <stddef.h>

struct session;

/*
 * Runs the last operations for which this process needs privileges. Afterwards it reads data of targets, and requests
 * from the attacher what needs privileges. Of /proc it reads only the parents of processes before it drops its
 * privileges, because the mount option `hidepid` hides these from a process without privileges.
 */
int privileged__start(struct session *s, char *err, size_t len);
