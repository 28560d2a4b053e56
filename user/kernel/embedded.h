/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The BPF object inside this program: opened, not loaded, so no privilege is needed. */
#pragma once

#include "kernel/probes.h"

struct sonde_bpf;

struct embedded {
	struct sonde_bpf *skel;
	struct schema *schema;
	struct probes probes;
};

/* Returns 0 or negative errno with a message. e must be zeroed; close it in any case. */
int embedded__open(struct embedded *e, char *err, size_t len);
void embedded__close(struct embedded *e);
/*
 * Only the schema, read from the object's BTF without opening the object: for names. Returns 0 or negative errno with
 * a message.
 */
int embedded__schema(struct schema **out, char *err, size_t len);
/* libbpf's messages since the last call of embedded__open; "" if there are none. */
const char *embedded__log(void);
