# devices.sh: the lists of back ends and devices, with and without drivers, and what the environment asks for.
. "$2/tests/cli/lib.sh"

expect 0 '^BACK END +BUILT IN +DEVICES' "" "$heddle" devices
grep -qE '^ +0 +cpu +[^ ].* CPU +[0-9.]+ [GT]iB' out || fail "the CPU is not the best device beside a software driver"
expect 0 '^  max_push_bytes +[0-9]+$' "" "$heddle" devices -v
for mode in exact fast; do matches out "^  f32 in $mode mode +rounds to nearest even, subnormals (kept|taken as 0|made 0|taken as 0 and made 0), -0 kept$" devices; done
matches out '^  f32 in exact mode +rounds to nearest even, subnormals kept, -0 kept$' devices
matches out '^  memory taken now, heap 0 +[0-9.]+ [KMG]iB of [0-9.]+ [GT]iB of its own, by this process; [0-9.]+ [GT]iB may be$' devices
expect 0 '^max_push_bytes [0-9]+$' "" "$heddle" devices --caps cpu
refuse 1 'no device is called "nosuch"; there are: .*cpu' "$heddle" devices --caps nosuch

expect 0 '"backends"' "" "$heddle" devices --json -v
if python3 -c '' 2>/dev/null; then
    python '
import json
all = json.load(open("out"))
assert [b["name"] for b in all["backends"]] == ["vulkan", "cuda", "hip", "opencl", "levelzero", "webgpu", "cpu", "null"], all["backends"]
assert [d["rank"] for d in all["devices"]] == list(range(len(all["devices"])))
cpu = next(d for d in all["devices"] if d["id"] == "cpu")
assert cpu["kind"] == "CPU" and not cpu["software"] and cpu["memory_bytes"] > 0 and cpu["caps"]["max_push_bytes"] >= 128
heap, = cpu["heaps"]
assert heap["used_by"] == "this process" and heap["local"] and 0 < heap["used_bytes"] < heap["budget_bytes"], heap'
fi

if has_vulkan; then
    expect 0 'software \*' "" "$heddle" devices
    matches out '^\* a GPU driver that computes on the CPU' devices
fi
# No driver: the reason stands beside the name, the mend below it.
expect 0 '^vulkan +(yes +0 +[^ ]|no)' "" env VK_DRIVER_FILES=/nonexistent VK_ICD_FILENAMES=/nonexistent "$heddle" devices
grep -qE '^ {20,}[^ ]' out || fail "no mend below the reason"

# A user whom the system does not know, as in containers: Level Zero's loader is not asked.
if [ "$(id -u)" = 0 ] && "$heddle" devices | grep -q '^levelzero .*no driver with a GPU' &&
    "$python3" -c 'import os, sys; os.setuid(54321); sys.exit(not os.access(sys.argv[1], os.X_OK))' "$heddle"; then
    expect 0 '^levelzero .*HOME is not set' "" "$python3" -c '
import os, sys
os.environ.pop("HOME", None)
os.setuid(54321)
os.execv(sys.argv[1], sys.argv[1:])' "$heddle" devices
fi

# The stand-in for GPUs is one to CUDA and to HIP.
if [ -e "$standin/libcuda.so.1" ]; then
    mkdir measured
    stand_in="env LD_LIBRARY_PATH=$standin HEDDLE_CACHE=$PWD/measured HEDDLE_VERIFY=0"
    expect 0 '^One GPU, at 0000:01:00.0: cuda:[0-9a-f]{8}, hip:[0-9a-f]{8}; in the order of the back ends, ' "" $stand_in "$heddle" devices
    expect 0 '^One GPU, at 0000:01:00.0: (cuda|hip):[0-9a-f]{8} \([0-9.]+ [mu]?s\), (cuda|hip):[0-9a-f]{8} \([0-9.]+ [mu]?s\); in the order measured$' \
        '^heddle: hip:[0-9a-f]{8}: .* for 1,024 small steps' $stand_in "$heddle" devices --probe
    grep '^One GPU' out >routes
    first=$(sed -E 's/^One GPU, at [^ ]+ ([^ ]+) .*/\1/' routes)
    expect 0 "^   1  $first" "" $stand_in "$heddle" devices # another process finds the times; the CPU is faster than its stand-in
    grep -qxF "$(cat routes)" out || fail "the times that were kept are others"
    for file in measured/facts-*; do echo "1 ns" >"$file"; done
    expect 0 'in the order of the back ends' "" $stand_in "$heddle" devices # what is damaged is nothing
fi
# The figure and what finding it took, which later processes find: each device is measured, software too.
mkdir probed
expect 0 '^As measured, the fastest first: cpu \([0-9.]+ [mu]?s\)' \
    '^heddle: cpu: [0-9.]+ [mu]?s for 1,024 small steps, 64 MiB and, by smaller ones, a product of 4,096; found in [0-9.]+ m?s$' \
    env HEDDLE_CACHE="$PWD/probed" "$heddle" devices --probe
grep '^As measured' out >order
expect 0 '^   0  cpu' "" env HEDDLE_CACHE="$PWD/probed" "$heddle" devices
grep -qxF "$(cat order)" out || fail "the order that was kept is another one"

expect 0 '^   0  cpu' "" env HEDDLE_BACKEND=cpu "$heddle" devices
matches out '^vulkan +(yes|no) +0 +not ' "HEDDLE_BACKEND=cpu"
refuse 1 'no back end is called "nosuch": there are vulkan, cuda, hip, opencl, levelzero, webgpu, cpu' env HEDDLE_BACKEND=nosuch "$heddle" devices
refuse 1 'HEDDLE_STRICT is 0 or 1' env HEDDLE_STRICT=perhaps "$heddle" devices
refuse 1 'HEDDLE_LOG is error' env HEDDLE_LOG=loud "$heddle" devices
done_here
