# model.sh: `heddle info`, `tokenize`, `fit` and `bench llm`: what they say about the demo model, as text and as JSON, and
# what they refuse.
. "$2/tests/cli/lib.sh"
demo=$sources/models/demo.gguf
has_python() { python3 -c '' 2>/dev/null; }
is_json() { ! has_python || python3 -m json.tool <out >/dev/null || fail "$1 --json is no JSON"; }

expect 0 '^architecture  qwen3$' "" "$heddle" info "$demo"
matches out '^parameters    7.35 million$' info
matches out '^layers        8 of hidden size 256' info
matches out '^vocabulary    4096 tokens, tokenizer gpt2$' info
cp out named
expect 0 - "" "$heddle" info
cmp -s out named || fail "info without a model is not about the demo model"
expect 0 '"layers": 8' "" "$heddle" info --json
is_json info

expect 0 '^ +[0-9]+  " world"$' "" "$heddle" tokenize -p 'Hello, world'
expect 0 '"id"' "" "$heddle" tokenize -p 'Hello, "w\rld" é' --json
is_json tokenize
! has_python || python '
import json
tokens = json.load(open("out"))
assert "".join(t["text"] for t in tokens).startswith("Hello, \"w") and all(0 <= t["id"] < 4096 for t in tokens)'
# A million tokens are written as they are made: a list of them would take more than the memory that is given.
head -c 1000000 /dev/zero | tr '\0' '\377' >large
limit='ulimit -v 700000'
(eval "$limit" && "$heddle" --version >/dev/null 2>&1) || limit=: # a sanitizer reserves more
(eval "$limit" && "$heddle" tokenize -f large --json >out 2>err) || fail "tokenize --json holds all of its list"
[ "$(grep -c '"id"' out)" = 1000000 ] || fail "not a million tokens"
rm large
expect 0 "" "" "$heddle" tokenize -p '' --no-special
printf 'Hello, world' >text
expect 0 - "" "$heddle" tokenize -f text
cp out of_file
expect 0 - "" "$heddle" tokenize "$demo" -p 'Hello, world'
cmp -s out of_file || fail "-p and -f give different tokens"

expect 0 '^CPU +8 .* [0-9]+ bytes$' 'selected=cpu' "$heddle" fit
matches out '^fits: .* has [0-9.]+ GiB$' fit
expect 0 '"fits": true' - "$heddle" fit --json
is_json fit
expect 1 '^does not fit: ' - "$heddle" fit --memory 1M
# A copy of the model is equal to the byte; another family's model in nothing.
cp "$demo" copy.gguf
expect 0 ' MiB are equal in the other model: on one device they lie once$' - "$heddle" fit --beside copy.gguf
expect 0 '"beside_shared_bytes": [1-9][0-9]{6,}' - "$heddle" fit --beside copy.gguf --json
expect 0 ' 0 B are equal in the other model' - "$heddle" fit --beside "$sources/tests/llm/models/llama_q4_0.gguf"
expect 1 - 'cannot be opened' "$heddle" fit --beside nothing.gguf
expect 1 '"fits": false' - "$heddle" fit --memory 1M --json
if has_vulkan; then
    expect 0 '^device +3 ' - "$heddle" fit --device vulkan --gpu-layers 3
    matches out '^CPU +5 ' "fit with layers on both"
    expect 0 '^fits: everything is on the CPU, and nothing on ' - "$heddle" fit --device vulkan --gpu-layers 0
    expect 0 - '^heddle: CPU     5 of 8 layers, .*: as --gpu-layers asks$' "$heddle" bench llm --device vulkan --gpu-layers 3 -p 4 -n 0 -r 1
    # room for the prompt, and for an answer of each sequence; not for 64 prompts, which would be 3 layers more than 120 MiB hold
    expect 0 '^ +tg1 x64 ' - "$heddle" bench llm --device vulkan --memory 120M -p 400 -n 1 --sequences 64 -r 1
    if grep -q '^heddle: CPU' err; then fail "the cache of a benchmark has room that no test takes"; fi
    mixture=$sources/tests/llm/models/mixtral_f32.gguf
    expect 0 '^device +2 ' - "$heddle" fit "$mixture" --device vulkan --cpu-experts 1
    matches out '^CPU +0 ' "fit with experts apart"
    matches out '^ +1  of the device.s have their experts on the CPU$' "fit with experts apart"
    expect 1 - 'the model has no experts that could be left to the CPU' "$heddle" fit --device vulkan --cpu-experts 1
fi

# Sizes of pieces by a log of prompts' lengths, with one carriage return and no last line's end.
{ yes 300 | head -n 99; printf '300\r\n280'; } >lengths
expect 0 '^by default +512,256,128,64,32,16,8 +6\.2 % +202 +3 +98\.51 % +[0-9.]+ MiB$' - "$heddle" fit --prompts lengths
matches out '^101 prompts of 30280 tokens; ' "fit --prompts"
matches out '^found +512,304,280 +1\.3 % +101 +2 +98\.02 % +[0-9.]+ MiB$' "fit --prompts"
expect 0 '^--pieces +304,24 +1\.4 % ' - sh -c "'$heddle' fit --pieces 304,24 --prompts - <lengths"
matches out '^found +512,304 +1\.4 % +101 +1 +99\.01 % ' "fit --pieces --prompts"
matches out '^more plans +512,304,280 +1\.3 % +101 +2 +98\.02 % ' "fit --pieces --prompts"
expect 0 '"prompts": \{' - "$heddle" fit --prompts lengths --json
is_json "fit --prompts"
! has_python || python '
import json
told = json.load(open("out"))["prompts"]
assert told["tokens"] == 30280 and told["wished"]["pieces"] == [512, 256, 128, 64, 32, 16, 8] and told["wished"]["rows"] == 100 * 320 + 288, told
assert told["found"]["pieces"] == [512, 304, 280] and told["found"]["rows"] == 100 * 304 + 280 and told["found"]["plans"] == 2, told'
for bad in '300\nx\n' '300\n0\n' '300\n\n300\n' '300\n16777217\n' '300\n-1\n' '300\n 7\n' '300\n7 8\n' '300\n1\00001\n' \
    "1\n$(printf '%0999d' 7)\n"; do
    printf '%b' "$bad" >bad_lengths
    refuse 1 '^heddle fit: bad_lengths: line [23] has no length of a prompt, a number of 1 to 16777216$' "$heddle" fit --prompts bad_lengths
done
: >bad_lengths
refuse 1 '^heddle fit: bad_lengths has no lengths of prompts, one a line$' "$heddle" fit --prompts bad_lengths
refuse 1 'nothing cannot be read: No such file' "$heddle" fit --prompts nothing
for bad in '' 0 x 304,x 1,2,3,4,5,6,7,8,9 -8; do
    refuse 2 "--pieces is up to 8 numbers of rows, the most first, such as 512,304,64; not \"$bad\"" "$heddle" fit "--pieces=$bad"
done
for command in fit "generate -p a -n 1" "bench llm -r 1 -n 1"; do
    expect 1 - 'pieces.1., 20, is no multiple of 8' "$heddle" $command --pieces 304,20
done
expect 0 - - "$heddle" generate -p "$(yes word | head -n 90 | tr '\n' ' ')" -n 8 --math exact --quiet
cp out usual
expect 0 - - "$heddle" generate -p "$(yes word | head -n 90 | tr '\n' ' ')" -n 8 --math exact --quiet --pieces 40,24
cmp -s usual out || fail "--pieces changed an answer"
expect 0 '^ +pp60 ' - "$heddle" bench llm -p 60 -n 0 -r 1 --pieces 40,24

expect 0 '^ +pp16 +[0-9.]+ +[0-9.]+ +[0-9.]+$' 'selected=cpu' "$heddle" bench llm -p 16 -n 4 -r 2
matches out '^ +tg4 ' "bench llm"
expect 0 '"size": "tokens=4 depth=8"' - "$heddle" bench llm "$demo" -p 0 -n 4 -d 8 -r 1 --json
is_json "bench llm"
! has_python || python '
import json
row = json.load(open("out"))
assert row["bench"] == "llm" and row["samples"] == 1 and row["min_ns"] == row["max_ns"] == row["median_ns"] > 0, row'

# Guesses, and curves over what was measured at several places.
expect 0 '^ +rw8 lookup ' - "$heddle" bench llm -p 0 -n 8 --draft lookup -r 2 --csv rw.csv
matches out '^ +[0-9.]+ tokens came of a step with guesses: [0-9]+ of [0-9]+ guesses were said$' "bench llm --draft"
grep -q ',rewrite,.*draft=lookup' rw.csv || fail "no row of a rewritten text"
expect 0 - - "$heddle" bench llm -p 4,8 -n 2 -d 0,3 --sequences 1,2 -r 2 --csv curves.csv
sed -E 's/,([0-9]+),cpu,/,1\1,cpu,/' curves.csv >threads.csv # as if with more threads
expect 0 "" "" "$heddle" bench report curves.csv -o curves.html
for over in "the prompt" "the context" sequences; do grep -q "<h4>over $over</h4>" curves.html || fail "no curve over $over"; done
grep -q '<h4>over threads' curves.html && fail "a curve over one number of threads"
grep -q '>tg2@3</text>' curves.html || fail "no name of a curve"
expect 0 "" "" "$heddle" bench report curves.csv threads.csv -o threads.html
grep -q '<h4>over threads</h4>' threads.html || fail "no curve over threads"
refuse 2 '-f is the text of --draft' "$heddle" bench llm -f rw.csv

# What cannot be run is told about all the same, and why not; an adapter is named.
LC_ALL=C sed 's/qwen3/qwenX/g' "$demo" >family.gguf
expect 1 '^layers        8 of hidden size 256, feed-forward 768$' "unsupported: general.architecture is 'qwenX'; heddle runs llama" "$heddle" info family.gguf
matches out '^weights       7.5 MiB: q8_0 57, f32 33$' "info of an architecture that is not known"
LC_ALL=C sed 's/\(general\.type.\{12\}\)model/\1lorax/' "$demo" >adapter.gguf
expect 1 '^type          lorax$' "general.type is 'lorax': the file holds no whole model; give the model that it belongs to" "$heddle" info adapter.gguf
expect 1 '"type": "lorax"' - "$heddle" info adapter.gguf --json
refuse 1 "general.type is 'lorax'" "$heddle" generate adapter.gguf -p a

# Each of them refuses the same files.
head -c 3000000 "$demo" >cut.gguf
for command in info "tokenize -p x" fit "bench llm -r 1"; do
    refuse 1 'nosuch.gguf: cannot be opened: there is no such file \(errno 2\); ' "$heddle" $command nosuch.gguf
    refuse 1 'this is no GGUF file, byte 0; give a model in that format$' "$heddle" $command "$sources/LICENSE"
    refuse 1 'cut.gguf: .*; the file is cut short: fetch it again$' "$heddle" $command cut.gguf
    refuse 2 'no option --nosuch' "$heddle" $command --nosuch
    "$heddle" $command >&- 2>err
    [ $? = 1 ] || fail "$command with a closed stdout: not exit code 1"
done
refuse 2 'needs a text: -p TEXT or -f FILE' "$heddle" tokenize
refuse 2 'needs a text' "$heddle" tokenize -p a -f text
refuse 2 '-p and -n are both 0' "$heddle" bench llm -p 0 -n 0
refuse 2 '-r is a whole number of 1 to 1000' "$heddle" bench llm -r 0
done_here
