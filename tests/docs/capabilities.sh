# capabilities.sh SOURCES HEDDLE: docs/capabilities.md names tests, commands, options and variables that are there, and counts its lines
# rightly.
set -u
heddle=$2
page=docs/capabilities.md
cd "$1" || exit 1
failures=0
failed() { echo "FAILED: $page $*"; failures=$((failures + 1)); }
# words PATTERN: what stands between backquotes and matches.
words() { grep -oE '`[^`]+`' $page | tr -d '\140' | grep -E "$1" | sort -u; }

tests=0
for name in $(words '^(cli|compile|conform|docs|fault|golden|grad|install|llm|ops|spirv|standin|train|unit)/[a-z0-9_]+$'); do
    tests=$((tests + 1))
    [ -e "tests/$name.c" ] || [ -e "tests/$name.sh" ] || failed "names a test $name, which is not there"
done
for name in $(words '^examples/'); do
    [ -e "$name.c" ] || failed "names $name, which is not there"
done

words '^heddle [a-z]' | while read -r line; do
    line=${line#heddle }
    command=${line%% -*}
    # shellcheck disable=SC2086
    help=$("$heddle" help $command) || { echo "heddle $command"; continue; }
    for option in $(echo "$line" | grep -oE '(^| )--?[a-z-]+'); do
        echo "$help" | grep -qE "(^| )$option( |\$)" || echo "heddle $command $option"
    done
done | { grep . && exit 1 || exit 0; } || failed "shows commands or options that are not there"

for name in $(words '^HEDDLE_[A-Z_]+'); do
    "$heddle" help | grep -qE "^  ${name%%=*} " || failed "names a variable $name, which is not there"
done

count() { grep -cE "^\| [A-Q][0-9]+ .*\| $1(: .*)? \|\$" $page; }
grep -q "each of $(count '(whole|part|no)') capabilities" $page || failed "has $(count '(whole|part|no)') lines"
grep -q "^\*\*$(count whole) are whole, $(count part) in part, and $(count no) are not there" $page ||
    failed "has $(count whole) lines that are whole, $(count part) in part and $(count no) of what is not there"
grep -qE '\| part \|$' $page && failed "says of a part not why"
echo "$tests tests, $(count '(whole|part|no)') lines"
[ $failures = 0 ] && [ $tests -gt 100 ]
