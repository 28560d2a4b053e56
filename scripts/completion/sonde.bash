# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bash completion for sonde; words come from the program itself, so that they are those of its version.

_sonde_names() # names that `sonde list WHAT` gives
{
	sonde list "$1" --format csv 2> /dev/null | sed -n "3,\$s/[ ,].*//p"
}

# After the last comma, with what stands before it
_sonde_list()
{
	local before=${cur%"${cur##*[,+]}"}

	mapfile -t COMPREPLY < <(compgen -P "$before" -W "$1" -- "${cur##*[,+]}")
	compopt -o nospace
}

_sonde()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words=$(sonde --help | sed -n 's/^  \([a-z]\+\) \{2,\}.*/\1/p')
		mapfile -t COMPREPLY < <(compgen -W "$words --help --version" -- "$cur")
		return
	fi
	case $command$prev in
	record-t | record--trace) _sonde_list "$(_sonde_names families | grep -vx core) lean" ;;
	record-p | record--pid) _sonde_list "$(cd /proc && echo [0-9]*)" ;;
	export--to) mapfile -t COMPREPLY < <(compgen -W "$(_sonde_names formats)" -- "$cur") ;;
	export--event) mapfile -t COMPREPLY < <(compgen -W "$(_sonde_names events) on-cpu off-cpu gil-wait gil-blame" -- "$cur") ;;
	*--format) mapfile -t COMPREPLY < <(compgen -W "table csv json" -- "$cur") ;;
	*-o | *--output | *--rules) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	*)
		if [[ $cur == -* ]]; then
			words=$(sonde "$command" --help | sed '/^Examples:/q; s/such as .*//' |
				grep -oE -- '(^|[ ,])(--[a-z][a-z-]*|-[A-Za-z])\b' | tr -d ' ,' | sort -u)
			[[ $command == record ]] && words+=" $(_sonde_names options)"
			mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
			return
		fi
		words=
		if [[ $command == dump || $command == top || $command == why || $command == inject ]]; then
			mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$cur")
			return
		fi
		[[ $command == report ]] && words=$(_sonde_names reports)
		[[ $command == list ]] && words="families probes events fields options reports formats"
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur"; [[ $command == list ]] || compgen -f -X '!*.sonde' -- "$cur"
			[[ $command == list ]] || compgen -d -S / -- "$cur")
		;;
	esac
}
complete -F _sonde sonde
