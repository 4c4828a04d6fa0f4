# readme.sh SOURCES HEDDLE: the README's program is, to the letter, the one of examples/02_matmul.c, which is built and run
# as a test of its own; what it says `heddle generate` prints is what it prints, but for the figures and the device's name;
# each command that it shows has that name; its rooms are the folders there are.
set -u
heddle=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1" || exit 1
export HEDDLE_DEVICE=cpu HEDDLE_CACHE=none
failures=0
failed() { echo "FAILED: README.md $*"; failures=1; }

sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d' >"$work/shown"
sed 1d examples/02_matmul.c >"$work/tested" # without its comment
[ -s "$work/shown" ] || echo "int none;" >"$work/shown"
diff "$work/shown" "$work/tested" || failed "does not show the program of examples/02_matmul.c"

# The text to the letter, since it is exact; of the report the words.
sed -n '/^    \$ heddle generate/,/^[^ ]/p' README.md | sed -n 's/^    //p; s/^$//p' >"$work/session"
command=$(sed -n '1s/^\$ heddle //p' "$work/session")
sed '1d;/^heddle: /d;/^$/d' "$work/session" >"$work/shown"
eval "$heddle $command" >"$work/printed" 2>"$work/log" || failed "shows a command that fails: $command"
diff "$work/shown" "$work/printed" || failed "does not show what heddle $command prints"
words() { sed -nE '/^heddle: (device:|warning)/d; s/^(heddle: device +).*: /\1/; s/[0-9.]+/N/g; s/ +/ /g; s/ (us|ms|s)$//; /^heddle: /p'; }
words <"$work/session" >"$work/shown"
words <"$work/log" >"$work/printed"
diff "$work/shown" "$work/printed" || failed "does not show the report of heddle $command"

# Its program in text, and what explain says of it.
sed -nE '/^A program is text/,/prints$/p' README.md | tr '\n' ' ' | grep -oE '`(v[0-9]+ =|output) [^`]*`' | tr -d '`' | sed '1i heddle 1' >"$work/relu.hd"
"$heddle" explain "$work/relu.hd" 2>/dev/null | grep '^level 0' >"$work/printed"
sed -n 's/^    \(level 0 .*\)/\1/p' README.md >"$work/shown"
diff "$work/shown" "$work/printed" || failed "does not show what heddle explain says"

for name in $(sed -nE 's/^    heddle ([a-z]+) .*/\1/p' README.md | sort -u); do
    "$heddle" help "$name" >/dev/null || failed "shows a command $name, which is not there"
done

for room in $(sed -n '/^```tree$/,/^```$/p' README.md | sed -nE 's/^( *)([a-z0-9]+)\/.*/\2/p'); do
    [ -d "$room" ] || [ -d "src/$room" ] || [ -d "src/device/$room" ] || failed "names a room $room, which is not there"
done
[ $failures = 0 ] && echo ok
exit $failures
