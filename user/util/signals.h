/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SONDE_UTIL_SIGNALS_H
#define SONDE_UTIL_SIGNALS_H

/* In a child that is in the kernel about probes, which is to end by itself: in a session of its own, by a name of its own. */
void signals__withstand(const char *name);

#endif
