# run.sh: programs on files: results as NumPy sees them, every wrong input, choosing devices.
. "$2/tests/cli/lib.sh"
needs_numpy

cat >p.hd <<'END'
heddle 1
v1 = input f32[4,256] "x"
v2 = input f32[256,8] "w"
v3 = input f32[8] "b=c"
v4 = matmul v1 v2
v5 = add v4 v3
v6 = relu v5
output v6 "y"
END
python '
import numpy as np
r = np.random.default_rng(7)
x, w = r.standard_normal((4, 256)).astype("<f4"), r.standard_normal((256, 8)).astype("<f4")
np.save("x.npy", x); np.save("w.npy", w); np.save("b.npy", np.arange(8, dtype="<f4"))
np.save("w_fortran.npy", np.asfortranarray(w)); np.save("w_big.npy", w.astype(">f4")); np.save("w_f8.npy", w.astype("<f8"))
open("cut.npy", "wb").write(open("w.npy", "rb").read()[:-1]); open("none.npy", "wb")'
check='
import numpy as np
y = np.load("y.npy"); r = np.maximum(np.load("x.npy") @ np.load("w.npy") + np.load("b.npy"), 0)
assert y.shape == (4, 8) and y.dtype == np.float32 and abs(y - r).max() < 1e-4, abs(y - r).max()'

run="$heddle run p.hd --in x=x.npy --in b=c=b.npy"
expect 0 '^y +f32\[4,8\] .* -> y.npy$' '^heddle: device: requested=best .*selected=cpu because=' $run --in w=w.npy --out y=y.npy
[ "$(wc -l <err)" = 1 ] || fail "more than the start-up line on stderr"
python "$check"
rm y.npy
expect 0 '^later runs +median .* of 4; 0 commands recorded, 0 kernels compiled' - $run --in=w=w_fortran.npy --out=y=y.npy --repeat=5 --math=exact --timings
matches out '^DISPATCH +KERNEL +TIME +GB/s +GFLOP/s +FLOP/B$' "--timings"
matches out '^last run [0-9.]+ [mun]?s: handed over in [0-9.]+ [mun]?s, waited for [0-9.]+ [mun]?s$' "--timings"
python "$check"
expect 0 '^y +f32' - $run --in w=w.npy --repeat 3 --trace t.json
python '
import json
e = json.load(open("t.json"))["traceEvents"]
assert sum(x["name"] == "run" for x in e) == 3 and sum(x["name"] == "thread_name" for x in e) == 2, e'
expect 0 '^y +f32' - $run --in w=w.npy --repeat 2 --timings --trace t.json
python '
import json
e = json.load(open("t.json"))["traceEvents"]
operations = [x for x in e if x.get("cat") == "operations"]
last = [x for x in e if x["name"] == "run"][-1]
assert operations and operations[0]["ts"] == last["ts"] and all(x["dur"] >= 0 and x["name"] for x in operations), e
assert all(b["ts"] >= a["ts"] for a, b in zip(operations, operations[1:])), e'
expect 0 '"outputs"' - $run --in w=w.npy --json --repeat 3 --timings
python '
import json
r = json.load(open("out"))
assert r["device"]["id"] == "cpu" and r["counters"]["submissions"] == 3 and r["times_ms"]["later_runs"] == 2 and r["times_ms"]["min"] <= r["times_ms"]["max"]
assert r["outputs"][0]["shape"] == [4, 8] and len(r["outputs"][0]["first_values"]) == 8 and r["outputs"][0]["file"] is None and r["timings"]'

"$heddle" explain p.hd --math exact --save p.plan >/dev/null 2>&1
expect 0 '^y +f32\[4,8\] .* -> y.npy$' 'selected=cpu' "$heddle" run p.plan --in x=x.npy --in b=c=b.npy --in w=w.npy --out y=y.npy --timings
python "$check"
refuse 2 'a saved plan has its own devices, route and arithmetic' "$heddle" run p.plan --math exact
sed 's/relu/silu/' p.plan >changed.plan
refuse 1 'its text was changed' "$heddle" run changed.plan --in x=x.npy --in b=c=b.npy --in w=w.npy
sed '/^device/,$d' p.plan >cut.plan
refuse 1 'cut.plan: parse' "$heddle" run cut.plan
if has_vulkan; then
    "$heddle" explain p.hd --device vulkan --route matmul=cpu --save two.plan >/dev/null 2>&1
    expect 0 '^y +f32' - "$heddle" run two.plan --in x=x.npy --in b=c=b.npy --in w=w.npy --out y=y.npy
    python "$check"
fi

refuse 1 'input "w" is missing: f32\[256,8\], 8192 bytes; add --in w=FILE.npy' $run
refuse 1 'input "w" is f32\[256,8\], and x.npy has the shape \[4,256\]; ' $run --in w=x.npy
refuse 1 "input \"w\" is f32\[256,8\], and w_f8.npy holds f8\[256,8\]; convert it with .astype\('<f4'\)" $run --in w=w_f8.npy
refuse 1 'w_big.npy is big-endian' $run --in w=w_big.npy
refuse 1 'cut.npy holds 8191 bytes of data where its header says 8192' $run --in w=cut.npy
refuse 1 'none.npy is no .npy file' $run --in w=none.npy
refuse 1 'missing.npy cannot be opened: No such file' $run --in w=missing.npy
refuse 1 'input "x": missing.npy cannot be opened' "$heddle" run p.hd --in x=missing.npy # others were not named, too
refuse 1 'no input "ww"; it has: x, w, b=c' $run --in ww=w.npy
refuse 1 'no input "b"; ' $run --in b=w.npy
refuse 1 'no output "z"' $run --in w=w.npy --out z=z.npy
refuse 2 '--in names "w" twice' $run --in w=w.npy --in w=w.npy
refuse 2 '--in w lacks its file' $run --in w
refuse 2 '--in w= lacks its file' $run --in w=
refuse 2 '--repeat is a whole number of 1 to 1000000, not "0"' $run --repeat 0
refuse 2 '--math is exact or fast, not "quick"' $run --math quick
refuse 1 'no device is called "nosuch"' $run --in w=w.npy --device nosuch
refuse 1 'y.npy cannot be made' $run --in w=w.npy --out y=/nonexistent/y.npy
refuse 1 'nosuch.hd cannot be read' "$heddle" run nosuch.hd
printf 'heddle 1\nv1 = fold "x"\n' >bad.hd
refuse 1 'bad.hd: parse: line 2.*fold' "$heddle" run bad.hd
head -c 300 /dev/zero >zero.hd
refuse 1 'zero.hd: parse' "$heddle" run zero.hd

# Raw bytes: bf16 as u2, blocks of q4_0 as u1; each type as an output.
cat >types.hd <<'END'
heddle 1
v1 = input bf16[2,32] "a"
v2 = input q4_0[8,32] "q"
v3 = cast v1 dtype=f32
v4 = matmul v3 v2 transpose_b
v5 = cast v4 dtype=i32
v6 = cast v3 dtype=f16
output v1 "same"
output v4 "f"
output v5 "i"
output v6 "h"
END
python '
import numpy as np
a = np.arange(-32, 32, dtype="<f4").reshape(2, 32); a[:, 0] = -127 # the 8 bits of exact products hold these as they are
np.save("a.npy", (a.view("<u4") >> 16).astype("<u2"))
q = np.zeros((8, 18), "u1"); q[:, :2] = np.frombuffer(np.float16(0.5).tobytes(), "u1"); q[:, 2:] = 0x99
np.save("q.npy", q); np.save("q_short.npy", q[:4])'
expect 0 '^f +f32\[2,8\]' - "$heddle" run types.hd --math exact --in a=a.npy --in q=q.npy --out same=s.npy --out f=f.npy --out i=i.npy --out h=h.npy
python '
import numpy as np
a = np.arange(-32, 32, dtype="<f4").reshape(2, 32); a[:, 0] = -127 # the 8 bits of exact products hold these as they are
assert (np.load("s.npy") == np.load("a.npy")).all() and np.load("s.npy").dtype == np.uint16
assert (np.load("h.npy") == a.astype("<f2")).all() and np.load("h.npy").dtype == np.float16
f = np.repeat(a.sum(1, keepdims=True) * 0.5, 8, 1)
assert (np.load("f.npy") == f).all() and (np.load("i.npy") == f.astype("<i4")).all() and np.load("i.npy").dtype == np.int32'
cat >whole.hd <<'END'
heddle 1
v1 = input f32[5,3] "table"
v2 = input i64[4] "at"
v3 = gather v1 v2
v4 = input i8[4] "small"
v5 = cast v4 dtype=i64
v6 = add v5 v2
v7 = cast v4 dtype=u32
v8 = cast v7 dtype=i8
output v3 "rows"
output v6 "sum"
output v7 "held"
output v8 "again"
END
python '
import numpy as np
np.save("table.npy", np.arange(15, dtype="<f4").reshape(5, 3)); np.save("at.npy", np.array([4, -1, 2**40, 2], "<i8"))
np.save("small.npy", np.array([-5, 7, 127, -128], "i1")); np.save("at4.npy", np.array([4, -1, 3, 2], "<i4"))'
expect 0 '^rows +f32\[4,3\] +12 13 14 0 0 0 0 0' - "$heddle" run whole.hd --in table=table.npy --in at=at.npy --in small=small.npy \
    --out sum=sum.npy --out held=held.npy --out again=again.npy
python '
import numpy as np
for name, wanted, kind in (("sum", [-1, 6, 2**40 + 127, -126], "<i8"), ("held", [0, 7, 127, 0], "<u4"), ("again", [0, 7, 127, 0], "|i1")):
    got = np.load(name + ".npy")
    assert got.tolist() == wanted and got.dtype.str == kind, got'
refuse 1 "input \"at\" is i64\[4\], and at4.npy holds i4\[4\]; convert it with .astype\('<i8'\)" "$heddle" run whole.hd --in table=table.npy --in at=at4.npy --in small=small.npy
refuse 1 'input "q" is q4_0\[8,32\], 144 bytes, and q_short.npy holds 72; give its raw bytes' "$heddle" run types.hd --in a=a.npy --in q=q_short.npy
refuse 1 "input \"q\" is q4_0\[8,32\], and x.npy holds f4\[4,256\]; give its raw bytes" "$heddle" run types.hd --in a=a.npy --in q=x.npy

if has_vulkan; then
    expect 0 '^device +vulkan:' 'selected=vulkan:.*warning="a software driver' $run --in w=w.npy --out y=y.npy --device vulkan
    [ "$(grep -c 'selected=' err)" = 1 ] || fail "the start-up line stands twice"
    python "$check"
    refuse 1 'strict mode|no real device' env HEDDLE_STRICT=1 HEDDLE_BACKEND=vulkan $run --in w=w.npy
    refuse 1 'strict: ' env HEDDLE_STRICT=1 $run --in w=w.npy --device vulkan
    rm y.npy
    expect 0 '^segments +3; 256 B cross between the devices in a run$' - $run --in w=w.npy --out y=y.npy --device vulkan --route add=cpu,rest=gpu --repeat 3 --timings
    matches out '^later runs .* 0 commands recorded' "a routed run is a replay"
    python "$check"
    rm y.npy
    expect 0 '^segments +2; ' - $run --in w=w.npy --out y=y.npy --device vulkan --route rest=25%
    python "$check"
    refuse 2 "a share is 1% to 99%" $run --in w=w.npy --device vulkan --route add=0%
    expect 0 '"segments": 2' - $run --in w=w.npy --device vulkan --route v4=gpu,rest=cpu --json
    expect 0 '^route +predicted .* with inputs and outputs moved; all on the better device ' - $run --in w=w.npy --out y=y.npy --device vulkan --route auto --repeat 3
    python "$check"
    expect 0 '^device +vulkan' - $run --in w=w.npy --device vulkan --route gpu
    expect 0 '^device +cpu' - $run --in w=w.npy --device vulkan --route cpu
    expect 1 "" 'parse: route: byte 1: here stands an operation' $run --in w=w.npy --device vulkan --route matmull=gpu
fi
expect 0 '^device +cpu' '^heddle: --route add=gpu: the device is cpu, and no GPU: everything runs there$' $run --in w=w.npy --route add=gpu
refuse 1 '--route gpu: the device is cpu, and no GPU; ' env HEDDLE_STRICT=1 $run --in w=w.npy --route gpu
refuse 2 '--route is auto, cpu, gpu, or a list' $run --in w=w.npy --route add=beside
refuse 2 '--route is auto, cpu, gpu, or a list' $run --in w=w.npy --route fast
refuse 2 '--route is auto, cpu, gpu, or a list' $run --in w=w.npy --route add=gpu,
expect 0 '^device +cpu' 'selected=cpu' env VK_DRIVER_FILES=/nonexistent VK_ICD_FILENAMES=/nonexistent $run --in w=w.npy
expect 0 '^device +cpu' 'selected=cpu' env HEDDLE_STRICT=1 $run --in w=w.npy
refuse 1 'strict mode takes no software or null device' env HEDDLE_STRICT=1 $run --in w=w.npy --device null
refuse 1 'vulkan has no device: .*; apt install ' env VK_DRIVER_FILES=/nonexistent VK_ICD_FILENAMES=/nonexistent $run --in w=w.npy --device vulkan
expect 0 '^device' '^heddle: info: device: requested=' env HEDDLE_LOG=info $run --in w=w.npy
$run --in w=w.npy --out y=y.npy >&- 2>err
[ $? = 1 ] || fail "run with a closed stdout: not exit code 1"
python "$check"
done_here
