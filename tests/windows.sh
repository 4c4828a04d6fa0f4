# windows.sh: the Windows build under Wine beside the Linux build: the same words give the same exit codes and, in exact mode,
# the same bytes, on standard output and in files. Runs as `sh tests/windows.sh HEDDLE.exe HEDDLE SOURCES`; WINEPREFIX as Wine
# knows it.
set -u
exe=$(realpath "$1") linux=$(realpath "$2") sources=$(realpath "$3")
demo=$sources/models/demo.gguf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
exec </dev/null
export HEDDLE_CACHE=none HEDDLE_DEVICE=cpu WINEDEBUG=-all
failures=0 passed=0
fail() {
    failures=$((failures + 1))
    echo "FAILED: $*"
    head -3 windows.out windows.err linux.out linux.err
}
windows() { wine "$exe" "$@"; }
# same INPUT CODE WORDS...: both, with the file INPUT as standard input.
same() {
    input=$1 code=$2
    shift 2
    windows "$@" <"$input" >windows.out 2>windows.err
    got=$?
    "$linux" "$@" <"$input" >linux.out 2>linux.err
    at_linux=$?
    if [ $got != "$code" ] || [ $at_linux != "$code" ]; then fail "$*: exit codes $got and $at_linux, not $code"
    elif ! cmp -s windows.out linux.out; then fail "$*: standard output differs"
    elif [ "$code" != 0 ] && ! cmp -s windows.err linux.err; then fail "$*: standard error differs"
    else passed=$((passed + 1)); fi
}
# same_file NAME: what both wrote beside each other.
same_file() { if cmp -s "$1" "linux-$1"; then passed=$((passed + 1)); else fail "$1 and linux-$1 differ"; fi; }

same /dev/null 0 --version
same /dev/null 0 help
same /dev/null 0 help generate
same /dev/null 2 nosuch
same /dev/null 2 generate --nosuch
same /dev/null 2 generate -n x
same /dev/null 1 info missing.gguf
same /dev/null 1 tokenize "$demo" -f missing.txt
same /dev/null 0 info "$demo"
same /dev/null 0 info --json "$demo"
same /dev/null 0 tokenize "$demo" -p 'Grüße, 世界 "quoted \"twice\" \\ and back"'
for seed in 1 2 3 4; do
    same /dev/null 0 generate "$demo" -p "And the king said" -n 96 --seed $seed --math exact
done
same /dev/null 0 generate "$demo" -p "Behold" -n 64 --temp 0 --math exact
same /dev/null 0 generate "$demo" -p "Behold" -n 24 --math exact --grammar 'root ::= [a-z ]+'

# Paths: characters beyond ASCII, a folder, backslashes, a drive.
mkdir größe
cp "$demo" größe/mödell.gguf
printf 'In the beginning, äöü\n' >größe/text.txt
same /dev/null 0 generate größe/mödell.gguf -f größe/text.txt -n 32 --math exact
same /dev/null 1 info größe/nichts.gguf
"$linux" generate "$demo" -p "Behold" -n 24 --math exact >linux.out 2>linux.err
for path in 'größe\mödell.gguf' "Z:$(printf %s "$work/größe/mödell.gguf" | tr / '\\')" "z:$work/größe/mödell.gguf"; do
    windows generate "$path" -p "Behold" -n 24 --math exact >windows.out 2>windows.err || fail "$path: exit code $?"
    if cmp -s windows.out linux.out; then passed=$((passed + 1)); else fail "$path: another text"; fi
done

# Standard input: a prompt, a conversation; what a line of Windows ends with is no part of either.
same größe/text.txt 0 generate "$demo" -f - -n 32 --math exact
same größe/text.txt 0 generate "$demo" -n 32 --math exact
printf 'hello\nagain\n' >lines
printf 'hello\r\nagain\r\n' >lines.crlf
same lines 0 chat "$demo" --template chatml --math exact -n 16
cp linux.out said
windows chat "$demo" --template chatml --math exact -n 16 <lines.crlf >windows.out 2>windows.err
if cmp -s windows.out said; then passed=$((passed + 1)); else fail "lines that end as Windows' do"; fi

# Models.
head -c 20000 "$sources/LICENSE" >text.txt
same /dev/null 0 perplexity "$demo" text.txt --context 128 --chunks 4 --math exact
"$linux" quantize "$demo" linux-q4.gguf q4_0 >linux.out 2>&1
windows quantize "$demo" q4.gguf q4_0 >windows.out 2>&1
same_file q4.gguf
windows fit "$demo" >windows.out 2>windows.err && grep -q . windows.out || fail fit
windows bench llm "$demo" -p 32 -n 8 -r 1 --csv größe/b.csv >windows.out 2>windows.err || fail "bench llm"
windows bench report größe/b.csv -o größe/b.html >windows.out 2>windows.err && [ -s größe/b.html ] && [ -s größe/b.md ] || fail "bench report"

# Programs: a plan, a run with receipt, which is confirmed on the other system.
printf 'heddle 1\nv1 = input f32[16,64] "x"\nv2 = input f32[64,48] "w"\nv3 = matmul v1 v2\nv4 = gelu v3\n%s\noutput v5 "y"\n' \
    'v5 = softmax v4 axis=-1' >p.hd
python3=python3 # Debian's own Python has Debian's NumPy
python3 -c 'import numpy' 2>/dev/null || python3=/usr/bin/python3
"$python3" -c 'import numpy as n
r = n.random.default_rng(1)
for name, shape in ("x", (16, 64)), ("w", (64, 48)): n.save(name, r.standard_normal(shape).astype("f4"))' || fail "no NumPy"
inputs="--in x=x.npy --in w=w.npy --math exact"
# shellcheck disable=SC2086
"$linux" run p.hd $inputs --out y=linux-y.npy --receipt linux.json >linux.out 2>linux.err || fail "run on Linux"
# shellcheck disable=SC2086
windows run p.hd $inputs --out y=y.npy --receipt windows.json >windows.out 2>windows.err || fail run
same_file y.npy
windows confirm linux.json >windows.out 2>windows.err || fail "confirm linux.json"
"$linux" confirm windows.json >linux.out 2>linux.err || fail "confirm windows.json"

# Training: the same weights, to the bit.
for system in windows linux; do
    case $system in windows) command=windows ;; *) command=$linux ;; esac
    $command train text.txt --out "run-$system" --layers 1 --width 32 --heads 2 --length 32 --batch 4 --steps 6 --save-every 3 \
        --math exact --quiet >$system.out 2>$system.err || fail "train on $system"
    grep '^hash' $system.out >$system.hash
done
if cmp -s windows.hash linux.hash && [ -s linux.hash ]; then passed=$((passed + 1)); else fail "training"; fi
cp run-windows/checkpoint-00000006/weights.safetensors trained
cp run-linux/checkpoint-00000006/weights.safetensors linux-trained
same_file trained

windows devices >windows.out 2>windows.err && grep -q '^ *0  cpu' windows.out || fail devices
windows doctor >windows.out 2>windows.err || fail doctor
grep -q 'device cpu: .*known answers right' windows.out || fail "doctor: known answers"
echo "windows: $passed comparisons are equal, $failures failed"
exit $((failures > 0))
