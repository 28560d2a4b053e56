/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The titles of processes at the other ends of connections, which state what a server does for this client. */
#pragma once

#include "core/file.h"
#include "record/session.h"

/* If the process has given itself a title, writes it to the trace. */
void titles__note_peer(struct session *s, const struct syscall_peer *peer);
