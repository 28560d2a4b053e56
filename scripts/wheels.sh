# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# wheels.sh: for the scripts that take headers and libraries from NVIDIA's wheels on PyPI.
# shellcheck shell=bash

# download_wheels DIR REQUIREMENT..: the wheels and their files in DIR/wheels; if that fails, the reason in DIR/why
download_wheels() {
	local wheel
	if ! python3 -m pip --version > /dev/null 2>&1; then
		echo "python3-pip is not installed" > "$1/why"
		return 1
	fi
	# also for a Python that is not to install packages
	if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		-d "$1/wheels" "${@:2}" 2> "$1/log" < /dev/null; then
		{ grep -m1 ERROR "$1/log" || tail -n1 "$1/log"; } > "$1/why"
		return 1
	fi
	for wheel in "$1"/wheels/*.whl; do
		python3 -m zipfile -e "$wheel" "$1/wheels"
	done
}

# fetch_each ROOT FILE WHAT VERSION..: for each version whose ROOT/VERSION/FILE is missing (the word VERSION in FILE
# stands for it), `fetch VERSION DIR` fills a folder, which then has this name. Prints what could not be downloaded,
# WHAT being its name, and then returns 1.
fetch_each() {
	local root=$1 file=$2 what=$3 status=0 version dir
	for version in "${@:4}"; do
		dir=$root/$version
		[[ ! -e $dir/${file//VERSION/$version} ]] || continue
		rm -rf "$dir" "$dir.tmp"
		mkdir -p "$dir.tmp"
		if fetch "$version" "$dir.tmp"; then
			rm -rf "$dir.tmp/wheels" "$dir.tmp/log"
			mv "$dir.tmp" "$dir"
		else
			echo "$what $version: could not be downloaded ($(cat "$dir.tmp/why" 2> /dev/null || echo "a file is not in the wheel"))"
			status=1
		fi
		rm -rf "$dir.tmp"
	done
	return $status
}
