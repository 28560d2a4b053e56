#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# cuda.sh VERSION..: build/cuda/VERSION/{include,lib} with the CUDA runtime's
# headers, the real libcudart.so.VERSION and libcudart_static.a, for tests and the
# demo: from an installed toolkit, else from NVIDIA's wheels on PyPI. sonde itself
# needs neither. Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
root=build/cuda

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

download() { # DIR REQUIREMENT..: also for a Python that is not to install packages
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$@"
}

from_pypi() { # VERSION DIR
	# Only version 13 has a wheel of the compiler's C headers alone (crt/); 12's calls compile with them too
	local runtime="nvidia-cuda-runtime<14" crt="nvidia-cuda-crt<14" wheels=$2/wheels w
	[[ $1 != 12 ]] || runtime="nvidia-cuda-runtime-cu12<13"
	if ! python3 -m pip --version > /dev/null 2>&1; then
		echo "python3-pip is not installed" > "$2/why"
		return 1
	fi
	if ! download "$wheels" "$runtime" "$crt" 2> "$2/log" < /dev/null; then
		{ grep -m1 ERROR "$2/log" || tail -n1 "$2/log"; } > "$2/why"
		return 1
	fi
	for w in "$wheels"/*crt*.whl "$wheels"/*runtime*.whl; do
		python3 -m zipfile -e "$w" "$wheels"
	done
	mkdir -p "$2/include" "$2/lib"
	cp -r "$wheels"/nvidia/*/include/. "$2/include"
	cp "$wheels"/nvidia/*/lib/{libcudart.so.*,libcudart_static.a} "$2/lib"
	rm -r "$wheels"
}

status=0
for version in "$@"; do
	dir=$root/$version
	[[ ! -e $dir/lib/libcudart.so.$version ]] || continue
	rm -rf "$dir"
	mkdir -p "$dir.tmp"
	if from_toolkit "$version" "$dir.tmp" || from_pypi "$version" "$dir.tmp"; then
		mv "$dir.tmp" "$dir"
	else
		echo "CUDA $version: no toolkit installed and none downloaded ($(cat "$dir.tmp/why"))"
		status=1
	fi
	rm -rf "$dir.tmp"
done
exit $status
