#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# check-all.sh [PART|list]: all checks, of which the gate runs only a part. Each part
# states its minutes on two CPUs.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/parts.sh
export WERROR=1

uncounted=" torch incidents stress "
parts=(
	"lint|5|all static checks, with cppcheck|lint"
	"live|40|all tests, the live ones one after the other|test T=all"
	"fuzz|6|libFuzzer, half a minute for each target|fuzz S=30"
	"fresh|6|the README's commands in a new Debian 12 root, and the packages there|fresh T=gate"
	"distros|15|packages, build and smoke tests in Debian 12, 13 and sid|distros"
	"vm|30|Debian's kernels 5.10 to the newest|vm"
	"torch|10|packages of PyTorch, name by name beside torch.profiler|real-torch"
	"incidents|15|programs with a planted cause, judged by the first three lines of the summary|incidents N=--keep=build/incidents"
	"stress|12|ten minutes of churn|stress M=10"
)
found=
for part in "${parts[@]}"; do
	IFS='|' read -r name minutes what goal <<< "$part"
	if [[ ${1:-} == list ]]; then
		printf '%-10s %3d min  %s\n' "$name" "$minutes" "$what"
	elif [[ -z ${1:-} || $1 == "$name" ]]; then
		found=1
		echo "== $name: $what; about $minutes minutes"
		read -ra words <<< "$goal"
		run "$name" "${words[@]}"
	fi
done
[[ ${1:-} != list ]] || exit 0
[[ -n $found ]] || { echo "No part $1; make check-all PART=list prints them" >&2; exit 2; }
summary
