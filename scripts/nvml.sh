#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nvml.sh: build/nvml/{11,12,13}/include with nvml.h of CUDA 11.8, 12.9 and 13.5, for the double of NVML and the
# comparison of sonde's declarations with it (tests/fakes/nvml/): from NVIDIA's wheels on PyPI. sonde itself is built
# without them. Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/wheels.sh
declare -A wheels=([11]="nvidia-nvml-dev-cu11==11.8.86" [12]="nvidia-nvml-dev-cu12==12.9.79" [13]="nvidia-nvml-dev==13.5.37")

fetch() { # VERSION DIR
	download_wheels "$2" "${wheels[$1]}" && mkdir "$2/include" && cp "$2"/wheels/nvidia/*/include/nvml.h "$2/include"
}

fetch_each build/nvml include/nvml.h "NVML of CUDA" 11 12 13
