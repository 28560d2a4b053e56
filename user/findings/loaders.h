/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data loaders of PyTorch: how long a training process was in them, and what their worker processes did. */
#pragma once

#include "findings/finding.h"

/* What the main thread of a worker did */
enum loader_part {
	LOADER_RUN, /* ran on a CPU */
	LOADER_DISK, /* waited for a disk */
	LOADER_CPU, /* was runnable without a CPU */
	LOADER_NET, /* waited for another process or machine */
	LOADER_OTHER, /* other waits */
	LOADER_IDLE, /* waited for the training process, which did not need a batch yet */
	LOADER_PARTS
};

struct loader_worker {
	u32 pid, trainer; /* trainer: the process that started it; 0: not known */
	u64 wall_ns, ns[LOADER_PARTS]; /* of its main thread */
	u64 pickle_ns; /* its other threads ran: one of them pickles and sends the batches */
	bool is_started; /* its start was recorded */
};

/* The loaders of one training process, as a whole */
struct loader {
	u32 pid, tid; /* tid: the thread that was in the loader longest; 0: not known */
	u64 batches; /* 0: not known */
	u64 wait_ns, wall_ns; /* of this thread: in the loader, and in all or in its steps */
	bool has_steps; /* both are from the recorded ranges, else from stacks */
	bool is_own; /* there are no workers: that thread loads the data itself */
	u32 n_workers, n_started;
	u32 busiest; /* index of the worker that ran longest */
	u64 workers_ns, ns[LOADER_PARTS], pickle_ns; /* sums over its workers */
};

struct loaders {
	struct map list; /* u32 pid -> struct loader */
	struct map workers; /* u32 pid -> struct loader_worker */
};

/* Needs the profile to be classified. 0 or -ENOMEM; loaders__free in any case. */
int loaders__read(struct loaders *l, const struct finding_input *in);
void loaders__free(struct loaders *l);
