// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "core/sonde.bpf.h"
#include "tiny.h"

/* int tiny_work(void *data, size_t bytes) */
SPAN(tiny_work, "libtiny.so:tiny_work", tiny_work)
{
	e->bytes = ARG2(ctx);
}
