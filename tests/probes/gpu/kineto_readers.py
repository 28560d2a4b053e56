# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""kineto_readers.py FOLDER FILE..: what HolisticTraceAnalysis and TensorBoard's plugin for torch.profiler read in the files of ranks 0, 1, ..,
which FOLDER has, too. Prints one object of JSON. test_hta.py runs it with an interpreter that has both packages."""
import json
import logging
import os
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"


def read_hta(files):
    from hta.trace_analysis import TraceAnalysis
    from hta.trace_diff import TraceDiff
    t = TraceAnalysis(trace_files=dict(enumerate(files)), include_last_profiler_step=True)
    ranks = list(range(len(files)))
    kinds, kernels = t.get_gpu_kernel_breakdown(visualize=False, num_kernels=100)
    launches = t.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
    queue = t.get_queue_length_summary(ranks=ranks)
    return {
        "temporal": t.get_temporal_breakdown(visualize=False).to_dict("records"),
        "idle": t.get_idle_time_breakdown(ranks=ranks, visualize=False)[0].to_dict("records"),
        "kinds": kinds.to_dict("records"),
        "kernels": kernels.to_dict("records"),
        "overlap": t.get_comm_comp_overlap(visualize=False).to_dict("records"),
        "launches": {rank: [len(rows), float(rows["gpu_duration"].sum())] for rank, rows in launches.items()},
        "queued": [[*index, int(row[("queue_length", "max")])] for index, row in queue.iterrows()],
        "stragglers": t.get_potential_stragglers(num_candidates=1),
        "difference": len(TraceDiff.compare_traces(t.t, t.t, control_rank=0, test_rank=1)),
    }


def read_tensorboard(folder):
    from torch_tb_profiler.io.cache import Cache
    from torch_tb_profiler.profiler.loader import RunLoader
    found = {}
    with Cache() as cache:
        for p in RunLoader("run", folder, cache).load().profiles.values():
            rows = p.kernel_table["data"]["rows"]
            found[p.worker] = {"kernels": {row[0]: [row[2], row[3]] for row in rows}, "operators": {
                row["name"]: row["calls"] for row in p.operation_table_by_name["data"]}, "views": [view.name for view in p.views]}
    return found


if __name__ == "__main__":
    print(json.dumps({"hta": read_hta(sys.argv[2:]), "tensorboard": read_tensorboard(sys.argv[1])}, default=float))
