/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once

/* For a child that inserts or removes probes and must not be killed meanwhile: moves it to its own session and name. */
void signals__withstand(const char *name);
