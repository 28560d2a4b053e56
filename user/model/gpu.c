// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu.h"

#include <errno.h>
#include <stdlib.h>

struct gpu_model {
	struct trace *trace;
	const struct names *names;
};

int gpu_model__new(struct gpu_model **out, struct trace *t, const struct names *names)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->trace = t;
	(*out)->names = names;
	return 0;
}

void gpu_model__free(struct gpu_model *m)
{
	free(m);
}
