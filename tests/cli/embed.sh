# embed.sh: `heddle embed`: vectors in lines and in JSON, texts as words and as lines of a file, and what it refuses.
. "$2/tests/cli/lib.sh"
models=$sources/tests/llm/models
bert=$models/bert_f32.gguf

expect 0 '^-?[0-9.e-]+( -?[0-9.e-]+){31}$' - "$heddle" embed "$bert" "day and night" "waters" --device cpu --math exact
[ "$(wc -l <out)" = 2 ] || fail "not one line a text"
cp out two
printf 'day and night\nwaters' >texts
expect 0 - - "$heddle" embed "$bert" -f texts --device cpu --math exact
cmp -s out two || fail "texts of a file have other vectors"
expect 0 - - "$heddle" embed "$bert" -f texts --device cpu --math exact --json
cp out json
expect 0 - - "$heddle" embed "$bert" -f - --device cpu --math exact --raw --pooling mean --json <texts
python "import json, numpy, struct
a, b = numpy.array(json.load(open('json'))), numpy.loadtxt('two')
assert a.shape == (2, 32) and (a == b).all() and abs((a * a).sum(1) - 1).max() < 1e-6
# What transformers computes (tools/fixtures/embeddings_fixture.py): texts 3 and 9; mean, first, last.
data = open('$models/bert_f32.emb', 'rb').read()
count = struct.unpack_from('<I', data)[0]
wanted = numpy.frombuffer(data[-3 * count * 32 * 4:], '<f4').reshape(3, count, 32)[:, [3, 9]]
assert numpy.abs(a - wanted[1] / numpy.sqrt((wanted[1] ** 2).sum(1, keepdims=True))).max() < 1e-4
assert numpy.abs(numpy.array(json.load(open('out'))) - wanted[0]).max() < 1e-4"
: >none
expect 0 '^\[\]$' - "$heddle" embed "$bert" -f none --device cpu --json
expect 0 - - "$heddle" embed "$models/qwen3_embedding_f32.gguf" "day and night" --device cpu
expect 0 - - "$heddle" embed "$models/qwen3_f32.gguf" "day and night" --pooling last --device cpu

expect 0 '^vectors +of 32 numbers, pooling cls; it answers with these, not with text$' "" "$heddle" info "$bert"
expect 0 '"embeds_only": true' "" "$heddle" info "$bert" --json
refuse 1 'bert answers with a vector, not with text: use heddle embed' "$heddle" generate "$bert" -p x --device cpu
refuse 1 'bert answers with a vector, not with text: use heddle embed' "$heddle" fit "$bert" --device cpu
refuse 1 'qwen3.pooling_type is 0: the file does not say .* ask for mean, cls or last' "$heddle" embed "$models/qwen3_f32.gguf" x --device cpu
long=$(printf 'a %.0s' $(seq 200))
refuse 1 'text 2 has 202 tokens, and the model was made for 120: divide it' "$heddle" embed "$bert" x "$long" --device cpu
refuse 1 'text 1 is empty' "$heddle" embed "$models/qwen3_f32.gguf" "" --pooling last --device cpu
refuse 2 '--pooling takes mean, cls or last, not "max"' "$heddle" embed "$bert" x --pooling max
refuse 2 'needs texts behind the model, or -f FILE' "$heddle" embed "$bert"
refuse 2 'needs texts behind the model, or -f FILE' "$heddle" embed "$bert" x -f texts
refuse 2 'needs MODEL.gguf' "$heddle" embed
refuse 1 'no/such' "$heddle" embed "$bert" -f no/such
done_here
