# man.sh: the manual names each option that help tells of, --help and --version, and each environment variable of the
# library's table, and no other one.
. "$2/tests/cli/lib.sh"
man=$sources/docs/heddle.1

same() { # same WHAT A B: two lists are equal
    cmp -s "$2" "$3" || { fail "$1 differ"; diff "$2" "$3"; }
}
list_commands
while read -r command; do "$heddle" help $command; done <commands | sed -nE 's/^  (-[-a-z]*).*/\1/p' | sort -u >help.options
sed -nE 's/^\.It Fl (-?[-a-z]+).*/-\1/p' "$man" | grep -vx -e --version -e --help | sort -u >man.options
[ -s help.options ] || fail "no options found in --help"
same "options in --help and in the manual" help.options man.options

sed -n '/define HDI_OPTION_LIST/,/^typedef/s/.*"\(HEDDLE_[A-Z_]*\)".*/\1/p' "$sources/src/base/base.h" | sort >table.names
"$heddle" help | grep -oE 'HEDDLE_[A-Z_]+' | sort -u >help.names
sed -nE 's/^\.It Ev (HEDDLE_[A-Z_]+).*/\1/p' "$man" | sort >man.names
[ -s table.names ] || fail "no variables found in the table"
same "variables of the library and in the manual" table.names man.names
same "variables of the library and in help" table.names help.names

if command -v mandoc >/dev/null; then
    expect 0 "" "" mandoc -Tlint "$man"
fi
done_here
