# tools.sh: `heddle chat --tools`: calls are lines of JSON, the next lines are what came of them; saved and loaded; bad files.
. "$2/tests/cli/lib.sh"
demo=$sources/models/demo.gguf
tools='[{"type": "function", "function": {"name": "f"}}]'
# Says "It is.", calls once, or twice in one answer; seed 40 calls first and then does not.
grammar='root ::= call | "It is." | "Look.\n" call "\n" call
call ::= "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"'
call='{"name": "f", "arguments": {}}'
export HOME="$work" XDG_STATE_HOME="$work"
chat="$heddle chat $demo --template qwen --temp 2 --bias <=12 --seed 40 --math exact"

say() { printf '%s\n' "$@" >in; }
talk() { # talk CODE OUT ERR MORE...: what the model is told of and may say, with more options
    expect "$1" "$2" "$3" sh -c 'exec "$@" <in' - $chat --tools "$tools" --grammar "$grammar"
}

say Hi '  one' '/two' '/save talk.json'
talk 0 - '5 messages are in talk.json'
printf '%s\n' Look. "$call" "$call" 'It is.' | cmp -s - out || fail "two calls in one answer, and what is said then"
cp out first
cat >wanted.py <<'END'
import json
user, asks, one, two, says = json.load(open("talk.json"))["messages"]
function = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
assert user == {"role": "user", "content": "Hi"}, user
assert asks == {"role": "assistant", "content": "Look.", "tool_calls": [function] * 2}, asks
assert one == {"role": "tool", "content": "  one"} and two == {"role": "tool", "content": "/two"}, (one, two)
assert says == {"role": "assistant", "content": "It is."}, says
END
"$python3" wanted.py || fail "what /save wrote"

# A conversation that was loaded goes on as if it had not ended, calls and results in it.
say Hi '  one' '/two' more
talk 0 - -
tail -n +5 out >whole
say '/load talk.json' more
talk 0 - '5 messages are taken from talk.json'
cmp -s out whole || fail "a conversation that was loaded goes on otherwise"
# Another answer in the place of one may call, too: the next seed, 40 again, does so.
echo '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "No."}]}' >short.json
say '/load short.json' /regenerate one two '/save again.json'
expect 0 - '5 messages are in again.json' sh -c 'exec "$@" <in' - $chat --seed 39 --tools "$tools" --grammar "$grammar"
cmp -s out first || fail "/regenerate answers otherwise than the first time"

# The results are told to the model: other ones change what is fed.
say Hi one two /stats
talk 0 - 'context [0-9]+ of'
sed -n 's/^heddle: context \([0-9]*\) of.*/\1/p' err >short
say Hi 'one, which is much longer' two /stats
talk 0 - -
[ "$(sed -n 's/^heddle: context \([0-9]*\) of.*/\1/p' err)" -gt "$(cat short)" ] || fail "a longer result takes no more of the context"

# Where the input ends no result comes: that is told, and no failure.
say Hi one
talk 0 '"name": "f"' 'the input ended where the result of f should stand'

# What is no call stays text; without --tools nothing is one.
odd='root ::= "<tool_call>{\"name\": \"f\"}</tool_call>"'
say Hi
expect 0 - - sh -c 'exec "$@" <in' - $chat --tools "$tools" --grammar "$odd"
[ "$(cat out)" = '<tool_call>{"name": "f"}</tool_call>' ] || fail "a call without arguments is no text"
expect 0 - - sh -c 'exec "$@" <in' - $chat --grammar "root ::= call
${grammar##*call
}"
[ "$(cat out)" = "<tool_call>$call</tool_call>" ] || fail "a call without --tools"

# Other forms of calls in a JSON file; what it must not be.
for bad in '[{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "[]"}}]}]' \
    '[{"role": "assistant", "content": "", "tool_calls": [{"function": {"arguments": "{}"}}]}]' \
    '[{"role": "user", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]' '[{"role": "assistant"}]'; do
    echo "{\"messages\": $bad}" >bad.json
    say '/load bad.json'
    talk 1 "" 'bad.json is no conversation'
done
echo '{"messages": [{"role": "assistant", "content": null, "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": {"a": 1}}}]}, {"role": "tool", "content": "1", "tool_call_id": "x"}]}' >good.json
say '/load good.json' '/save same.json'
talk 0 "" '2 messages are in same.json'
"$python3" -c 'import json
c, r = json.load(open("same.json"))["messages"]
assert c["tool_calls"][0]["id"] == "x" and json.loads(c["tool_calls"][0]["function"]["arguments"]) == {"a": 1} and r["tool_call_id"] == "x"' || fail "ids of calls are lost"

# Calls are held to their tools, unless the answer has a form of its own or --free-calls says otherwise: what must be called is called
# in the answer to the user only, with arguments that its schema takes.
cat >held.json <<'END'
[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "required": ["city", "days"], "additionalProperties":
    false, "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 7}}}}},
 {"type": "function", "function": {"name": "now"}}]
END
cat >judge.py <<'END'
import json, sys
name = sys.argv[1]
call = json.loads(open("call").readline())
assert call["name"] == name or name == "any" and call["name"] in ("weather", "now"), call
city, days = call["arguments"].get("city"), call["arguments"].get("days")
assert call["arguments"] == ({} if call["name"] == "now" else {"city": city, "days": days}), call
assert call["name"] == "now" or city in ("Paris", "Rome") and 1 <= days <= 7, call
END
drawn="$heddle chat $demo --template qwen --thinking off --tools held.json --temp 2 --math exact -n 120"
line_end='
'
for case in required:any:1 required:any:2 weather:weather:4 now:now:6; do
    choice=${case%%:*} seed=${case##*:}
    name=${case#*:}
    say Hi
    expect 0 - 'the input ended' sh -c 'exec "$@" <in' - $drawn --seed "$seed" --tool-choice "$choice" --bias "$line_end=-30"
    grep '^{' out >call # space may stand before it
    "$python3" judge.py "${name%:*}" || fail "what must be called: $case"
done
say Hi
expect 0 - - sh -c 'exec "$@" <in' - $drawn --bias '<=4' --seed 1 --tool-choice none
grep -q '<tool_call>' out && fail "a call where there must be none"
expect 0 - - sh -c 'exec "$@" <in' - $drawn --temp 0
cp out held
expect 0 - - sh -c 'exec "$@" <in' - $drawn --temp 0 --free-calls
cmp -s out held || fail "an answer that calls nothing is another one where calls are held"

refuse 1 "there is no tool 'rain' to choose" "$heddle" chat "$demo" --template qwen --tools held.json --tool-choice rain
refuse 2 '--tool-choice needs --tools' "$heddle" chat "$demo" --template qwen --tool-choice none
refuse 2 '--tool-choice goes with neither' "$heddle" chat "$demo" --template qwen --tools held.json --tool-choice none --grammar 'root ::= "a"'
refuse 2 '--tool-choice and --free-calls exclude' "$heddle" chat "$demo" --template qwen --tools held.json --tool-choice none --free-calls
refuse 1 "tools 1 and 2 are both called 'f'" "$heddle" chat "$demo" --template qwen --tools "${tools%]}, ${tools#?}"
echo '[{"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}]' >bad.json
refuse 1 "bad.json.*tool 'f': schema: .* 'not'.*--free-calls" "$heddle" chat "$demo" --template qwen --tools bad.json
expect 0 - - sh -c 'exec "$@" <in' - $drawn --tools bad.json --free-calls

# Tools from a file, and bad ones: one line each.
echo "$tools" >tools.json
say Hi one two
expect 0 '"name": "f"' - sh -c 'exec "$@" <in' - $chat --tools tools.json --grammar "$grammar"
echo '[{"type"' >bad.json
refuse 1 'bad.json.*the tools: JSON, line 2, column 1' "$heddle" chat "$demo" --template qwen --tools bad.json
refuse 1 'the tools are no list of functions, or an empty one' "$heddle" chat "$demo" --template qwen --tools '[]'
refuse 1 'tool 1 is no .*with a name' "$heddle" chat "$demo" --template qwen --tools '[{"name": "f"}]'
refuse 1 'nosuch.json' "$heddle" chat "$demo" --template qwen --tools nosuch.json
printf '[\000]' >bad.json
refuse 1 'bad.json is no text' "$heddle" chat "$demo" --template qwen --tools bad.json
head -c 1048577 /dev/zero >bad.json
refuse 1 'bad.json' "$heddle" chat "$demo" --template qwen --tools bad.json
refuse 1 'the chat template knows no tools' "$heddle" chat "$demo" --template chatml --tools tools.json

# At a terminal the tool's name is the prompt.
if "$python3" -c 'import pty' 2>/dev/null; then
    terminal 80 40 '> :Hi\r' 'f> :one\r' 'f> :two\r' 'It is.:\x04' -- $chat --tools tools.json --grammar "$grammar"
    [ $got = 0 ] && tr -d '\r' <out | grep -qxF "$call" && tr -d '\r' <out | grep -q '^f> two' || fail "calls at a terminal"
    terminal 80 40 '> :Hi\r' 'f> :\x04' -- $chat --tools tools.json --grammar "$grammar"
    [ $got = 0 ] && grep -q 'the input ended' out || fail "Ctrl-D in place of a result"
fi
done_here
