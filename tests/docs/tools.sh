# tools.sh SOURCES HEDDLE: the tools of docs/tools.md are taken, and what it says that `heddle chat` prints is what it prints.
set -u
heddle=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1" || exit 1
export HEDDLE_DEVICE=cpu HEDDLE_CACHE=none
failures=0
failed() { echo "FAILED: docs/tools.md $*"; failures=1; }

sed -n '/^```json$/,/^```$/p' docs/tools.md | sed '1d;$d' >"$work/weather.json"
sed -n '/^    \$ /,/^$/p' docs/tools.md | sed -n 's/^    //p' >"$work/session"
sed '/^{/,$d; s/^\$ //' "$work/session" | sed "s|heddle chat|\"$heddle\" chat|; s|weather.json|\"$work/weather.json\"|" >"$work/command"
sed -n '/^{/,$p' "$work/session" >"$work/shown"
[ -s "$work/shown" ] || failed "shows nothing"
sh "$work/command" 2>&1 | grep -v '^heddle: device:' >"$work/printed"
diff "$work/shown" "$work/printed" || failed "does not show what heddle prints"
[ $failures = 0 ] && echo ok
exit $failures
