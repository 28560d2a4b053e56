#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# math.sh: build/math/12/{include,lib} with NVIDIA's mathematics libraries, for the tests
# test_real.py of families cublas, cudnn and cudalib, which are no part of the gate: from
# NVIDIA's wheels on PyPI, 2.5 GB once, unpacked 3.7 GB. sonde itself needs none. Prints
# the packages that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=build/math/12
packages=(cublas==12.9.3.13 cudnn==9.28.0.42 cufft==11.4.1.4 cusparse==12.5.10.65 cusolver==11.7.5.82
	curand==10.3.10.19 nvjpeg==12.4.0.76 npp==12.4.1.87 nvjitlink==12.9.86)

if [[ -n ${FRESH:-} ]]; then
	echo "mathematics libraries: not downloaded into a root that is thrown away"
	exit 1
fi
mkdir -p "$dir/include" "$dir/lib"
status=0
for package in "${packages[@]}"; do
	name=${package%%==*}
	[[ ! -e $dir/$package ]] || continue
	rm -rf "$dir.tmp"
	if python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$dir.tmp" \
		"nvidia-$name-cu12==${package##*==}" < /dev/null > "$dir.log" 2>&1; then
		python3 -m zipfile -e "$dir.tmp"/*.whl "$dir.tmp"
		cp -r "$dir.tmp"/nvidia/*/include/. "$dir/include"
		mv "$dir.tmp"/nvidia/*/lib/*.so* "$dir/lib"
		touch "$dir/$package"
	else
		echo "$name: not downloaded ($(grep -m1 ERROR "$dir.log" || tail -n1 "$dir.log"))"
		status=1
	fi
	rm -rf "$dir.tmp"
done
exit $status
