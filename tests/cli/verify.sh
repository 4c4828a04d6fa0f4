# verify.sh: all kernels of the CPU on known answers, as a table and as JSON.
. "$2/tests/cli/lib.sh"

expect 0 '^[0-9]+ variants, [0-9]+ answers, 0 wrong, in ' "" "$heddle" verify --device cpu
matches out '^matvec +q4_0 +fast +[1-9][0-9]* +[01][.][0-9]+ +right' verify
matches out '^arithmetic +f32 +exact +1 +0[.]000 +right' verify
expect 0 '"wrong": 0' "" "$heddle" verify --device cpu --json
if python3 -c '' 2>/dev/null; then
    python '
import json
all = json.load(open("out"))
assert all["device"] == "cpu" and len(all["verdicts"]) > 200 and not any(v["wrong"] for v in all["verdicts"])
assert all(v["answers"] > 0 and v["error_of_bound"] <= 1 for v in all["verdicts"])'
fi
refuse 1 'HEDDLE_VERIFY is 0, 1 or 2' env HEDDLE_VERIFY=3 "$heddle" verify --device cpu
done_here
