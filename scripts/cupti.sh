#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# cupti.sh VERSION..: build/cupti/VERSION/include with CUPTI's headers, for the doubles that
# tests and the demo use where there is no GPU: from NVIDIA's wheels on PyPI. sonde and its
# shim are built without them. Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/wheels.sh
# The newest minor versions whose layouts tests/fakes/cuda/cupti_double.h has
declare -A wheels=([12]="nvidia-cuda-cupti-cu12==12.9.79" [13]="nvidia-cuda-cupti==13.5.25")

fetch() { # VERSION DIR
	download_wheels "$2" "${wheels[$1]}" && mkdir "$2/include" && cp -r "$2"/wheels/nvidia/*/include/. "$2/include"
}

fetch_each build/cupti include/cupti_activity.h CUPTI "$@"
