/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which source files a trace may quote. */
#pragma once

#include <stdbool.h>

/* Does the name end as one of a source file? So a process can't name a file such as a key. */
bool source_path__is_source(const char *name);
/* The C++ library and other headers of the system, Rust's library */
bool source_path__is_library(const char *path);
/* Is it the absolute path of a source file that belongs to no library and no package? */
bool source_path__is_users(const char *path);
