#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# cuda.sh VERSION..: build/cuda/VERSION/{include,lib} with the CUDA runtime's
# headers, the real libcudart.so.VERSION and libcudart_static.a, for tests and the
# demo: from an installed toolkit, else from NVIDIA's wheels on PyPI. sonde itself
# needs neither. Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/wheels.sh
from_toolkit() { # VERSION
	local home
	for home in ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda /usr/local/cuda-"$1"* /opt/cuda; do
		[[ -e $home/lib64/libcudart.so.$1 && -e $home/include/cuda_runtime_api.h &&
			-e $home/include/crt/host_defines.h ]] || continue
		grep -q "define CUDART_VERSION *${1}0" "$home/include/cuda_runtime_api.h" || continue
		ln -sfn "$home/include" "$2/include"
		ln -sfn "$home/lib64" "$2/lib"
		return
	done
	return 1
}

fetch() { # VERSION DIR
	# Only version 13 has a wheel of the compiler's C headers alone (crt/); 12's calls compile with them too
	local runtime="nvidia-cuda-runtime<14" crt="nvidia-cuda-crt<14"
	[[ $1 != 12 ]] || runtime="nvidia-cuda-runtime-cu12<13"
	from_toolkit "$1" "$2" && return
	download_wheels "$2" "$runtime" "$crt" && mkdir "$2/include" "$2/lib" &&
		cp -r "$2"/wheels/nvidia/*/include/. "$2/include" &&
		cp "$2"/wheels/nvidia/*/lib/{libcudart.so.*,libcudart_static.a} "$2/lib"
}

fetch_each build/cuda lib/libcudart.so.VERSION CUDA "$@"
