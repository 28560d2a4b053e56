#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: parallel gate
# The completions of bash and zsh, and the manual pages that are generated from --help.
set -u
# shellcheck source=tests/lib/tap.sh
. "${ROOT:-.}/tests/lib/tap.sh"

PATH=$(dirname "$SONDE"):$PATH
cd "$TMPDIR" || exit
touch run.sonde other.txt
# shellcheck source=/dev/null
source "$ROOT/scripts/completion/sonde.bash"
compopt() { :; }

# WORDS..: prints the completions of the last word
complete_words()
{
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_sonde 2> /dev/null
	echo "${COMPREPLY[*]}"
}

offers() # WANT NOT WORDS..
{
	local want=$1 not=$2 got

	shift 2
	got=" $(complete_words "$@") "
	[[ $got == *" $want "* && ($not == "" || $got != *" $not "*) ]]
	result $? "${*:1:$#-1} ${*: -1}.. offers $want" "$got"
}

offers record "" sonde re
offers report list sonde rep
offers gil sched sonde record -t g
offers +gil,sched "" sonde record -t +gil,sc
offers --duration --format sonde record --d
offers --sched=all "" sonde record --sc
offers run.sonde other.txt sonde report ru
offers offcpu gil sonde report run.sonde off
offers text "" sonde export run.sonde --to te
offers json csv sonde report run.sonde --format j
offers events reports sonde list ev
offers $$ run.sonde sonde dump $$
offers $$ run.sonde sonde inject $$
offers --inject "" sonde record --inj
words=$(complete_words sonde record - | tr ' ' '\n' | grep .)
[[ -z $(sort <<< "$words" | uniq -d) && $words != *--epochs* && $words == *-F* ]]
result $? "each option of record is offered once, and no option of commands in its examples" "$words"
offers --interval --sched=all sonde top --i
offers imports gil sonde report run.sonde imp

# The views that formats of stacks accept in place of an event
views()
{
	[[ $1 != families ]] || echo lean
	[[ $1 != events ]] || sonde export --help | grep -oE '\b(on-cpu|off-cpu|gil-wait|gil-blame)\b' | sort -u
}

# Exactly the names that the program lists are offered.
same() # WHAT WORDS..: the completions of the last word are the names in `sonde list WHAT`
{
	local what=$1 want got

	shift
	# core is not offered, as every trace has its events
	want=$( (sonde list "$what" --format csv | sed -n '3,$s/,.*//p' | grep -vx core; views "$what") | sort)
	got=$(complete_words "$@" | tr ' ' '\n' | grep -v '\.sonde$' | sort)
	[[ -n $want && $got == "$want" ]]
	result $? "bash: ${*:1:$#-1} offers all $what and nothing else" "$(diff <(echo "$want") <(echo "$got"))"
}
same families sonde record -t ""
same formats sonde export run.sonde --to ""
same events sonde export run.sonde --event ""
offers gil other.txt sonde report ""

# Runs zsh with the functions that pass completions to its line editor replaced by ones that print them.
zsh_words() # WORDS..
{
	zsh -f -c '
		compadd() { while [[ $1 == -* || $1 == --* ]]; do [[ $1 == -a ]] && { shift; print -l -- ${(P)1}; return }; shift; done; print -l -- "$@" }
		_describe() { print -l -- ${(P)2} | sed "s/:.*//" }
		_values() { shift 3; print -l -- "$@" }
		_files() { : }
		_pids() { : }
		words=("$@") CURRENT=$#
		service=sonde
		source <(sed "s/^_sonde \"\$@\"$/:/" "$ZSH_COMPLETION")
		_sonde' zsh "$@" | sort
}
zsh_same() # WHAT WORDS..
{
	local what=$1 want got

	shift
	# core is not offered, as every trace has its events
	want=$( (sonde list "$what" --format csv | sed -n '3,$s/,.*//p' | grep -vx core; views "$what") | sort)
	got=$(zsh_words "$@" 2>&1)
	[[ -n $want && $got == "$want" ]]
	result $? "zsh: ${*:1:$#-1} offers all $what and nothing else" "$(diff <(echo "$want") <(echo "$got"))"
}
if command -v zsh > /dev/null; then
	export ZSH_COMPLETION=$ROOT/scripts/completion/_sonde
	zsh -n "$ZSH_COMPLETION"
	result $? "zsh accepts its completion"
	zsh_same families sonde record -t ""
	zsh_same formats sonde export run.sonde --to ""
	zsh_same events sonde export run.sonde --event ""
	zsh_same reports sonde report run.sonde ""
	got=$(zsh_words sonde "")
	want=$(sonde --help | sed -n 's/^  \([a-z]\+\) \{2,\}.*/\1/p' | sort)
	[[ $got == "$want" && $got == *doctor* ]]
	result $? "zsh: every command is offered" "$got"
	got=$(zsh_words sonde record --)
	[[ $got == *--duration* && $got == *--sched=all* && $got == *--syscall-threshold* ]]
	result $? "zsh: options of record and of the families" "$got"
else
	skip "zsh accepts its completion" "no zsh"
fi

"$ROOT/scripts/man.py" "$SONDE" man
result $? "manual pages are generated"
cp "$ROOT/docs/man/sonde.1" man/
missing=$(sonde --help | sed -n 's/^  \([a-z]\+\) \{2,\}.*/\1/p' | while read -r name; do [[ -s man/sonde-$name.1 ]] || echo "$name"; done)
[[ -z $missing ]]
result $? "every command has a manual page" "$missing"
# the text of a page, without roff's escapes
words_of() { sed 's/\\-/-/g; s/\\e/\\/g; s/\\&//g' "$1"; }
missing=$(for page in man/sonde-*.1; do
	c=${page#man/sonde-} c=${c%.1}
	sonde "$c" --help | grep -oE -- '(^|[ ,])--?[a-z][a-z-]*' | tr -d ' ,' | sort -u | while read -r o; do
		words_of "$page" | grep -qF -- "$o" || echo "$c $o"
	done
done)
[[ -z $missing ]]
result $? "every option of every command is in its manual page" "$missing"
# The options of each command's usage, which ends at the first empty line; placeholders for options of families are left
# out
missing=$(synopsis=$(words_of man/sonde.1 | sed -n '/^\.SH SYNOPSIS/,/^\.SH DESCRIPTION/p')
	sonde --help | sed -n 's/^  \([a-z]\+\) \{2,\}.*/\1/p' | while read -r c; do
	part=$(sed -n "/^\.B sonde $c\$/,/^\.\(br\|SH\)/p" <<< "$synopsis")
	sonde "$c" --help | sed '/^$/q' | grep -oE -- '(^|[ [])--?[a-zA-Z][a-z-]*' | tr -d ' [' | sort -u | grep -vx -e -- -e --F | while read -r o; do
		grep -qE -- "(^|[^a-z-])$o([^a-z-]|\$)" <<< "$part" || echo "$c $o"
	done
done)
[[ -z $missing ]]
result $? "the synopsis of sonde(1) has every option of the usages" "$missing"
for pair in "record options" "record families" "report reports" "export formats"; do
	read -r page what <<< "$pair"
	missing=$(sonde list "$what" --format csv | sed -n "3,\$s/,.*//p" | grep -v '^core$' | while read -r w; do
		words_of "man/sonde-$page.1" | grep -qF -- ".B $w" || echo "$w"
	done)
	[[ -z $missing ]]
	result $? "sonde-$page(1) has all $what" "$missing"
done
if command -v groff > /dev/null; then
	said=$(for page in man/*.1; do groff -man -Tutf8 -ww "$page" 2>&1 > /dev/null; done)
	[[ -z $said ]]
	result $? "groff prints no warning about the manual pages" "$said"
else
	skip "groff prints no warning about the manual pages" "no groff"
fi
if command -v man > /dev/null && command -v lexgrog > /dev/null; then
	said=$(for page in man/*.1; do MANWIDTH=100 man --warnings -l "$page" 2>&1 > /dev/null || echo "man fails: $page"
		lexgrog "$page" > /dev/null || echo "lexgrog fails: $page"; done)
	[[ -z $said ]]
	result $? "man prints no warning, and whatis finds the manual pages" "$said"
else
	skip "man prints no warning, and whatis finds the manual pages" "no man"
fi
done_testing
