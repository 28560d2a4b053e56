#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# lint.sh BUILD: style and static checks of all files that git tracks or would add, and
# a build in which warnings are errors. Any finding is a failure. QUICK=1: without cppcheck, which takes minutes.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=${1:-build/lint}
passed=0 failed=0 skipped=0

files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [[ ! -f $f ]] || echo "$f"; done; }
mapfile -t c < <(files '*.c' '*.h')
mapfile -t host < <(files 'user/*.c' 'bpf/probes/*.c' | grep -v '\.bpf\.c$')
mapfile -t all < <(files)
mapfile -t texts < <(files user bpf cupti-shim docs README.md tests | grep -vE 'schema\.(golden|json)$|\.events$')
# Prints the files whose first line matches. One awk for all files, as a process for each takes seconds.
begin_with() { awk -v pattern="$1" 'FNR == 1 { if ($0 ~ pattern) print FILENAME; nextfile }' "${@:2}"; }
mapfile -t shell < <(begin_with '^#!.*[ /](ba)?sh( |$)' "${all[@]}")
mapfile -t python < <({ begin_with '^#!.*python3' "${all[@]}"; files '*.py'; } | sort -u)
mapfile -t sh < <(files '*.sh')
mapfile -t shell_library < <(begin_with '^([^#]|#[^!]|#?$)' "${sh[@]}")

check() { # NAME COMMAND..
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		echo "ok - $name"
		passed=$((passed + 1))
	else
		echo "$out" | head -n 100
		echo "not ok - $name"
		failed=$((failed + 1))
	fi
}

spdx() {
	local without
	without=$(comm -13 \
		<(awk 'FNR > 3 { nextfile } /SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause/ { print FILENAME; nextfile }' \
			"${c[@]}" "${shell[@]}" "${python[@]}" | sort -u) \
		<(printf '%s\n' "${c[@]}" "${shell[@]}" "${python[@]}" | sort -u))
	[[ -z $without ]] || { printf '%s: no SPDX line at its top\n' "$without"; return 1; }
}

# another python3 in PATH lacks Debian's modules
python_is_debians() { ! grep -nE '^#!/usr/bin/env python' "${python[@]}" /dev/null; }

mapfile -t own_c < <(printf '%s\n' "${c[@]}" | grep -v '^vmlinux/')
# clang-format does not reflow comments, and ruff allows lines of 160 columns, which code may have
long_comments() {
	awk -v max=120 'FNR == 1 { in_c = FILENAME ~ /\.[ch]$/ }
		in_c ? /^[ \t]*(\/\/|\/\*|\*([ \t]|$))/ : /^[ \t]*#/ {
			columns = 0
			n = split($0, part, "\t")
			for (i = 1; i < n; i++)
				columns = int((columns + length(part[i])) / 8 + 1) * 8
			columns += length(part[n])
			if (columns > max) { print FILENAME ":" FNR ": a comment of " columns " columns, more than " max; bad = 1 }
		}
		END { exit bad }' "${own_c[@]}" "${shell[@]}" "${shell_library[@]}" "${python[@]}" Makefile
}

blanks() { ! grep -nIE '[[:blank:]]+$' "${all[@]}" /dev/null; }

# Debian 12 has no package of ruff: installs a fixed version from the Python Package Index in a folder of its own
ruff_version=0.17.6
get_ruff() {
	local folder=build/ruff-$ruff_version
	ruff=$folder/bin/ruff
	[[ -x $ruff ]] && return
	rm -rf "$folder" && /usr/bin/python3 -m venv "$folder" && "$folder/bin/pip" install -q --disable-pip-version-check "ruff==$ruff_version"
}

# Scripts in tests/ have an extension, except for the command `run` of a folder
extensions() {
	local f bad=0
	for f in "${python[@]}" "${shell[@]}"; do
		[[ $f != tests/* || $f == *.py || $f == *.sh || $f == */run ]] && continue
		echo "$f: no .py or .sh at its end"
		bad=1
	done
	return $bad
}

# tests/run skips files that are not executable
executables() {
	local f bad=0
	for f in "${python[@]}" "${shell[@]}"; do
		[[ $f != tests/*/test_* || -x $f ]] && continue
		echo "$f: not executable, so that it is never run"
		bad=1
	done
	return $bad
}

# A folder of user/ includes headers of itself and of those named here: dependencies point downward only.
declare -A below=(
	[util]="" [schema]="util" [output]="util" [trace]="schema util" [model]="output schema trace util"
	[findings]="model output schema trace util" [report]="findings model output schema trace util"
	[diff]="findings model output schema trace util"
	[export]="findings report model output schema trace util" [sandbox]="util" [process]="sandbox util"
	[elf]="process sandbox util" [site]="elf util" [kernel]="schema util" [attach]="elf kernel process python sandbox schema site util"
	[python]="elf process sandbox util" [inject]="elf process sandbox util"
	[record]="attach elf kernel process python sandbox schema site trace util"
	[cmd]="attach diff elf export findings inject kernel model output process python record report sandbox schema site trace util"
)

directions() {
	local folder bad=0 folders="${!below[*]}"
	for folder in user/*/; do
		folder=$(basename "$folder")
		[[ -v "below[$folder]" ]] || { echo "user/$folder: scripts/lint.sh does not say what it may include" && bad=1; }
		local allowed="$folder ${below[$folder]-}"
		grep -rnE "^#include \"(${folders// /|})/" --include='*.[ch]' "user/$folder" |
			grep -vE "#include \"(${allowed// /|})/" && bad=1
	done
	return $bad
}

# The files that use the fields of a part of a recording (user/record/parts.h): its folder or its file. The fields of
# `load` are also read where files are examined and probes attached.
declare -A owner=(
	[load]="load/ attach/ examine/ drain/ hosts metadata session" [refused]="load/" [targets]="select/" [filter]="select/"
	[objects]="discover/" [preattach]="discover/" [shares]="discover/" [hung]="discover/" [remote]="discover/"
	[examiner]="examine/" [site_links]="attach/" [slices]="attach/" [suspension]="suspension" [shims]="shims" [own_tids]="own_tids" [meters]="meters" [drain]="drain/"
	[losses]="drain/" [stacks]="stacks/" [python]="stacks/" [native]="stacks/" [tasks]="stacks/" [hosts]="hosts"
	[memory]="memory" [warnings]="warnings"
)

# Only its owner uses the fields of a part; status.c reads them all. Host code knows only record/family.h.
parts() {
	local part bad=0
	for part in "${!owner[@]}"; do
		grep -rnE "\b(s|session)->$part(\.|->)" --include='*.c' user/record |
			grep -vE "^user/record/(status\.c|${owner[$part]// /|}(\.c)?)" && bad=1
	done
	grep -nE '#include "record/' bpf/probes/*/* | grep -v '"record/family.h"' && bad=1
	grep -rn '#include "record/parts.h"' --include='*.h' user && bad=1
	return $bad
}

# CONTRIBUTING.md, "Style": everyday words that had private meanings here, in place of a term
# or a noun. Field `told` of event gpu_shim stays, as it is part of the format; so do expected texts with older schemas.
words() {
	local bad='\b([Tt]old|[Ff]elt by|[Ww]hose doing|dear|[Aa]midst|in the midst|[Nn]obody|[Ss]omebody|[Ww]hoever|[Cc]ome what may|[Ww]anted|[Ll]est|dull)\b'
	bad+='|\b(broken off|thrown away|makes? no sense|in vain|be had|[Ll]ets? go)\b'
	local field='u64 told DOC|s->told = |^docs/events.md:[0-9]+:\| told \||"told version |gpu_shim'
	! grep -nIE "$bad" "${texts[@]}" /dev/null | grep -vE "$field"
}

# This is first, as cppcheck reads the headers that the build generates
compile() { env -u MAKELEVEL -u MAKEFLAGS make --no-print-directory -s WERROR=1 B="$build" "$@"; }
check "compiles without a warning" compile all checks benches
check "compiles without a warning, sanitized" compile SAN=1 all checks
format() { printf '%s\0' "${c[@]}" | xargs -0 -P "$(nproc)" -n 100 clang-format --dry-run -Werror; }
check "clang-format (${#c[@]} files)" format
[[ -n ${QUICK:-} ]] || check "cppcheck (${#host[@]} files)" cppcheck --quiet --std=c11 --language=c -j "$(nproc)" --inline-suppr \
	--enable=warning,performance,portability --error-exitcode=1 --suppressions-list=scripts/cppcheck.suppress \
	--library=posix -D_GNU_SOURCE -D__x86_64__ -D"LIBBPF_OPTS(type,name,...)=struct type name" -DSONDE_VERSION='"0"' -Iuser -Ibpf "${host[@]}"
check "shellcheck ($((${#shell[@]} + ${#shell_library[@]})) files)" shellcheck -x -e SC2317 "${shell[@]}" "${shell_library[@]}"
if get_ruff; then
	check "ruff (${#python[@]} files)" "$ruff" check --no-cache --config scripts/ruff.toml "${python[@]}"
else
	echo "ok - ruff # SKIP the Python Package Index does not provide it"
	skipped=1
fi
check "names of test files" extensions
check "test programs are executable" executables
check "Python is /usr/bin/python3" python_is_debians
check "licence lines" spdx
check "includes point downward" directions
check "parts of a recording" parts
check "docs/json.md has the keys of the code" scripts/json-keys.py "$build" --check
check "no blanks at a line's end" blanks
check "lines of comments have at most 120 columns" long_comments
check "terms of the glossary (${#texts[@]} files)" words
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
