# generate.sh: `heddle generate`: its text, the same one for the same seed and on every device in exact mode; its report and
# JSON; wrong files, prompts and options.
. "$2/tests/cli/lib.sh"
demo=$sources/models/demo.gguf
generate="$heddle generate $demo -p Behold,"

# The text and nothing else on standard output; the report on standard error.
expect 0 '^Behold, ' '^heddle: answer  12 tokens, [0-9.]+ tokens/s, ended by -n$' $generate -n 12
matches err '^heddle: prompt  [0-9]+ tokens, [0-9.]+ tokens/s$' report
matches err '^heddle: device  .*: 8 layers, [0-9.]+ MiB, loaded in ' report
[ "$(wc -l <err)" = 5 ] || fail "not the start-up line, an empty line and three of report"
expect 0 '^In the beginning' - "$heddle" generate -n 2
expect 0 - "" $generate -n 12 --quiet
[ -s err ] && fail "--quiet prints more than the answer"
grep -q Behold out && fail "--quiet prints the prompt"
printf 'Behold,' >prompt
cp out quiet
expect 0 - - "$heddle" generate "$demo" -f prompt -n 12 --quiet
cmp -s out quiet || fail "-f and -p give different texts"

# A prompt from a pipe, from - and as ids; -n12 is -n 12. What ends `echo` is no part of it.
for given in "" "-f -"; do
    echo 'Behold,' | "$heddle" generate "$demo" $given -n12 --quiet >out 2>err
    cmp -s out quiet || fail "a prompt from a pipe, \"$given\""
done
printf '' | "$heddle" generate "$demo" -n 1 >out 2>err
grep -q 'the prompt is empty' err || fail "an empty prompt from a pipe"
refuse 2 'takes one of -p, -f and --tokens' $generate -f prompt
ids=$("$heddle" tokenize "$demo" -p 'Behold,' --json | tr -dc '0-9,' | sed 's/,,/,/g; s/,$//')
expect 0 - - "$heddle" generate "$demo" --tokens "$ids" -n 12 --quiet
cmp -s out quiet || fail "--tokens $ids is not its text"
refuse 2 '--tokens is a list of ids such as 1,2,3, not "1,b"' "$heddle" generate "$demo" --tokens 1,b
refuse 1 'there is no token 4096; this model has 0 to 4095' "$heddle" generate "$demo" --tokens 1,4096
sed 's/tokenizer\.ggml\.model/general.description2/' "$sources/tests/llm/models/llama_f32.gguf" >ids.gguf # no vocabulary
expect 0 '^[0-9]+,[0-9]+,[0-9]+$' "" "$heddle" generate ids.gguf --tokens 1,2,3 -n 3 --quiet
refuse 1 'give token ids in place of text' "$heddle" generate ids.gguf -p a
perl -0777 -pe 's/\x15(\0{7}tiny random llama)_f32/\x11$1/; s/\x04(\0{7})gpt2/\x08$1no_vocab/' \
    "$sources/tests/llm/models/llama_f32.gguf" >no_vocab.gguf # llama.cpp's word for it
expect 0 '^[0-9]+,[0-9]+,[0-9]+$' "" "$heddle" generate no_vocab.gguf --tokens 1,2,3 -n 3 --quiet

# Guesses change nothing of the text.
repeats="In the beginning God created the heaven and the earth. In the beginning God created the heaven and"
for sampling in "--temp 0" "--seed 5"; do
    expect 0 - - "$heddle" generate "$demo" -p "$repeats" -n 96 $sampling --ignore-end --quiet
    cp out undrafted
    expect 0 - - "$heddle" generate "$demo" -p "$repeats" -n 96 $sampling --ignore-end --quiet --draft lookup
    cmp -s out undrafted || fail "--draft changes the text, $sampling"
done
expect 0 - '^heddle: draft   [1-9][0-9]* of [1-9][0-9]* guesses were said, in [1-9][0-9]* steps$' \
    "$heddle" generate "$demo" -p "$repeats" -n 96 --temp 0 --ignore-end --draft lookup
expect 0 '"accepted_tokens": [1-9]' - "$heddle" generate "$demo" -p "$repeats" -n 96 --temp 0 --ignore-end --draft lookup --json
refuse 2 '--draft is lookup, not "model"' $generate --draft model
refuse 2 '--cache-type is a type such as f16 or q8_0, not "q9"' $generate --cache-type q9
refuse 1 'a cache is of f32, f16, q8_0 or q4_0' $generate --cache-type q6_k

# A seed by chance is told, and repeats the text.
expect 0 - '^heddle: seed    [0-9]+$' $generate -n 24 --seed random
cp out chance
expect 0 - - $generate -n 24 --seed "$(sed -n 's/^heddle: seed *//p' err)"
cmp -s out chance || fail "the seed that was told gives another text"
expect 0 - '^heddle: --context 600 is more than the 512 tokens that the model was made for' $generate -n 1 --context 600

HEDDLE_LOG=error expect 0 '^Behold, ' "" $generate -n 2

# Seeds: the same one repeats, another one differs; at temperature 0 they do not count.
for seed in 7 7 8; do
    expect 0 - - $generate -n 24 --seed $seed
    [ $seed = 8 ] || ! [ -e seeded ] || cmp -s out seeded || fail "seed 7 does not repeat"
    [ $seed = 7 ] || ! cmp -s out seeded || fail "seeds 7 and 8 give one text"
    cp out seeded
done
expect 0 - - $generate -n 16 --temp 0 --seed 1
cp out greedy
expect 0 - - $generate -n 16 --temp=0 --seed=2
cmp -s out greedy || fail "a seed counts at temperature 0"
expect 0 - - $generate -n 16 --top-k 1
cmp -s out greedy || fail "--top-k 1 is not the most likely token"
expect 0 - - $generate -n 16 --temp 0 --repeat-penalty 1.5
cmp -s out greedy && fail "--repeat-penalty changes nothing"
cp out repeated
expect 0 - - $generate -n 16 --temp 0 --repeat-penalty 1.5 --repeat-last-n 1
cmp -s out repeated && fail "--repeat-last-n changes nothing"
expect 0 - - $generate -n 16 --temp 0 --frequency-penalty 4
cmp -s out greedy && fail "--frequency-penalty changes nothing"
expect 0 - - $generate -n 16 --temp 0 --presence-penalty 4
cmp -s out greedy && fail "--presence-penalty changes nothing"
refuse 2 'repeat-last-n is' $generate --repeat-last-n 0

# How answers end.
expect 0 - 'ended by a stop text$' $generate -n 64 --temp 0 --stop zzz --stop ' the'
grep -q ' the' out && fail "the stop text is part of the answer"
expect 0 - 'ended by the context, which is full$' $generate -n 0 --context 32 --ignore-end
expect 0 - 'ended by the context, which is full$' $generate -n 100 --context 32 --ignore-end
refuse 1 'the prompt is [0-9]+ tokens long, and the context holds 1; give --context' $generate --context 1
expect 0 - 'answer  100 tokens, .*, ended by -n$' $generate -n 100 --context 32 --ignore-end --shift
refuse 2 '--shift goes on without an end; say with -n how far' $generate -n 0 --shift
refuse 2 'the prompt is empty' "$heddle" generate "$demo" -p ''
refuse 2 'the prompt is empty' "$heddle" generate "$demo" -f /dev/null

if python3 -c '' 2>/dev/null; then
    expect 0 - - $generate -n 12 --json --temp 0
    python3 -m json.tool <out >/dev/null || fail "--json is no JSON"
    python '
import json
r = json.load(open("out"))
assert r["prompt"] == "Behold," and len(r["tokens"]) == 12 and r["stop"] == "length" and r["device"] == "cpu", r
assert r["memory"]["cpu_layers"] == 8 and r["memory"]["device_layers"] == 0 and r["memory"]["fits"] and r["submissions"] >= 12
assert open("greedy").read().startswith("Behold," + r["text"])'
fi

# Exact mode: the same bytes on another device, and where layers are on both.
expect 0 - - $generate -n 12 --seed 5 --math exact
cp out exact
if has_vulkan; then
    expect 0 - 'selected=vulkan' $generate -n 12 --seed 5 --math exact --device vulkan
    cmp -s out exact || fail "exact texts differ between CPU and Vulkan"
    expect 0 - '^heddle: CPU     5 of 8 layers, .*: as --gpu-layers asks$' $generate -n 12 --seed 5 --math exact --device vulkan --gpu-layers 3
    cmp -s out exact || fail "exact texts differ where layers are on both"
    matches err '^heddle: device  .*: 3 of 8 layers' "--gpu-layers 3"
    expect 0 - '^heddle: CPU     [1-7] of 8 layers, .*--memory' $generate -n 2 --device vulkan --memory 12M
    for there in 7 3 0; do
        expect 0 - "^heddle: stream  $((8 - there)) of 8 layers travel to the device for every token: as --gpu-layers asks\$" \
            $generate -n 12 --seed 5 --math exact --device vulkan --gpu-layers $there --stream
        cmp -s out exact || fail "exact texts differ where layers travel and $there stay"
    done
    expect 0 - '^heddle: CPU     8 of 8 layers' $generate -n 2 --device vulkan --gpu-layers 0
    mixture="$heddle generate $sources/tests/llm/models/mixtral_f32.gguf -p ab -n 12 --math exact --ignore-end"
    expect 0 - - $mixture --device cpu
    cp out exact
    expect 0 - '^heddle: CPU     experts of 1 of 2 layers, .*: as --cpu-experts asks$' $mixture --device vulkan --cpu-experts 1
    cmp -s out exact || fail "exact texts differ where experts are apart"
    expect 0 - '^heddle: CPU     1 of 2 layers and experts of 1, ' $mixture --device vulkan --cpu-experts 99 --gpu-layers 1
    expect 0 '"cpu_experts": 2,' - $mixture --device vulkan --cpu-experts 2 --json
    matches out '"cpu_layers": 0,' "experts apart"
fi

# A model of 24 layers and 73 MiB with a quarter of its memory: the answer of the whole, and what travels does so while the device computes.
"$heddle" train "$sources/LICENSE" --steps 1 --layers 24 --width 256 --heads 4 --context 64 --batch 1 --device cpu --out trained --export deep.gguf >trained.log 2>&1 ||
    fail "a deep model is not made: $(cat trained.log)"
deep="$heddle generate deep.gguf -p The -n 3 --seed 3 --math exact --ignore-end"
expect 0 - - $deep --device cpu
cp out exact
if has_vulkan; then
    expect 0 - '^heddle: device  .*: 0 of 24 layers, 1[0-9]\.[0-9] MiB' $deep --device vulkan --memory 20M --stream
    cmp -s out exact || fail "exact texts differ with a quarter of the memory"
fi
if [ -e "$standin/libcuda.so.1" ] && python3 -c '' 2>/dev/null; then
    expect 0 - '^heddle: stream  24 of 24 layers' env LD_LIBRARY_PATH="$standin" HEDDLE_VERIFY=0 \
        $deep --device cuda --memory 20M --stream --trace travels.json
    cmp -s out exact || fail "exact texts differ with a quarter of the memory, on queues of their own"
    python '
import json
events = json.load(open("travels.json"))["traceEvents"]
queue = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
on = lambda name: [(e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and queue[e["pid"], e["tid"]] == name]
uploads, runs = on("upload"), on("compute")
beside = sum(any(begin < until and since < end for since, until in runs) for begin, end in uploads)
assert beside > len(uploads) / 2, (beside, len(uploads))'
fi

# Wrong files and options.
refuse 1 'over-budget: [0-9.]+ MiB are needed on the device, and 1.5 MiB may be taken there; ' $generate --memory 1536K
refuse 1 'nosuch.gguf: cannot be opened: there is no such file' "$heddle" generate nosuch.gguf -p x
refuse 1 'this is no GGUF file' "$heddle" generate "$sources/README.md" -p x
refuse 1 'is a folder' "$heddle" generate "$work" -p x
head -c 3000000 "$demo" >cut.gguf
refuse 1 'cut.gguf: .*the file has 3000000' "$heddle" generate cut.gguf -p x
head -c 100 "$demo" >cut.gguf
refuse 1 'cut.gguf' "$heddle" generate cut.gguf -p x
if [ "$(id -u)" != 0 ]; then
    cp "$demo" closed.gguf && chmod 0 closed.gguf
    refuse 1 'closed.gguf: cannot be opened' "$heddle" generate closed.gguf -p x
fi
refuse 1 'nosuch cannot be read' "$heddle" generate "$demo" -f nosuch
refuse 2 'needs a prompt: -p TEXT, -f FILE or a pipe' "$heddle" generate "$demo"
refuse 1 'nosuch.gguf: cannot be opened' "$heddle" generate nosuch.gguf # nor is there a prompt
refuse 2 'takes one of -p, -f and --tokens' $generate -f prompt
refuse 2 '-n is a whole number of 0 to' $generate -n -1
refuse 2 '--temp is a number of 0 to 100, not "hot"' $generate --temp hot
refuse 2 '--top-p is a number of 0 to 1, not "2"' $generate --top-p 2
refuse 2 '--temp is a number' $generate --temp nan
refuse 2 '--memory is a number of bytes such as 512M or 3.5G, not "6Q"' $generate --memory 6Q
refuse 2 'no option --tmp; did you mean --temp\?' $generate --tmp 1
refuse 1 'no device is called "nosuch"' $generate --device nosuch
refuse 1 'vulkan has no device: HEDDLE_BACKEND names another back end; unset it' env HEDDLE_BACKEND=cpu $generate --device vulkan

# Nobody listens: that ends the answer, and is told.
$generate -n 0 >&- 2>err
[ $? = 1 ] || fail "generate with a closed stdout: not exit code 1"
matches err 'standard output cannot be written' "a closed stdout"
grep -q 'answer' err && fail "a report about what nobody read"
if [ -e /dev/full ]; then
    $generate -n 0 >/dev/full 2>err
    [ $? = 1 ] || fail "generate into a full device: not exit code 1"
fi
# Answers in a form, from the command line or a file; and scores that are changed.
expect 0 '^Behold,(yes|no)$' - $generate --temp 0 --grammar 'root ::= "yes" | "no"'
printf 'root ::= num " " num # two\nnum ::= [0-9]{3}\n' >two.gbnf
expect 0 '^Behold,[0-9]{3} [0-9]{3}$' 'ended by the model$' $generate --grammar two.gbnf
printf '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}' >ok.json
expect 0 - - $generate --quiet -n 60 --json-schema ok.json
"$python3" -c 'import json, sys; assert type(json.load(open(sys.argv[1]))["ok"]) is bool' out || fail "the answer is not what the schema says"
expect 0 - - $generate --quiet -n 60 --json-schema "$(cat ok.json)"
refuse 2 'takes one of --grammar and --json-schema' $generate --grammar a --json-schema b
refuse 1 'nosuch.gbnf cannot be read' $generate --grammar nosuch.gbnf
refuse 1 'grammar, line 1, column 12' $generate --grammar 'root ::= "x'
refuse 1 "'multipleOf'" $generate --json-schema '{"multipleOf": 2}'
expect 0 '^Behold, the the the the$' - $generate -n 4 --temp 0 --bias ' the=100'
refuse 2 '--bias is a token and a number' $generate --bias 12
refuse 2 'does not end with a number' $generate --bias 12=x
refuse 1 'is not one token' $generate --bias 'no such token=1'
refuse 1 'there is no token 5000' $generate --bias 5000=1
# What was computed of a prompt is kept, and only what is new of it is fed; the answer is the same.
cached="$generate -n 8 --math exact --prompt-cache kept"
expect 0 - '^heddle: prompt  [2-9][0-9]* tokens' $cached
cp out first
expect 0 - '^heddle: prompt  1 tokens' $cached
cmp -s out first || fail "the answer behind a kept prompt differs"
expect 0 - - "$heddle" generate "$demo" -p 'Behold, the man' -n 8 --math exact
cp out longer
expect 0 - - "$heddle" generate "$demo" -p 'Behold, the man' -n 8 --math exact --prompt-cache kept
cmp -s out longer || fail "the answer behind a prompt that begins alike differs"
expect 0 - 'kept is of no use here and will be written anew' "$heddle" generate "$demo" -p 'Behold,' -n 2 --prompt-cache kept
echo nonsense >kept
expect 0 - 'kept is of no use here' $cached
cmp -s out first || fail "the answer beside a damaged file differs"
expect 1 . 'cannot be written' $generate -n 2 --prompt-cache /nosuch/kept
expect 0 - "" $generate -n 12 --quiet --trace t.json
grep -o '"name":"run"' t.json | wc -l | grep -qE '^ *1[1-3]$' || fail "--trace has no run for each token"
expect 1 - '/nosuch/t.json: the trace cannot be written' $generate -n 2 --trace /nosuch/t.json

done_here
