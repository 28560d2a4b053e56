/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* For a child that inserts or removes probes and must not be killed meanwhile: moves it to its own session and name. */
void signals__withstand(const char *name);
/* For a child: has a signal end it after this time, even if its parent has ended or may not kill it. */
void signals__end_after(unsigned int seconds);
