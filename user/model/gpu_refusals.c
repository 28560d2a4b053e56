// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model/gpu_refusals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/shim.h"
#include "model/view.h"
#include "util/array.h"

static int note(struct gpu_refusals *r, const struct view *v)
{
	u32 pid = (u32)view__get(v, "pid"), len;
	struct gpu_refusal *one = map__get(&r->reasons, &pid);
	u64 state = (u64)view__get(v, "state");
	const char *text;

	if (!one)
		return -ENOMEM;
	if (state == GPU_SHIM_STARTED || state == GPU_SHIM_IMPAIRED)
		one->is_refused = false;
	if (state != GPU_SHIM_REFUSED)
		return 0;
	text = view__text(v, schema_event__field(v->event, "text"), &len);
	one->is_refused = true;
	snprintf(one->why, sizeof(one->why), "%.*s", (int)strnlen(text, len), text);
	return 0;
}

static int on_states(const struct rows *rows, void *arg)
{
	int err = 0;

	ROWS_WHILE(!err, v, rows)
		err = note(arg, &v);
	return err;
}

int gpu_refusals__read(struct gpu_refusals *r, const struct query *q)
{
	struct query all = *q;

	map__init(&r->reasons, sizeof(u32), sizeof(struct gpu_refusal));
	all.from = all.to = 0;
	all.tids.n = 0;
	return query__read_kind(&all, "gpu_shim", on_states, r);
}

void gpu_refusals__free(struct gpu_refusals *r)
{
	map__free(&r->reasons);
}

const char *gpu_refusals__of(const struct gpu_refusals *r, u32 pid)
{
	const struct gpu_refusal *one = map__find(&r->reasons, &pid);

	return one && one->is_refused && *one->why ? one->why : NULL;
}

/* The first that is part of the reason counts. Names are those of cupti_result.h. */
static const struct {
	const char *in, *advice;
} advices[] = {
	{ "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
	  "NVIDIA's driver lets only administrators trace: load it with NVreg_RestrictProfilingToAdminUsers=0 (options nvidia in /etc/modprobe.d), or give the program CAP_SYS_ADMIN." },
	{ "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
	  "The virtual machine's host has to allow it to trace its GPU: profiling is a setting of the vGPU." },
	{ "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
	  "CUPTI does not trace this virtual GPU: give the virtual machine a whole GPU, or a vGPU with profiling." },
	{ "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
	  "Only one profiler can use CUPTI in a process: end the other one, such as Nsight Systems or torch.profiler." },
	{ "another profiler",
	  "Only one profiler can use CUPTI in a process: end the other one, such as Nsight Systems or torch.profiler." },
	{ "CUPTI_ERROR_NOT_COMPATIBLE",
	  "CUPTI has to fit the driver: use the CUPTI of the CUDA version that nvidia-smi shows." },
	{ "CUPTI_ERROR_NOT_INITIALIZED",
	  "Mostly CUPTI is newer than the driver: use the CUPTI of the CUDA version that nvidia-smi shows, or an older one." },
	{ "CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED",
	  "The program uses CUPTI's older profiling functions itself: switch that off." },
	{ "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED", "This GPU needs a newer CUPTI than the program has." },
	{ "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
	  "CUPTI does not trace a GPU in confidential computing, unless its mode for developers is on." },
	{ "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED", "CUPTI does not trace this part of a GPU (MIG): use a whole GPU." },
	{ "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED", "CUPTI does not trace this GPU under WSL: use Linux itself." },
	{ "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED", "CUPTI does not trace this kind of GPU." },
	{ "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED", "CUPTI does not trace GPUs that are linked by SLI." },
	{ "lacks functions", "Another library has the name libcupti, or it is of a CUDA before 11.8." },
	{ "other users can write",
	  "Remove the right of others to write to that folder (chmod go-w), or move the library." },
};

const char *gpu_refusal__advice(const char *why)
{
	for (size_t i = 0; i < ARRAY_LEN(advices); i++)
		if (strstr(why, advices[i].in))
			return advices[i].advice;
	return "";
}
