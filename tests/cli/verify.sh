# verify.sh: all kernels of the CPU on known answers, as a table and as JSON.
. "$2/tests/cli/lib.sh"

expect 0 '^[0-9]+ variants, [0-9]+ answers, 0 wrong, in ' '^heddle: device: ' "$heddle" verify --device cpu
matches out '^matvec +q4_0 +fast +[1-9][0-9]* +[01][.][0-9]+ +right' verify
matches out '^arithmetic +f32 +exact +1 +0[.]000 +right' verify
expect 0 '"wrong": 0' '^heddle: device: ' "$heddle" verify --device cpu --json
if python3 -c '' 2>/dev/null; then
    python '
import json
report = json.load(open("out"))
assert report["device"] == "cpu" and len(report["verdicts"]) > 200
assert all(not v["wrong"] and v["answers"] > 0 and v["error_of_bound"] <= 1 for v in report["verdicts"])'
fi
# Functions against those of the C library: sums are as near as they can be, no function is further than its bound.
expect 0 '^add +0[.][0-9]+ ' '^heddle: device: ' "$heddle" verify --device cpu --errors
matches out '^exp +[0-9.]+ +[-0-9.e]+ +[0-9.e+-]+ +[-0-9.]+ +[0-3][.]' "verify --errors"
expect 0 '"ulp"' '^heddle: device: ' "$heddle" verify --device cpu --errors --json
if python3 -c '' 2>/dev/null; then
    python '
import json
rows = json.load(open("out"))["errors"]
worst = {(r["function"], r["math"]): r["ulp"] for r in rows}
bound = {"add": 0.5, "sub": 0.5, "mul": 0.5, "div": 3, "sqrt": 3, "erf": 4, "relu": 0, "leaky_relu": 0.5, "clip": 0, "round": 0, "floor": 0}
assert len(worst) == len(rows) == 42
for (name, math), ulp in worst.items(): assert ulp <= bound.get(name, ulp), (name, math, ulp)
assert worst["exp", "exact"] <= 3, worst'
fi
refuse 1 'HEDDLE_CPU is portable, dotprod, avx2,' env HEDDLE_CPU=mmx "$heddle" verify --device cpu
expect 0 '128-bit vectors' - env HEDDLE_CPU=portable "$heddle" devices --json
refuse 1 'HEDDLE_VERIFY is 0, 1 or 2' env HEDDLE_VERIFY=3 "$heddle" verify --device cpu
done_here
