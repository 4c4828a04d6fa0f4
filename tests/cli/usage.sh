# usage.sh: help, versions, unknown words, and output that cannot be written.
. "$2/tests/cli/lib.sh"

expect 0 '^heddle [0-9]+\.[0-9]+\.[0-9]+$' "" "$heddle" --version
expect 0 '^usage: heddle COMMAND' "" "$heddle" help
expect 0 '^usage: heddle COMMAND' "" "$heddle" --help
list_commands
while read -r command; do
    expect 0 "^usage: heddle $command" "" "$heddle" $command --help
    cp out help
    expect 0 "^usage: heddle $command" "" "$heddle" help $command
    cmp -s out help || fail "help $command and $command --help differ"
    [ "$(wc -l <help)" -le 40 ] || fail "$command --help is longer than a screen"
    tail -n 1 help | grep -q '^ .*' && grep -q '^example:' help || fail "$command --help has no example"
    [ "$(awk 'length > 120' help)" = "" ] || fail "$command --help is wider than a screen"
done <commands

refuse 2 'heddle: no command is given' "$heddle"
refuse 2 'no command "devcies"; did you mean devices\?' "$heddle" devcies
refuse 2 'no command "frobnicate"; see `heddle help`' "$heddle" frobnicate
refuse 2 'no command "rum"; did you mean run' "$heddle" help rum
refuse 2 'no command "gen"; did you mean generate\?' "$heddle" gen
refuse 2 'no command "con"; see `heddle help`' "$heddle" con # confirm, or convert
refuse 2 'no option --hlep; did you mean --help\?' "$heddle" generate --hlep
refuse 2 'no option --reciept; did you mean --receipt\?' "$heddle" generate --reciept r.json
refuse 2 'help takes one command' "$heddle" help run exec
refuse 2 'no command "chta"; did you mean chat\?' "$heddle" chta
refuse 2 'bench is not the whole command; there are bench threshold, bench ops, .*bench llm' "$heddle" bench
refuse 2 'no command "bench lmm"; did you mean bench llm\?' "$heddle" bench lmm
refuse 2 'no command "bench treshold"; did you mean bench threshold\?' "$heddle" bench treshold --op vecadd
refuse 2 'no command "bnech"; did you mean bench llm\?' "$heddle" bnech llm
refuse 2 'no command "bench frobnicate"; there are bench threshold, ' "$heddle" help bench frobnicate
expect 0 '^  bench threshold +finds' "" "$heddle" help bench
expect 0 '^  bench llm +measures' "" "$heddle" bench --help
refuse 2 'heddle devices: no option --jsno; did you mean --json\?; see `heddle devices --help`' "$heddle" devices --jsno
refuse 2 'no option --jsno=1; did you mean' "$heddle" devices --jsno=1
refuse 2 'no option -x' "$heddle" devices -x
refuse 2 '--json takes no value' "$heddle" devices --json=1
refuse 2 'takes no "cpu"' "$heddle" devices cpu
refuse 2 'needs FILE.hd' "$heddle" run
refuse 2 'takes one FILE.hd, and "b.hd" is a second' "$heddle" run a.hd b.hd
refuse 2 '--device needs a value' "$heddle" explain a.hd --device
refuse 1 'cannot be read: No such file' "$heddle" explain -- --help

# A closed or full standard output is a failure, not silence; so is a closed one while files are opened.
for command in devices "help run" --version; do
    "$heddle" $command >&- 2>err
    [ $? = 1 ] || fail "$command with a closed stdout: not exit code 1"
    grep -q 'standard output cannot be written' err || fail "$command with a closed stdout: no message"
done
if [ -e /dev/full ]; then
    "$heddle" devices --json >/dev/full 2>err
    [ $? = 1 ] || fail "devices into a full device: not exit code 1"
fi
"$heddle" devices >out 2>&- </dev/null || fail "devices with a closed stderr"
"$heddle" devices <&- >out 2>err || fail "devices with a closed stdin"
done_here
