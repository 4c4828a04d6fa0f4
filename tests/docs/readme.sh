# readme.sh SOURCES DEMO: the README's program is, to the letter, the one of examples/02_matmul.c, which is built and run
# as a test of its own; what it says the demo prints is what it prints, but for the figures; its rooms are the folders
# there are.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1" || exit 1
failures=0

sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$work/shown"
sed 1d examples/02_matmul.c >"$work/tested" # without its comment
[ -s "$work/shown" ] || echo "int none;" >"$work/shown"
diff "$work/shown" "$work/tested" || { echo "FAILED: README.md does not show the program of examples/02_matmul.c"; failures=1; }

# Figures and the device aside.
shape() { sed -E '1,/^$/d; s/-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?/N/g; s/ +/ /g; s/^ //'; }
sed -n '/^What the demo prints/,/^## /p' README.md | sed -n 's/^    //p; s/^$//p' | sed 1d | shape | sed '$d' >"$work/shown"
HEDDLE_DEVICE=cpu "$2" | shape >"$work/printed"
diff "$work/shown" "$work/printed" || { echo "FAILED: README.md does not show what the demo prints"; failures=1; }

for room in $(sed -n '/^```tree$/,/^```$/p' README.md | sed -nE 's/^( *)([a-z0-9]+)\/.*/\2/p'); do
    [ -d "$room" ] || [ -d "src/$room" ] || [ -d "src/device/$room" ] || { echo "FAILED: README.md names a room $room, which is not there"; failures=1; }
done
[ $failures = 0 ] && echo ok
exit $failures
