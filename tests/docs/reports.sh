# reports.sh SOURCES HEDDLE: the reports in docs/performance are what the commands in docs/bench.md draw of the rows beside them.
set -u
heddle=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1" || exit 1
failures=0
sed -n 's/^    heddle bench report //p' docs/bench.md >"$work/commands"
[ "$(wc -l <"$work/commands")" -ge 3 ] || { echo "FAILED: docs/bench.md shows no commands"; failures=1; }
while read -r given option page; do
    folder=$(dirname "$page")
    files=$(echo "$given" | sed 's/.*{\(.*\)}.*/\1/' | tr ',' ' ' | sed "s#[^ ][^ ]*#$folder/&.csv#g")
    # shellcheck disable=SC2086
    "$heddle" bench report $files $option "$work/page.html" || failures=1
    for ending in html md; do
        cmp -s "$work/page.$ending" "${page%.html}.$ending" || { echo "FAILED: ${page%.html}.$ending is not what its command draws"; failures=1; }
    done
done <"$work/commands"
[ $failures = 0 ] && echo ok
exit $failures
