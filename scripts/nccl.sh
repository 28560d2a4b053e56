#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nccl.sh [VERSION..]: build/nccl/VERSION/{include/nccl.h,lib/libnccl.so.2}, for
# tests: from NVIDIA's wheels on PyPI, some 300 MB each, once. sonde itself needs
# none. Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/wheels.sh
fetch() { # VERSION DIR
	# the last versions exist for CUDA 13 too, with the same functions and layouts
	local package=nvidia-nccl-cu12
	[[ $1 != 2.3[0-9].* ]] || package=nvidia-nccl-cu13
	download_wheels "$2" "$package==$1" && mkdir "$2/include" "$2/lib" &&
		cp "$2"/wheels/nvidia/*/include/nccl.h "$2/include" && cp "$2"/wheels/nvidia/*/lib/libnccl.so.2 "$2/lib"
}

if [[ -n ${FRESH:-} ]]; then
	echo "NCCL: not downloaded into a root that is thrown away"
	exit 1
fi
(($#)) || set -- 2.21.5 2.27.7 2.32.3
fetch_each build/nccl lib/libnccl.so.2 NCCL "$@"
