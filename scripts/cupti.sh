#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# cupti.sh VERSION..: build/cupti/VERSION/include with CUPTI's headers, for the doubles that
# tests and the demo use where there is no GPU: from NVIDIA's wheels on PyPI. sonde and its
# shim are built without them. Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
root=build/cupti
# The newest minor versions whose layouts tests/fakes/cuda/cupti_double.h has
declare -A wheels=([12]="nvidia-cuda-cupti-cu12==12.9.79" [13]="nvidia-cuda-cupti==13.5.25")

fetch() { # VERSION DIR
	if ! python3 -m pip --version > /dev/null 2>&1; then
		echo "python3-pip is not installed" > "$2/why"
		return 1
	fi
	if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		-d "$2/wheels" "${wheels[$1]}" 2> "$2/log" < /dev/null; then
		{ grep -m1 ERROR "$2/log" || tail -n1 "$2/log"; } > "$2/why"
		return 1
	fi
	python3 -m zipfile -e "$2"/wheels/*.whl "$2/wheels"
	mkdir -p "$2/include"
	cp -r "$2"/wheels/nvidia/*/include/. "$2/include"
	rm -r "$2/wheels"
}

status=0
for version in "$@"; do
	dir=$root/$version
	[[ ! -e $dir/include/cupti_activity.h ]] || continue
	rm -rf "$dir" "$dir.tmp"
	mkdir -p "$dir.tmp"
	if fetch "$version" "$dir.tmp"; then
		mv "$dir.tmp" "$dir"
	else
		echo "CUPTI $version: its headers could not be downloaded ($(cat "$dir.tmp/why"))"
		status=1
	fi
	rm -rf "$dir.tmp"
done
exit $status
