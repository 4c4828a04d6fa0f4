# quantize.sh: `heddle quantize` and `heddle perplexity`: files and figures of llama.cpp's programs, and what they refuse.
. "$2/tests/cli/lib.sh"
mixes=$sources/tests/llm/fixtures
demo=$sources/models/demo.gguf

expect 0 '^blk.15.ffn_down.weight +f16 -> q6_k +error 0.0[0-9]*$' "" "$heddle" quantize "$mixes/mix_f16.gguf" out.gguf q4_k_m
matches out '^blk.0.attn_norm.weight +f32$' quantize
matches out '^82 tensors quantised, 33 kept: 1[0-9.]* KiB to [0-9.]* KiB of weights; the largest error is 0.0' quantize
expect 0 '^[0-9]* tensors quantised, .* of weights; no element is off$' "" "$heddle" quantize "$mixes/mix_f16.gguf" out.gguf f32
[ "$(ls)" = "$(printf 'err\nout\nout.gguf')" ] || fail "quantize left something beside the file"
expect 0 '"tensor": "blk.0.attn_k.weight", "from": "f16", "to": "f16", "elements": 512, "bytes": 1024, "error": 0, "weighted": false}' "" \
    "$heddle" quantize "$mixes/mix_f16.gguf" kept.gguf q4_0 --keep attn_k --keep attn_v --json
python "import json; json.load(open('out'))"
expect 1 "^weights +[0-9.]* KiB: .*f16 32" "shape" "$heddle" info kept.gguf
expect 0 '^blk.0.attn_k.weight +f16 -> iq2_xxs error 0.3[0-9]*$' '^heddle: iq2_xxs without --importance loses much' \
    "$heddle" quantize "$mixes/mix_f16.gguf" out.gguf iq2_xxs
expect 0 '^blk.0.attn_k.weight +f16 -> iq3_s +error 0.1[0-9]*$' "" "$heddle" quantize "$mixes/mix_f16.gguf" out.gguf iq3_s
rm -f out.gguf kept.gguf
refuse 1 'no type is called q9; there are f32, f16' "$heddle" quantize "$mixes/mix_f16.gguf" out.gguf q9
refuse 1 'no/such.gguf' "$heddle" quantize no/such.gguf out.gguf q4_0
refuse 1 'cannot be written' "$heddle" quantize "$mixes/mix_f16.gguf" no/such/out.gguf q4_0
refuse 2 'needs IN.gguf OUT.gguf TYPE' "$heddle" quantize "$mixes/mix_f16.gguf" out.gguf
refuse 2 '--set takes KEY=TEXT, not "general.name"' "$heddle" quantize "$mixes/mix_f16.gguf" out.gguf q4_0 --set general.name
for key in general.architecture general.alignment tokenizer.ggml.model name; do
    refuse 1 "the key $key is none that a text can be put under" "$heddle" quantize "$mixes/mix_f16.gguf" out.gguf q4_0 --set $key=a
done
[ -e out.gguf ] && fail "quantize left a file where it failed"

# What it says of itself, in place of what it said: twice the same bytes.
expect 0 - "" "$heddle" quantize "$demo" said.gguf f32 --set general.name='Any = name' --set general.languages=de,en --set general.url=
expect 0 '^name +Any = name$' "" "$heddle" info said.gguf
expect 0 - "" "$heddle" quantize said.gguf again.gguf f32 --set general.name='Any = name' --set general.languages=de,en --set general.url=
cmp -s said.gguf again.gguf || fail "the same words make another file"
python "import struct
texts = lambda *all: b''.join(struct.pack('<Q', len(t)) + t for t in all)
data = open('said.gguf', 'rb').read()
assert texts(b'general.languages') + struct.pack('<IIQ', 9, 8, 2) + texts(b'de', b'en') in data, 'languages'
assert texts(b'general.url') + struct.pack('<I', 8) + texts(b'') in data, 'url'"

# What llama-perplexity (llama.cpp 0.7.0, build 11669, CPU) says of the demo model and this text: 87.7368 +- 18.08329 and 82.6753 +- 16.45156.
# What a processor multiplies in 8 or 16 bits is within 0.2 percent of that.
near() { # instruction set, share
    expect 0 '"perplexity": 87\.' - \
        env HEDDLE_CPU="$1" "$heddle" perplexity "$demo" "$sources/LICENSE" --context 64 --device cpu --json
    cp out perplexity
    python "import json
p = json.load(open('perplexity'))
assert abs(p['perplexity'] / 87.7368 - 1) < $2 and abs(p['error'] / 18.08329 - 1) < 2 * $2, p
assert p['chunks'] == 9 and p['foretold'] == 9 * 31 and p['context'] == 64, p"
}
near portable 0.0001
near all 0.002
expect 0 '^perplexity 82\.[67].* \+- 16\.4.*, over 252 of [0-9]* tokens in 4 chunks of 128$' - \
    env HEDDLE_CPU=portable "$heddle" perplexity "$demo" "$sources/LICENSE" --context 128 --device cpu
# With activations in 8 bits, where the processor multiplies such, within 0.2 percent.
expect 0 '^perplexity 82\.[5-8].* \+- 16\.4.*, over 252 of [0-9]* tokens in 4 chunks of 128$' - \
    "$heddle" perplexity "$demo" "$sources/LICENSE" --context 128 --device cpu
expect 0 ' over 31 of ' - "$heddle" perplexity "$demo" "$sources/LICENSE" --context 64 --chunks 1 --device cpu

# The model in three types, as docs/models.md tells by the portable kernels; others round activations.
for type in f32 f16 bf16; do
    expect 0 - "" "$heddle" quantize "$demo" $type.gguf $type
    expect 0 - - "$heddle" perplexity $type.gguf "$sources/LICENSE" --context 256 --device cpu --json
    cp out perplexity
    python "import json, re
told = re.search(r'^\| $type \| [0-9.]+ MiB \|.*\| ([0-9.]+) \|$', open('$sources/docs/models.md').read(), re.M)
assert told and abs(json.load(open('perplexity'))['perplexity'] / float(told[1]) - 1) < 0.002, (told and told[1], json.load(open('perplexity')))"
done
rm -f f32.gguf f16.gguf bf16.gguf

# What is lost where activations are rounded to 8 or 16 bits: beside the same weights in f32, over a text that the model says,
# in exact mode, as its words are the same on every machine then.
for seed in 1 2 3 4 5; do
    "$heddle" generate "$demo" -p "And it came to pass in the year $seed, that" -n 400 --temp 0.9 --seed $seed --device cpu --math exact 2>err || fail "$(cat err)"
done >text
for type in q8_0 q4_0 q6_k q4_k_m iq4_xs q2_k tq2_0; do
    expect 0 - - "$heddle" quantize "$demo" quantised.gguf $type
    expect 0 ' -> f32 ' "" "$heddle" quantize quantised.gguf floats.gguf f32
    for file in "quantised.gguf" "quantised.gguf --math exact" "floats.gguf"; do
        # shellcheck disable=SC2086
        "$heddle" perplexity $file text --context 256 --device cpu --json || fail "perplexity of $type"
    done >all 2>err
    python "import json
decoder, text, found = json.JSONDecoder(), open('all').read(), []
while text.strip():
    value, end = decoder.raw_decode(text.strip())
    found.append(value['perplexity'])
    text = text.strip()[end:]
fast, exact, floats = found
print('$type', fast / floats - 1, exact / floats - 1)
assert abs(fast / floats - 1) < 0.002 and abs(exact / floats - 1) < 0.002, found"
done
rm -f quantised.gguf floats.gguf
refuse 1 "has type q4_k; weights are quantised from f32, .*and others become f32, f16 or bf16" sh -c \
    '"$1" quantize "$2" four.gguf q4_k_m >/dev/null 2>&1 && "$1" quantize four.gguf out.gguf q4_0' sh "$heddle" "$demo"
printf 'short' >short
expect 1 "" 'the text has [0-9]* tokens, and a chunk 512; give a longer text' "$heddle" perplexity "$demo" short --device cpu
refuse 1 'no/such' "$heddle" perplexity "$demo" no/such
refuse 2 'needs MODEL.gguf TEXT.txt' "$heddle" perplexity "$demo"
done_here
