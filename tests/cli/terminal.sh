# terminal.sh: what a terminal is sent. Names and texts of files and models are shown and never obeyed; lines that tell how far a
# command is fit the terminal's width.
. "$2/tests/cli/lib.sh"
demo=$sources/models/demo.gguf
needs_terminal

# Tables and help fit it; in a pipe each row stays one line.
fits() { # fits COLUMNS COMMAND...
    columns=$1
    shift
    terminal "$columns" 50 -- "$@"
    [ "$got" = 0 ] && [ -s out ] || fail "$*: exit code $got at a terminal"
    tr -d '\r' <out >lines
    python "
for line in open('lines', encoding='utf-8'):
    room = $columns - len(line.rstrip('\n'))
    assert room >= 0 or len(line.split()) <= 2, line  # a word that is longer than the terminal is wide stays whole"
}
for columns in 60 200; do
    fits $columns "$heddle" devices
    fits $columns "$heddle" doctor
    fits $columns "$heddle" help
    fits $columns "$heddle" tune --help
done
terminal 60 50 -- "$heddle" devices
grep -q '^DRIVER  heddle' out || fail "devices at a narrow terminal: no list for each device"
"$heddle" devices >out
grep -qE '^RANK +ID .* DRIVER$' out || fail "devices in a pipe: no table"

# One place writes to the terminal, so that nothing passes by it. (npy.c, bench_report.c and measure.c write files.)
grep -nE '\b(v?f?printf|puts|putchar|fputs|fputc|fwrite)\(' "$sources"/cli/*.c |
    grep -vE '^[^:]*/cli/(terminal|npy|line_edit)\.c:' | grep -vE 'fwrite\((page|line)->data' >out
[ ! -s out ] || fail "not through terminal.c"

# The demo model, but for its name, which holds an escape sequence, a C1 character, one that turns the direction and a byte that is
# no UTF-8, and for two tokens, which changed places: the one that it goes on with is the escape character.
python '
demo = open("'"$demo"'", "rb").read()
name, evil = b"heddle demo", b"\x1b]0;a\xc2\x9b\xe2\x80\xae\x9b"
two, ai, escape = bytes([2]) + bytes(7), b"ai", "\u011b".encode()
assert len(evil) == len(name) and demo.count(two + ai) == demo.count(two + escape) == 1
demo = demo.replace(name, evil, 1)
at, other = demo.index(two + ai) + 8, demo.index(two + escape) + 8
demo = bytearray(demo)
demo[at : at + 2], demo[other : other + 2] = escape, ai
open("evil.gguf", "wb").write(demo)
open("evil.csv", "w").write("bench,device,op,median_ns\nops,\u009b31m\u202ecpu,add,5\n")'

obeyed="$(printf '\033\\]|\033\\[2J|\033, and|\302\233|\342\200\256|\233')"
shows() { # shows TEXT COMMAND...: at a terminal, and nothing there is obeyed; as text on standard error and in a pipe too
    text=$1
    shift
    terminal 80 30 -- "$@"
    grep -qF -e "$text" out || fail "$*: no $text"
    LC_ALL=C grep -qE "$obeyed" out && fail "$*: sent to the terminal as it is"
}
shows 'name          ?]0;a\u009B\u202E\x9B' "$heddle" info evil.gguf
shows '"name": "?]0;a\u009B\u202E' "$heddle" info evil.gguf --json
shows 'Mordec\u001B, and' "$heddle" generate evil.gguf -p Mordec -n 3 --temp 0
shows '\u001B[2J' "$heddle" generate evil.gguf -p "$(printf '\033[2J')" -n 0
shows '\u009B31m\u202Ecpu' "$heddle" bench compare evil.csv evil.csv --all
shows 'run: no\u001B]0;such.hd cannot be read' "$heddle" run "$(printf 'no\033]0;such.hd')"

# A pipe gets what the model wrote, byte by byte; tables and errors are the same everywhere.
"$heddle" generate evil.gguf -p Mordec -n 3 --temp 0 --quiet >out 2>err
LC_ALL=C grep -q "$(printf '\033')" out || fail "a pipe does not get the bytes of the answer"
"$heddle" info evil.gguf >out
LC_ALL=C grep -qE "$obeyed" out && fail "info in a pipe"
done_here
