# see.sh: `heddle see`: a question about images, against what transformers answers, from each kind of file; and what it refuses.
. "$2/tests/cli/lib.sh"
models=$sources/tests/llm/models
model=$models/gemma3_sees_f32.gguf mmproj=$models/gemma3_sees_mmproj_f32.gguf
see="$heddle see $model"

# What transformers says (tools/fixtures/images_fixture.py), in letters of the model's vocabulary; and the image as a PPM file.
python "import struct
data = open('$models/gemma3_sees.seen', 'rb').read()
width, height, side, rows, hidden, vocabulary, before, after, count, question = struct.unpack_from('<10I', data)
answer = struct.unpack_from(f'<{count}i', data, 40 + 4 * (before + after))
at = 40 + 4 * (before + after + count + rows * hidden + 2 * vocabulary)
open('image.ppm', 'wb').write(b'P6 %d %d 255\n' % (width, height) + data[at:at + 3 * width * height])
open('question', 'wb').write(data[-question:])
file = open('$model', 'rb').read()
at = file.index(b'tokenizer.ggml.tokens') + 21 + 8
tokens, at = [], at + 8
for _ in range(vocabulary):
    size, = struct.unpack_from('<Q', file, at)
    tokens.append(file[at + 8:at + 8 + size].decode())
    at += 8 + size
plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
others = [b for b in range(256) if b not in plain]
letters = {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(others)}
said = b''.join(bytes(letters[letter] for letter in tokens[token]) for token in answer)
open('wanted', 'wb').write(said.decode(errors='replace').encode() + b'\n')"

for image in "$models/gemma3_sees.png" image.ppm; do
    expect 0 - 'images +1, of 16 tokens each, seen in ' $see "$image" --mmproj "$mmproj" -p "$(cat question)" -n 24 --temp 0 --math exact --device cpu
    grep -qE 'prompt +51 tokens' err || fail "the prompt has not 51 tokens"
    cmp -s out wanted || fail "$image: not what transformers says"
done
expect 0 - "" $see "$models/gemma3_sees.png" --mmproj "$mmproj" -p "$(cat question)" -n 24 --temp 0 --math exact --device cpu --quiet
cmp -s out wanted || fail "--quiet: another answer"
expect 0 - 'images +2, of 16 tokens each' $see image.ppm "$models/gemma3_sees.png" --mmproj "$models/gemma3_sees_mmproj_f16.gguf" -n 4 --temp 0 --device cpu
cmp -s out wanted && fail "two images are as one"

# In a conversation: the same answer, again after /clear; one whose oldest image is forgotten goes on as one that begins behind it.
chat="$heddle chat $model --mmproj $mmproj --temp 0 --math exact --device cpu"
converse() { expect 0 - "$1" sh -c 'exec "$@" <in' - $chat -n "$2" --context "$3" --shift; }
printf '/image image.ppm\n%s\n/clear\n/image %s\n%s\n' "$(cat question)" "$models/gemma3_sees.png" "$(cat question)" >in
converse 'an image of 16 tokens, seen in ' 24 256
cat wanted wanted >expected
cmp -s out expected || fail "chat: not what transformers says"
printf '/image image.ppm\nand?\n' >in
converse - 8 80
cp out later
printf '/image image.ppm\nHi\n/image image.ppm\nand?\n' >in
converse 'the first 2 messages are forgotten' 8 80
[ "$(tail -n "$(wc -l <later)" out)" = "$(cat later)" ] || fail "a forgotten image is not forgotten"
printf '/image image.ppm\nHi\n/save talk.json\n' >in
expect 1 - 'a conversation with images cannot be saved' sh -c 'exec "$@" <in' - $chat -n 4
[ ! -e talk.json ] || fail "it was saved"
printf '/image image.ppm\n' >in
refuse 1 'begin with --mmproj FILE' sh -c 'exec "$@" <in' - "$heddle" chat "$model" --device cpu
printf '/image no/such.png\n' >in
refuse 1 'no/such.png' sh -c 'exec "$@" <in' - $chat
refuse 1 'makes rows of 32 numbers, and the model takes 64' "$heddle" chat "$models/qwen3_q4_0.gguf" --template chatml --mmproj "$mmproj" --device cpu

refuse 2 'needs an image behind the model' $see --mmproj "$mmproj"
refuse 2 'needs --mmproj FILE' $see image.ppm
refuse 2 'needs MODEL.gguf' "$heddle" see
refuse 1 'no/such.png' $see no/such.png --mmproj "$mmproj" --device cpu
refuse 1 'this is no PNG, JPEG or PPM' $see question --mmproj "$mmproj" --device cpu
refuse 1 'a file that sees has clip' $see image.ppm --mmproj "$model" --device cpu
refuse 1 "general.type is 'mmproj'" "$heddle" see "$mmproj" image.ppm --mmproj "$mmproj" --device cpu
refuse 1 'this llama does not see' "$heddle" see "$models/llama_q4_0.gguf" image.ppm --mmproj "$mmproj" --template chatml --device cpu
refuse 1 'makes rows of 32 numbers, and the model takes 64' "$heddle" see "$models/qwen3_q4_0.gguf" image.ppm --mmproj "$mmproj" --template chatml --device cpu
refuse 1 'are 51 tokens long, and the context holds 40; give --context or fewer images' $see image.ppm --mmproj "$mmproj" -p "$(cat question)" --context 40 --device cpu
done_here
