# lib.sh: read by every script here, which runs as `sh SCRIPT HEDDLE SOURCES`: a folder of its own to work in, only
# lavapipe as Vulkan driver and no GPU of CUDA or HIP (so that a machine with a GPU gives the same answers), and expectations.
set -u
umask 022
# shellcheck disable=SC2034 # read by the scripts
heddle=$1 sources=$2
# shellcheck disable=SC2034 # likewise
standin=$(dirname "$heddle")/../tests/standin/lib # drivers of CUDA and HIP without a GPU, where they were built
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
exec </dev/null # a pipe would be a prompt
unset HEDDLE_BACKEND HEDDLE_DEVICE HEDDLE_STRICT HEDDLE_LOG HEDDLE_VALIDATION HEDDLE_THREADS HEDDLE_QUEUES HEDDLE_WAIT_MS
export HEDDLE_CACHE=none CUDA_VISIBLE_DEVICES='' HIP_VISIBLE_DEVICES=''
for file in /usr/share/vulkan/icd.d/lvp_icd*.json; do
    [ -e "$file" ] && export VK_DRIVER_FILES="$file" VK_ICD_FILENAMES="$file"
done
failures=0

fail() {
    failures=$((failures + 1))
    echo "FAILED: $*"
    sed 's/^/    stdout: /' out 2>/dev/null | head -20
    sed 's/^/    stderr: /' err 2>/dev/null | head -20
}

# expect CODE OUT ERR COMMAND...: the exit code, and extended regular expressions that some line of standard output and of
# standard error matches; "" expects nothing at all there, "-" takes anything.
expect() {
    code=$1 out=$2 err=$3
    shift 3
    timeout 50 "$@" >out 2>err
    got=$?
    [ $got = "$code" ] || fail "$*: exit code $got, not $code"
    matches out "$out" "$*"
    matches err "$err" "$*"
}

matches() {
    case $2 in
    -) ;;
    "") [ -s "$1" ] && fail "$3: $1 is not empty" ;;
    *) grep -qE -e "$2" "$1" || fail "$3: no line of $1 matches $2" ;;
    esac
}

# refuse CODE ERR COMMAND...: nothing on standard output, and one line about it on standard error.
refuse() {
    code=$1 err=$2
    shift 2
    expect "$code" "" "$err" "$@"
    [ "$(grep -vc '^heddle: device:' err)" = 1 ] || fail "$*: not one line on stderr"
}

# python CODE: with numpy, for the other side's view of .npy files and JSON. Debian's own Python has Debian's NumPy.
python3=python3
python3 -c 'import numpy' 2>/dev/null || python3=/usr/bin/python3
python() {
    "$python3" -c "$1" >python.out 2>&1 || { fail "python: $1"; cat python.out; }
}

needs_numpy() {
    "$python3" -c 'import numpy' 2>/dev/null || { echo "no python3 with numpy: skipped"; exit 77; }
}

needs_terminal() {
    "$python3" -c 'import pty' 2>/dev/null || { echo "no python3: skipped"; exit 77; }
}

# terminal COLUMNS SECONDS [AT:KEYS ...] -- COMMAND...: what it prints at a terminal, into `out`; its exit code in $got.
# at_terminal.py tells how keys are given.
terminal() {
    "$python3" "$sources/tests/cli/at_terminal.py" "$@" >out 2>err
    got=$?
}

has_vulkan() { HEDDLE_BACKEND=vulkan "$heddle" devices | grep -q 'software'; }

# list_commands: the names of all commands, one a line, into the file `commands`.
list_commands() {
    "$heddle" help | sed -n '/^commands:/,/^$/s/^  \(.\{15\}\) .*/\1/p' | grep -vx 'help *' >commands
    [ "$(wc -l <commands)" -ge 10 ] || fail "no commands found in help"
}

done_here() {
    [ $failures = 0 ] && echo ok
    exit $((failures > 0))
}
