# chat.sh: `heddle chat` fed from a pipe: answers only on standard output, a conversation that begins anew gives the same
# answers, only what is new is fed; a full context loses nothing; Ctrl-C ends an answer and not the program.
. "$2/tests/cli/lib.sh"
demo=$sources/models/demo.gguf
chat="$heddle chat $demo --template chatml --temp 1.5 --seed 3 --math exact -n 24"
export HOME="$work" XDG_STATE_HOME="$work"

# say LINE...: these lines as input.
say() { printf '%s\n' "$@" >in; }
talk() { expect "$1" "$2" "$3" sh -c 'exec "$@" <in' - $chat; }

say hello
talk 0 . '^heddle: device: '
cp out first
[ "$(wc -l <err)" = 1 ] || fail "more than the start-up line on stderr"
grep -q '>' out && fail "a prompt is shown to a pipe"
printf hello >in
talk 0 - -
cmp -s out first || fail "a last line without its newline gives another answer"

# After /clear the answer to the same words is the same one; a system message changes it, and without it it is the first again.
say hello again /clear hello
talk 0 - 'a new conversation begins'
[ "$(tail -n "$(wc -l <first)" out)" = "$(cat first)" ] || fail "/clear leaves something of the conversation"
say '/system Speak as a king.' hello
talk 0 - -
cp out king
cmp -s king first && fail "/system changes nothing"
say '/system Speak as a king.' hello /clear /system hello
talk 0 - -
cat king first >expected
cmp -s out expected || fail "/system without a text leaves one"
say hello
expect 0 - - sh -c 'exec "$@" <in' - $chat --system 'Speak as a king.'
cmp -s out king || fail "--system and /system differ"

# Another answer has another seed; a conversation that was saved goes on as if it had not ended.
say hello /regenerate
talk 0 - -
[ "$(head -n "$(wc -l <first)" out)" = "$(cat first)" ] && ! [ "$(tail -n "$(wc -l <first)" out)" = "$(cat first)" ] || fail "/regenerate gives the same answer"
say /regenerate
talk 0 "" 'there is no answer to be given anew'
say hello again "/save talk.json" more
talk 0 - '4 messages are in talk.json'
cp out whole
"$python3" -c 'import json; m = json.load(open("talk.json"))["messages"]; assert [x["role"] for x in m] == ["user", "assistant"] * 2 and m[0]["content"] == "hello"' ||
    fail "what /save wrote"
say "/load talk.json" more
talk 0 - '4 messages are taken from talk.json'
tail -n "$(wc -l <out)" whole | cmp -s - out || fail "a conversation that was loaded goes on otherwise"
echo '{"messages": [{"role": "nobody", "content": ""}]}' >bad.json
say "/load bad.json"
talk 1 "" 'bad.json is no conversation'
say "/save /nosuch/talk.json"
talk 1 "" 'cannot be written'
say /save
talk 0 "" '/save needs the name of a file'

# Only what is new is fed: the second prompt is shorter than the conversation.
say hello /stats hello /stats
talk 0 - '^heddle: context [0-9]+ of 512 tokens$'
sed -nE 's/^heddle: (prompt  |context )([0-9]+) .*/\2/p' err | tr '\n' ' ' >figures
read -r held1 fed1 held2 fed2 <figures
[ "$fed1" -lt "$held1" ] && [ "$((held1 + fed2))" -lt "$held2" ] && [ "$fed2" -lt "$((held2 - held1))" ] ||
    fail "contexts of $held1 and $held2 tokens, of which $fed1 and $fed2 were fed"

say /help /nosuch '/clear now' /exit hello
talk 0 "" 'no command "/nosuch"; see /help'
matches err '^/clear ' /help
matches err '/clear takes no text' "/clear now"
say '' '   '
talk 0 "" -
: >in
talk 0 "" -

# A full context: the answer is kept and the next message refused; from a pipe that is the end.
say "$(head -c 300 "$sources/LICENSE" | tr '\n' ' ')" next
expect 1 . 'the conversation would be [0-9]+ tokens long, and the context holds 160; .*/clear' sh -c 'exec "$@" <in' - $chat --context 160 -n 0
matches err 'the context of 160 tokens is full; /clear begins' "a full context"
say one two three four five six seven eight '/save all.json'
expect 0 . 'the context is full: the first 2 messages are forgotten' sh -c 'exec "$@" <in' - $chat --context 160 --shift
matches err 'the first [468] messages are forgotten' "a conversation that goes on"
matches err '16 messages are in all.json' "what was forgotten is saved"

# Ctrl-C ends the answer, and the conversation goes on.
mkfifo pipe
$chat -n 0 --context 4000 <pipe >said 2>err &
pid=$!
exec 3>pipe
echo hello >&3
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do [ -s said ] && break; sleep 0.1; done
kill -INT $pid
printf '/stats\n' >&3
exec 3>&-
wait $pid || fail "chat did not end well after Ctrl-C: $?"
matches err "ended by Ctrl-C" Ctrl-C

[ -z "$(find "$work" -name chat_history)" ] || fail "a history is kept of a pipe"

# At a terminal: Ctrl-C clears what is being typed, any number of times; twice in a row it ends. Pasted lines are one message.
if "$python3" -c 'import pty' 2>/dev/null; then
    terminal 80 40 '> :abc' '+0.3:\x03' 'ends, and:def' '+1.7:\x03' 'ends, and:hello\r' "$(tail -c 11 first | head -c 10):" '+0.5:\x03' \
        '+0.3:\x03' -- $chat
    [ $got = 0 ] && [ "$(grep -c 'Ctrl-C again ends' out)" = 3 ] || fail "Ctrl-C at a terminal: $got"
    tr -d '\r' <out | grep -qxF "$(head -1 first)" || fail "what Ctrl-C cleared is part of the message"
    terminal 80 40 '> :hello\nagain\n' '+3:\x04' -- $chat
    [ "$(tr -d '\r' <out | grep -c '^> ')" = 2 ] || fail "two pasted lines are two messages"
    # What is thought is dim, and apart from what is said.
    terminal 80 40 '> :hello\r' 'yes:\x04' -- $chat --grammar 'root ::= "<think>hm</think>yes"'
    dim=$(printf '\033[2mhm\033[22m')
    tr -d '\r' <out | grep -qxF "$dim" && tr -d '\r' <out | grep -qx yes && ! grep -q think out || fail "thoughts at a terminal"
fi

refuse 2 'needs a chat model: heddle chat MODEL.gguf' "$heddle" chat
refuse 1 'has no chat template' "$heddle" chat "$demo"
refuse 1 'no chat template is called "foo"; name one of chatml' "$heddle" chat "$demo" --template foo
refuse 1 'cannot be opened' "$heddle" chat nosuch.gguf
refuse 1 'this is no GGUF file' "$heddle" chat "$sources/README.md"
refuse 2 'no option --json' "$heddle" chat "$demo" --json
refuse 2 'takes one \[MODEL.gguf\]' "$heddle" chat a b
say hello
$chat <in >&- 2>err
[ $? = 1 ] || fail "chat with a closed stdout: not exit code 1"
done_here
