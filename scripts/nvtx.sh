#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nvtx.sh: build/nvtx/{12,13}/include/nvtx3 with NVTX's headers, of CUDA 12 (NVTX 3.1) and 13 (3.5, with the extensions
# for payloads and counters), and build/nvtx/11/lib/libnvToolsExt.so.1, for tests alone: from NVIDIA's wheels on PyPI.
# Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/wheels.sh
declare -A wheels=([11]="nvidia-nvtx-cu11==11.8.86" [12]="nvidia-nvtx-cu12==12.9.79" [13]="nvidia-nvtx==13.5.25")

fetch() { # VERSION DIR
	download_wheels "$2" "${wheels[$1]}" && mv "$2"/wheels/nvidia/*/include "$2"/wheels/nvidia/*/lib "$2"
}

fetch_each build/nvtx include/nvtx3/nvToolsExt.h "NVTX of CUDA" 11 12 13
