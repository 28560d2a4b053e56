#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nccl.sh [VERSION..]: build/nccl/VERSION/{include/nccl.h,lib/libnccl.so.2}, for
# tests: from NVIDIA's wheels on PyPI, some 300 MB each, once. sonde itself needs
# none. Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
root=build/nccl

unpack() { # WHEEL DIR
	python3 - "$@" << 'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    for name in wheel.namelist():
        for file, folder in (("nccl.h", "include"), ("libnccl.so.2", "lib")):
            if name.endswith(f"/{folder}/{file}"):
                open(f"{sys.argv[2]}/{folder}/{file}", "wb").write(wheel.read(name))
END
}

from_pypi() { # VERSION DIR
	# the last versions exist for CUDA 13 too, with the same functions and layouts
	local package=nvidia-nccl-cu12
	[[ $1 != 2.3[0-9].* ]] || package=nvidia-nccl-cu13
	if ! python3 -m pip --version > /dev/null 2>&1; then
		echo "python3-pip is not installed" > "$2/why"
		return 1
	fi
	if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$2/wheels" \
		"$package==$1" 2> "$2/log" < /dev/null; then
		{ grep -m1 ERROR "$2/log" || tail -n1 "$2/log"; } > "$2/why"
		return 1
	fi
	mkdir -p "$2/include" "$2/lib"
	unpack "$2"/wheels/*.whl "$2"
	rm -r "$2/wheels" "$2/log"
	[[ -s $2/include/nccl.h && -s $2/lib/libnccl.so.2 ]] || { echo "not in the wheel" > "$2/why"; return 1; }
}

if [[ -n ${FRESH:-} ]]; then
	echo "NCCL: not downloaded into a root that is thrown away"
	exit 1
fi
status=0
(($#)) || set -- 2.21.5 2.27.7 2.32.3
for version in "$@"; do
	dir=$root/$version
	[[ ! -e $dir/lib/libnccl.so.2 ]] || continue
	rm -rf "$dir" "$dir.tmp"
	mkdir -p "$dir.tmp"
	if from_pypi "$version" "$dir.tmp"; then
		mv "$dir.tmp" "$dir"
	else
		echo "NCCL $version: not downloaded ($(cat "$dir.tmp/why"))"
		status=1
	fi
	rm -rf "$dir.tmp"
done
exit $status
