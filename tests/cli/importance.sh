# importance.sh: `heddle importance`: the sums that llama.cpp's llama-imatrix collects (importance.ref), on every device.
. "$2/tests/cli/lib.sh"
demo=$sources/models/demo.gguf
mixtral=$sources/tests/llm/models/mixtral_f32.gguf
cat >gguf_read.py <<'END'
import struct, numpy

# Keys and tensors of a GGUF file of numbers, texts and lists of texts.
def read(path):
    data, at = open(path, "rb").read(), 24
    def take(form):
        nonlocal at
        at += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, data, at - struct.calcsize("<" + form))[0]
    def text():
        nonlocal at
        count = take("Q")
        at += count
        return data[at - count:at].decode()
    def value(kind):
        if kind == 8: return text()
        if kind != 9: return take({4: "I", 5: "i", 6: "f"}[kind])
        kind, count = take("I"), take("Q")
        return [value(kind) for _ in range(count)]
    count, keys = struct.unpack_from("<QQ", data, 8)
    keys = {text(): value(take("I")) for _ in range(keys)}
    infos = [(text(), [take("Q") for _ in range(take("I"))], take("I"), take("Q")) for _ in range(count)]
    begin = (at + 31) // 32 * 32
    return keys, {name: numpy.frombuffer(data, numpy.float32, int(numpy.prod(shape)), begin + offset).reshape(shape[::-1])
                  for name, shape, kind, offset in infos if kind == 0}
END

expect 0 '^demo.gguf: 9 chunks of 64 tokens$' - "$heddle" importance "$demo" "$sources/LICENSE" -o demo.gguf --context 64 --device cpu
expect 0 '^mixtral.gguf: [0-9]* chunks of 64 tokens$' - \
    "$heddle" importance "$mixtral" "$sources/LICENSE" -o mixtral.gguf --context 64 --device cpu
python "import sys; sys.path.insert(0, '.')
from gguf_read import read
files = { name: read(name + '.gguf') for name in ('demo', 'mixtral') }
assert files['demo'][0] == {'general.type': 'imatrix', 'imatrix.datasets': ['LICENSE'], 'imatrix.chunk_count': 9, 'imatrix.chunk_size': 64}
rows = [line.split() for line in open('$sources/tests/cli/importance.ref') if line[0] != '#']
seen = { (model, name): figures for model, name, *figures in rows }
for model, (keys, tensors) in files.items():
    names = [n[:-8] for n in tensors if n.endswith('.in_sum2')]
    assert set(names) == { name for m, name in seen if m == model }, names
    for name in names:
        counts, total, *first = seen[model, name]
        sums = tensors[name + '.in_sum2'].astype(float)
        ours = tensors[name + '.counts'].reshape(-1)
        theirs = [float(c) for c in counts.split(',')]
        assert ours.sum() == sum(theirs) and abs(ours - theirs).max() <= 2, (name, ours, theirs)
        assert abs(sums.sum() / float(total) - 1) < 0.01, (name, sums.sum(), total)
        for a, b in zip(sums.reshape(-1), first): # scores that are all but equal may choose other experts
            assert abs(a / float(b) - 1) < (0.05 if '_exps' in name else 0.02), (name, a, b)"

# The same bytes on another device in exact mode.
for model in demo mixtral; do
    [ $model = demo ] && path=$demo || path=$mixtral
    for device in cpu $(has_vulkan && echo vulkan); do
        expect 0 '2 chunks of 32 tokens' - "$heddle" importance "$path" "$sources/LICENSE" -o $model.$device.gguf --context 32 \
            --chunks 2 --math exact --device $device
        cmp -s $model.cpu.gguf $model.$device.gguf || fail "$model: $device collects other sums than the CPU"
    done
done

# What quantize makes of it: errors of columns that matter are smaller, and what the file does not tell of is told.
expect 0 '; 1 of the quantised are not in demo.gguf and were written without weights$' - \
    "$heddle" quantize "$demo" with.gguf q2_k --importance demo.gguf
# How good a model is, is seen by its states over a text, against those of the model it was made from: how well it foretells the
# text (perplexity) changes with each word that happens to stand there, by more than what the file brings. Three samples of other
# texts: over ten of such, the squares of the errors sum up to 0.88 to 0.93 of those without the file.
for seed in 1 2 3; do
    "$heddle" generate "$demo" -p "In the beginning" -n 500 --seed $seed --temp 1 --top-k 0 --top-p 1 --min-p 0 --ignore-end \
        --math exact --device cpu 2>/dev/null
done >own.txt
expect 0 '^own.gguf: [0-9]* chunks of 64 tokens$' - \
    "$heddle" importance "$demo" own.txt -o own.gguf --context 64 --device cpu --math exact
expect 0 - "" "$heddle" quantize "$demo" with.gguf q2_k --importance own.gguf
expect 0 - "" "$heddle" quantize "$demo" without.gguf q2_k
tr '\n' ' ' <own.txt | fold -s -w 60 >lines.txt
for file in "$demo" with.gguf without.gguf; do
    expect 0 - - "$heddle" embed "$file" -f lines.txt --pooling mean --device cpu --math exact --json
    mv out "$(basename "$file").json"
done
python "import json, numpy
right, a, b = (numpy.array(json.load(open(name + '.gguf.json'))) for name in ('demo', 'with', 'without'))
a, b = ((states - right) ** 2 for states in (a, b))
assert right.shape[0] > 90 and a.sum() < 0.97 * b.sum(), (right.shape, a.sum(), b.sum())"
expect 0 '; 0 of the quantised are not in mixtral.gguf' - "$heddle" quantize "$mixtral" with.gguf q4_0 --importance mixtral.gguf \
    --keep output.weight --keep token_embd
expect 0 '"tensor": "blk.1.ffn_up_exps.weight", .*"weighted": true}' - \
    "$heddle" quantize "$mixtral" with.gguf q4_0 --importance mixtral.gguf --json

# Files that say what cannot be: refused by name, or, where no row came, left out.
python "import sys; sys.path.insert(0, '.')
import struct, numpy
def text(s): return struct.pack('<Q', len(s)) + s.encode()
def write(path, name, sums, counts, kind='imatrix', dtype=0):
    parts = [(name + '.in_sum2', numpy.array(sums, numpy.float32)), (name + '.counts', numpy.array(counts, numpy.float32))]
    parts = [p for p in parts if p[1].size]
    head = b'GGUF' + struct.pack('<IQQ', 3, len(parts), 1) + text('general.type') + struct.pack('<I', 8) + text(kind)
    data = b''
    for part, values in parts:
        head += text(part) + struct.pack('<IQIQ', 1, values.size, dtype, len(data))
        data += values.tobytes() + bytes(-values.nbytes % 32)
    open(path, 'wb').write(head + bytes(-len(head) % 32) + data)
q = 'blk.0.attn_q.weight'
write('short.gguf', q, numpy.ones(255), [1])
write('long.gguf', q, numpy.ones(512), [1])
write('counts.gguf', q, numpy.ones(256), [1, 1])
write('lone.gguf', q, numpy.ones(256), [])
write('nan.gguf', q, [numpy.nan] + [1] * 255, [1])
write('infinite.gguf', q, [numpy.inf] + [1] * 255, [1])
write('negative.gguf', q, [-1] + [1] * 255, [1])
write('minus.gguf', q, numpy.ones(256), [-1])
write('type.gguf', q, numpy.ones(256), [1], dtype=26)
write('model.gguf', q, numpy.ones(256), [1], kind='model')
write('none.gguf', q, numpy.ones(256), [0])
write('huge.gguf', q, numpy.full(256, 3e38), [1e-30])
write('zero.gguf', q, numpy.zeros(256), [1])"
while read -r file text; do
    expect 1 - "$text" "$heddle" quantize "$demo" out.gguf q4_k_m --importance $file.gguf
    [ -e out.gguf ] && fail "$file: quantize left a file"
done <<'END'
short blk.0.attn_q.weight.in_sum2 of the importance file has 255 elements, and the matrix takes 256
long blk.0.attn_q.weight.in_sum2 of the importance file has 512 elements, and the matrix takes 256
counts blk.0.attn_q.weight.counts of the importance file has 2 elements, and the matrix takes 1
lone the importance file has no blk.0.attn_q.weight.counts
nan blk.0.attn_q.weight.in_sum2. of the importance file holds NaN, infinity or a negative number
infinite blk.0.attn_q.weight.in_sum2. of the importance file holds NaN, infinity or a negative number
negative blk.0.attn_q.weight.in_sum2. of the importance file holds NaN, infinity or a negative number
minus blk.0.attn_q.weight.counts. of the importance file holds NaN, infinity or a negative number
type blk.0.attn_q.weight.in_sum2 of the importance file is i32, not f32
model general.type is .model.: the file is no importance file
nosuch nosuch.gguf
END
expect 0 '; 57 of the quantised are not in none.gguf' - "$heddle" quantize "$demo" out.gguf q4_0 --importance none.gguf
for file in huge zero; do
    expect 0 '; 56 of the quantised are not in' - "$heddle" quantize "$demo" out.gguf q4_0 --importance $file.gguf
done
rm -f out.gguf none.gguf

# What is refused leaves no file.
printf 'short' >short
expect 1 "" 'the text has [0-9]* tokens, and a chunk 512; give a longer text' \
    "$heddle" importance "$demo" short -o none.gguf --device cpu
refuse 1 'no/such' "$heddle" importance "$demo" no/such -o none.gguf
refuse 2 'names the file to write' "$heddle" importance "$demo" "$sources/LICENSE"
refuse 2 'needs MODEL.gguf TEXT.txt' "$heddle" importance "$demo" -o none.gguf
expect 1 "" 'cannot be written' "$heddle" importance "$mixtral" "$sources/LICENSE" -o no/such/none.gguf --context 64 --chunks 1 --device cpu
[ -e none.gguf ] && fail "importance left a file where it failed"
done_here
