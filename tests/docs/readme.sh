# readme.sh SOURCES: the README's program is, to the letter, the one of examples/02_matmul.c, which is built and run as a
# test of its own; and its rooms are the folders there are.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1" || exit 1
failures=0

sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$work/shown"
sed 1d examples/02_matmul.c >"$work/tested" # without its comment
[ -s "$work/shown" ] || echo "int none;" >"$work/shown"
diff "$work/shown" "$work/tested" || { echo "FAILED: README.md does not show the program of examples/02_matmul.c"; failures=1; }

for room in $(sed -n '/^```tree$/,/^```$/p' README.md | sed -nE 's/^( *)([a-z0-9]+)\/.*/\2/p'); do
    [ -d "$room" ] || [ -d "src/$room" ] || [ -d "src/device/$room" ] || { echo "FAILED: README.md names a room $room, which is not there"; failures=1; }
done
[ $failures = 0 ] && echo ok
exit $failures
