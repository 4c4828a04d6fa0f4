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
    eval path=\$$model
    for device in cpu $(has_vulkan && echo vulkan); do
        expect 0 '2 chunks of 32 tokens' - "$heddle" importance "$path" "$sources/LICENSE" -o $model.$device.gguf --context 32 \
            --chunks 2 --math exact --device $device
        cmp -s $model.cpu.gguf $model.$device.gguf || fail "$model: $device collects other sums than the CPU"
    done
done

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
