#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# readme.sh BUILD: records the traces whose reports the docs print, docs/demo/*.sonde, as root; and makes README's
# picture if chromium and pngquant are installed. The traces are part of the tree. So they are short, and this script
# records them at /mnt and as host "demo" without a machine id: they show neither where it ran nor on which machine. It
# runs in a session of its own with priority, so that other work on the machine shows less.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ ${2:-} != inside ]]; then
	exec setsid -w nice -n -19 unshare --mount --uts "$0" "$(realpath --relative-to=. "$1")" inside
fi
[[ ! -e /proc/self/autogroup ]] || echo -19 > /proc/self/autogroup
build=$1
hostname demo
[[ ! -e /etc/machine-id ]] || mount --bind /dev/null /etc/machine-id
mount --bind . /mnt
cd /mnt
tmp=$(mktemp -d /var/tmp/demo-XXX)
trap 'rm -rf "$tmp"' EXIT

# so that the GPU's times begin at once, and not after up to a second
SONDE_CUPTI_LOOK_MS=5 scripts/demo.sh "$build" docs > /dev/null
journal() { # TRACE [batch]
	# so that the recorded run does not read its libraries from the disk
	(cd "$tmp" && /usr/bin/python3 /mnt/tests/workloads/journal.py 0.1 > /dev/null)
	(cd "$tmp" && "/mnt/$build/sonde" record -q -f -o "/mnt/docs/demo/$1.sonde" -t +syscall,lock,disk \
		--off-cpu=200000 -- /usr/bin/python3 /mnt/tests/workloads/journal.py 0.3 "${@:2}")
}
journal slow
journal mended batch
chmod 644 docs/demo/*.sonde

if command -v chromium > /dev/null && command -v pngquant > /dev/null; then
	"$build/sonde" export docs/demo/demo.sonde --to html -f -o "$tmp/demo.html"
	HOME=$tmp chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1100,1130 \
		--screenshot="$tmp/demo.png" "file://$tmp/demo.html" 2> /dev/null
	pngquant --force --output docs/demo/demo.png 48 "$tmp/demo.png"
else
	echo "chromium and pngquant are not installed: docs/demo/demo.png stays as it is"
fi
