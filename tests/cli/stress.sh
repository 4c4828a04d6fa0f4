# stress.sh: work with known results: right on each device, wrong and lost where that is made to be; where NaN come from; what lies
# on a device; counters as Prometheus reads them.
. "$2/tests/cli/lib.sh"

quick="$heddle stress --size 64 --memory 8M --seconds 1"
expect 0 '^[0-9.]+ s on cpu: [1-9][0-9]* runs of 64 x 64 compared bit by bit, 0 wrong; [1-9][0-9]* patterns .* 0 wrong; 0 errors, 0 losses$' '^heddle: device: ' \
    $quick --device cpu --metrics m.txt
matches out '^memory: as much in the end as at first$' stress
matches out '^ +[0-9.]+ +[0-9]+ +[0-9.]+ +0 +0 +0 +[0-9.]+ MiB' stress
matches m.txt '^heddle_device_runs_total[{]device="cpu"[}] [1-9][0-9]*$' metrics
matches m.txt '^heddle_device_held_bytes[{]device="cpu",kind="buffer"[}] 8388608$' metrics
# Calls are counted from each opening on, so that it is lost again and again.
expect 1 ' 0 wrong; [1-9][0-9]* errors, [1-9][0-9]* losses$' 'after 3 runs: device-lost: submit number 5 fails, as HEDDLE_FAULT asks' \
    env HEDDLE_FAULT=submit:5:device-lost,submit:3:queue $quick --device cpu
matches err 'after 2 runs: queue: ' stress
expect 1 '"losses": [1-9]' - env HEDDLE_FAULT=submit:5:device-lost $quick --device cpu --json
expect 1 ' 0 losses$' 'memory' env HEDDLE_FAULT=wait:2+:out-of-host-memory $quick --device cpu
refuse 2 'size is a multiple of 32' "$heddle" stress --size 33
refuse 2 'memory' "$heddle" stress --memory much
refuse 1 'HEDDLE_FAULT is a list of CALL:N:STATUS' env HEDDLE_FAULT=submit:1:lost $quick
refuse 1 'strict mode takes no faults' env HEDDLE_FAULT=submit:1:queue HEDDLE_STRICT=1 $quick --device cpu
refuse 1 'HEDDLE_FIND_NAN is 0, 1 or 2' env HEDDLE_FIND_NAN=yes $quick
if has_vulkan; then expect 0 ' 0 wrong; 0 errors, 0 losses$' - $quick --device vulkan; fi

# Ctrl-C ends it with the report.
"$heddle" stress --size 64 --device cpu --seconds 100 >out 2>err &
sleep 2
kill -INT $!
wait $! || fail "Ctrl-C: exit code $?"
matches out '^[0-9.]+ s on cpu: [1-9]' "Ctrl-C"

if "$python3" -c 'import numpy' 2>/dev/null; then
    printf 'heddle 1\nv1 = input f32[4] "x"\nv2 = log v1\nv3 = softmax v2 axis=0\noutput v3 "y"\n' >p.hd
    python 'import numpy as np; np.save("x.npy", np.array([1, -1, 2, 3], "<f4"))'
    run="$heddle run p.hd --device cpu --in x=x.npy"
    expect 0 'nan' - $run
    refuse 1 'not-finite in log: v2, log f32\[4\], is the first to hold a NaN .*1 NaN and 0 infinities of 4 elements, the first at \[1\]' \
        env HEDDLE_FIND_NAN=1 $run
    expect 0 '^x +input +cpu +in place +1 +16 B$' - $run --held --metrics n.txt
    matches n.txt '^heddle_failures_total 0$' metrics
    expect 0 '"kind": "input"' - $run --held --json
fi
expect 0 - - "$heddle" generate -p "In the" -n 2 --device cpu --metrics g.txt
matches g.txt '^heddle_device_held_bytes[{]device="cpu",kind="buffer"[}] [1-9]' metrics
done_here
