# receipt.sh: receipts of runs and answers are confirmed on every device in exact mode; one changed byte is not.
. "$2/tests/cli/lib.sh"
needs_numpy

printf 'heddle 1\nx = input f32[32,64] "x"\nw = input f32[64,48] "w"\nm = matmul x w\ny = softmax m axis=1\nr = relu m\noutput y "y"\noutput r "r"\n' >p.hd
python 'import numpy as np; r = np.random.default_rng(3); np.save("x.npy", r.standard_normal((32, 64)).astype("<f4")); np.save("w.npy", r.standard_normal((64, 48)).astype("<f4"))'
expect 0 '^y +f32' - "$heddle" run p.hd --in x=x.npy --in w=w.npy --out y=y.npy --math exact --receipt r.json
python '
import json
r = json.load(open("r.json"))
assert [r["command"], *r["arguments"], r["math"]] == "run p.hd --in x=x.npy --in w=w.npy --math exact exact".split(), r
assert r["kernels"] and [e["name"] for e in r["inputs"] + r["outputs"]] == ["program", "x", "w", "y", "r"], r'
for file in p.hd x.npy w.npy; do grep -q "\"$(sha256sum $file | cut -d' ' -f1)\"" r.json || fail "the hash of $file is not sha256sum's"; done
# The kernels by what names their SPIR-V: the same ones on each driver.
same_kernels() { # device, and what stands before the command
    device=$1
    shift
    expect 0 '^y +f32' - "$@" "$heddle" run p.hd --in x=x.npy --in w=w.npy --math exact --device "$device" --receipt "$device.json"
    python "
import json
one, other = (json.load(open(f))['kernels'] for f in ('r.json', '$device.json'))
assert one == other and len(one) == 3 and all(len(k['module']) == 16 for k in one), (one, other)"
    expect 0 '^equal: 2 of 2' - "$heddle" confirm "$device.json" --device cpu
}
has_vulkan && same_kernels vulkan env
"$heddle" devices 2>/dev/null | grep -q ' opencl:' && same_kernels opencl env
[ -e "$standin/libcuda.so.1" ] && same_kernels cuda env LD_LIBRARY_PATH="$standin" HEDDLE_VERIFY=0
rm y.npy
expect 0 '^equal: 2 of 2 outputs are those of the receipt, to the byte' - "$heddle" confirm r.json
[ ! -e y.npy ] || fail "confirming wrote an output"
has_vulkan && expect 0 '^equal: 2 of 2 .* done again on llvmpipe' - "$heddle" confirm r.json --device vulkan
"$heddle" explain p.hd --math exact --save p.plan >explained 2>&1
expect 0 - - "$heddle" run p.plan --in x=x.npy --in w=w.npy --receipt plan.json
grep -q '"exact"' plan.json || fail "a saved plan's receipt tells of other arithmetic"
expect 0 '^equal: 2 of 2' - "$heddle" confirm plan.json

# One changed byte.
cp x.npy kept.npy
printf '\001' | dd of=x.npy bs=1 seek=400 conv=notrunc 2>dd.log
refuse 1 'input "x", x.npy is not what the receipt was made from' "$heddle" confirm r.json
sed "s/$(sha256sum kept.npy | cut -d' ' -f1)/$(sha256sum x.npy | cut -d' ' -f1)/" r.json >forged.json
expect 1 '^y: differs, first in part 3 of 64 of its 6144 bytes$' - "$heddle" confirm forged.json
matches out '^not equal: 0 of 2' "what a changed input gives"
rm x.npy
refuse 1 'x.npy cannot be opened|x.npy cannot be read' "$heddle" confirm r.json
mv kept.npy x.npy

# Answers of a model.
expect 0 - - "$heddle" generate -p 'And the king' -n 24 --seed 5 --math exact --receipt g.json
expect 0 '^equal: 2 of 2' - "$heddle" confirm g.json
has_vulkan && expect 0 '^equal: 2 of 2' - "$heddle" confirm g.json --device vulkan
python 'import json; r = json.load(open("g.json")); t = r["outputs"][0]; t["numbers"][9] += 1; t["sha256"] = "0"; json.dump(r, open("g.json", "w"))'
expect 1 '^tokens: differs from number 10 of 24 on$' - "$heddle" confirm g.json
echo 'In those days' >prompt
"$heddle" generate -n 8 --seed random --math exact --receipt g.json <prompt >piped 2>err || fail "a prompt from standard input"
expect 0 '^equal: 2 of 2' - "$heddle" confirm g.json
expect 0 - - "$heddle" generate --tokens 5,6,7 -n 8 --receipt g.json --math exact
expect 0 '^equal: 2 of 2' - "$heddle" confirm g.json
expect 0 - - "$heddle" generate -p In -n 4 --math exact --receipt g.json --metrics m.txt --prompt-cache in.session
rm m.txt in.session
expect 0 '^equal: 2 of 2' - "$heddle" confirm g.json
[ ! -e m.txt ] && [ ! -e in.session ] || fail "confirm writes files"

# Receipts from strangers.
echo '{' >bad.json && refuse 1 'bad.json cannot be read as JSON' "$heddle" confirm bad.json
echo '{"receipt": 2}' >bad.json && refuse 1 'bad.json is no receipt' "$heddle" confirm bad.json
echo '{"receipt": 1}' >bad.json && refuse 1 'no list "inputs"' "$heddle" confirm bad.json
forged() { python "import json; r = json.load(open('r.json')); $1; json.dump(r, open('bad.json', 'w'))"; }
forged 'r["command"] = "tune"' && refuse 1 'of no command that can be confirmed' "$heddle" confirm bad.json
forged 'r["arguments"] += ["--out", "y=stolen.npy"]' && refuse 1 'arguments do not hold --out' "$heddle" confirm bad.json
forged 'r["arguments"] += ["--trace=stolen.json"]' && refuse 1 'arguments do not hold --trace' "$heddle" confirm bad.json
forged 'r["arguments"] += ["--metrics=stolen"]' && refuse 1 'arguments do not hold --metrics' "$heddle" confirm bad.json
forged 'r["command"] = "generate"; r["arguments"] = ["--prompt-cache", "stolen"]' && refuse 1 'do not hold --prompt-cache' "$heddle" confirm bad.json
forged 'r["arguments"] += [7]' && refuse 1 'arguments do not hold such a value' "$heddle" confirm bad.json
forged 'r["arguments"] += ["--nonsense"]' && refuse 2 'no option --nonsense' "$heddle" confirm bad.json
forged 'r["arguments"] += ["x"] * 300' && refuse 1 'too many arguments' "$heddle" confirm bad.json
forged 'r["outputs"] = []' && expect 1 '^not equal: 0 of 0' - "$heddle" confirm bad.json
refuse 1 'nosuch.json cannot be read' "$heddle" confirm nosuch.json
refuse 1 '/nosuch/r.json cannot be written' "$heddle" run p.hd --in x=x.npy --in w=w.npy --receipt /nosuch/r.json

done_here
