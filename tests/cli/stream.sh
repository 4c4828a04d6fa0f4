# stream.sh: `heddle bench stream` and --trace: the form of the table, the rows and the trace, and what they refuse. Nothing here
# depends on how long anything takes.
. "$2/tests/cli/lib.sh"
python3 -c '' 2>/dev/null || python() { :; }
short="--samples 3 --seconds 0.01 --bytes 64K --batches 5"

# trace FILE DEVICES: a trace whose events lie on named rows, each with a time, the runs of a device one after the other.
trace() {
    python "
import json
events = json.load(open('$1'))['traceEvents']
names = {(e['pid'], e['tid']): e['args']['name'] for e in events if e['ph'] == 'M' and e['name'] == 'thread_name'}
devices = {e['pid']: e['args']['name'] for e in events if e['ph'] == 'M' and e['name'] == 'process_name'}
spans = [e for e in events if e['ph'] == 'X']
assert len(devices) == $2 and len(spans) + len(names) + len(devices) == len(events) and spans, events
for e in spans:
    assert names[e['pid'], e['tid']] == e['cat'] and e['pid'] in devices and e['args']['clock'] in ('device', 'host'), e
    assert e['ts'] >= 0 and e['dur'] >= 0 and e['name'], e
assert set(names.values()) <= {'host', 'upload', 'compute', 'download', 'queue'} and 'host' in names.values(), names
assert [e['ts'] for e in spans] == sorted(e['ts'] for e in spans)
for d in devices: assert [e for e in spans if e['pid'] == d and e['name'] == 'run'], d"
}

expect 0 '^cpu: copy; a batch of 64.0 KiB, depth 3, 1 queue$' - "$heddle" bench stream --devices cpu $short --csv a.csv --trace a.json
matches out '^MEMORY +ONE +OVERLAPPED +GAIN +GB/S +SPREAD$' stream
matches out '^pinned +[0-9.]+ [mun]?s +[0-9.]+ [mun]?s +[0-9.]+x +[0-9.,]+ +[0-9]+%$' stream
trace a.json 1
python "
import csv
rows = list(csv.DictReader(open('a.csv', newline='')))
assert [r['size'] for r in rows] == ['bytes=65536 memory=' + s for s in ('plan depth=1', 'host depth=1', 'host depth=3', 'pinned depth=1', 'pinned depth=3')], rows
for r in rows: assert r['bench'] == 'stream' and r['op'] == 'copy' and r['counted'] == 'transfers' and r['submissions'] == '5' and float(r['bytes']) == 2 * 5 * 65536, r"
expect 0 '^ +1 .* 1.00x .* 1.00x$' - "$heddle" bench stream --devices cpu --sweep --depth 4 $short --csv s.csv
matches out '^DEPTH +HOST +GAIN +PINNED +GAIN$' stream
matches out '^ +4 +[0-9.]+ [mun]?s +[0-9.]+x +[0-9.]+ [mun]?s +[0-9.]+x$' stream
python "
import csv
rows = list(csv.DictReader(open('s.csv', newline='')))
assert [r['size'].split('=')[-1] for r in rows] == list('112341234'), rows"
for op in vecadd matmul; do expect 0 "^cpu: $op; a batch" - "$heddle" bench stream --devices cpu --op $op --depth 5 $short; done
if has_vulkan; then
    expect 0 '^vulkan: vecadd' - "$heddle" bench stream --devices vulkan,cpu --op vecadd --depth 8 $short --trace b.json
    trace b.json 2
    HEDDLE_QUEUES=1 "$heddle" bench stream --devices vulkan $short >out 2>err || fail "one queue"
    matches out ', 1 queue$' "one queue"
fi

refuse 2 '--op is copy, vecadd or matmul, not "sum"' "$heddle" bench stream --op sum
refuse 2 '--depth is a whole number' "$heddle" bench stream --depth 9
refuse 2 '--bytes is 8K to 4G' "$heddle" bench stream --bytes 4K
expect 1 - 'a.json: the trace cannot be written' "$heddle" bench stream --devices cpu $short --trace /nosuch/a.json
refuse 1 'HEDDLE_QUEUES is 1 or 3' env HEDDLE_QUEUES=7 "$heddle" devices
done_here
