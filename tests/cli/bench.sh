# bench.sh: the `heddle bench` commands: the form of their tables and rows, what they refuse, and Ctrl-C. Nothing here depends on
# how long anything takes.
. "$2/tests/cli/lib.sh"
python3 -c '' 2>/dev/null || python() { :; }
short="--samples 3 --seconds 0.01"

# The columns are those of docs/bench.md, in its order.
sed -nE '/^\| column/,/^$/s/^\| (`[^|]*`) \|.*/\1/p' "$sources/docs/bench.md" | tr -d '` ' | tr ',' '\n' >doc.columns

# rows FILE COUNT CODE: a CSV of that heading with so many rows (0: any number but none), of which CODE, in Python, is true for each row r.
rows() {
    python "
import csv
with open('$1', newline='') as f: all = list(csv.DictReader(f, strict=True))
columns = open('doc.columns').read().split()
assert list(all[0]) == columns, (list(all[0]), columns)
assert len(all) == $2 or ($2 == 0 and all), len(all)
for r in all:
    times = [float(r[k]) for k in ('min_ns', 'median_ns', 'p90_ns', 'max_ns')]
    assert times == sorted(times) and float(r['first_ns']) > 0, r
    assert 1 <= int(r['samples']) and r['synthetic'] == '0' and r['flag'] in ('', 'clocks'), r
    for k in ('time', 'heddle', 'machine', 'os', 'device', 'device_name', 'kind', 'backend', 'driver'): assert r[k], (k, r)
    assert $3, r"
}

# threshold: the null device is there on every machine.
expect 0 '^vecadd f32 on null +[0-9a-z,]+ +[0-9a-z,]+  elements$' - "$heddle" bench threshold --op vecadd --max 2048 --devices cpu,null $short --csv a.csv --machine "a, \"b\""
matches out '^ +SIZE +CPU +DEVICE +GAIN +TRANSFERS +GAIN +FIRST RUN$' threshold
matches out '^1,536 ' threshold
rows a.csv 12 "r['bench'] == 'threshold' and r['machine'] == 'a, \"b\"' and int(r['bytes']) == 12 * int(r['elements']) and r['counted'] in ('compute', 'transfers') and r['size'] == 'n=' + r['elements']"
expect 0 '^softmax f16 on null' - "$heddle" bench threshold --op softmax,matmul --types f16,q8_0 --min 256 --max 512 --devices null,cpu $short
matches out '^matmul q8_0 on null +[0-9a-z,]+ +[0-9a-z,]+  rows and columns$' threshold
[ "$(awk 'length > 80' out)" = "" ] || fail "threshold prints lines of more than 80 columns"
expect 0 '^\{"bench": "threshold", .*"synthetic": 0\}$' - "$heddle" bench threshold --op vecadd --max 1024 --devices cpu,null $short --json --csv b.csv
python "
import csv, json
lines = [json.loads(l) for l in open('out')]
with open('b.csv', newline='') as f: rows = list(csv.DictReader(f))
assert len(lines) == len(rows) == 4
for line, row in zip(lines, rows):
    assert list(line) == list(row)
    for k, v in line.items(): assert row[k] == '' if v is None else str(v) == row[k], (k, v, row[k])"

# ops, transfer, batch, llm.
expect 0 '^matmul +f32 +m=64 n=64 k=64 +[0-9.]+ [mun]?s +[0-9.,]+ +[0-9.,]+ +[0-9.]+%$' - \
    "$heddle" bench ops --op vecadd,matmul --types f32 --min 64 --max 64 --devices cpu $short --csv c.csv
matches out '^peaks: copy [0-9.,]+ GB/s, matmul f32 [0-9.,]+ GFLOP/s$' ops
rows c.csv 2 "float(r['peak_bytes_per_s']) > 0 and float(r['peak_flops_per_s']) > 0 and int(r['flops']) == (64 if r['op'] == 'vecadd' else 2 * 64 ** 3)"
expect 0 '^ *4.0 KiB( +[0-9.]+ [mun]?s +[0-9.,]+){4}$' - "$heddle" bench transfer --max 4K --devices cpu $short --csv d.csv
rows d.csv 12 "r['op'] in ('upload', 'upload-pinned', 'download', 'download-pinned') and r['size'] == 'bytes=' + r['bytes'] and r['counted'] == 'transfers'"
expect 0 '^large-mixed +6( +[0-9.]+ [mun]?s){5}$' - "$heddle" bench batch --devices cpu $short --csv e.csv
matches out '^staging memory found made: none asked; 100% of the bytes travelled without it$' batch
matches out '^to 64 Ki +[0-9]+ +[0-9]+ of [0-9]+, [0-9.]+%' batch
matches out '^overhead of same-again: (first run |not told, )' batch # which one hangs on what else the machine does
rows e.csv 45 "r['counted'] in ('compute', 'transfers', 'plan') and (int(r['plan_requests']) > 0) == (r['counted'] == 'plan') and int(r['plan_hits']) <= int(r['plan_requests'])"
expect 0 '^ +tg2 ' - "$heddle" bench llm -p 4 -n 2 -r 2 --csv f.csv
expect 0 '^ +tg2@3 x4 ' - "$heddle" bench llm -p 0 -n 2 -d 0,3 --sequences 1,4 -r 2
expect 0 '^ +tg2@300 x9 ' - "$heddle" bench llm -p 500 -n 2 -d 0,300 --sequences 9 -r 1
refuse 2 '--sequences is up to 16 whole numbers of 1 to 256' "$heddle" bench llm --sequences 1,257
rows f.csv 2 "(r['op'], r['size']) in (('prompt', 'tokens=4 depth=0'), ('answer', 'tokens=2 depth=0')) and int(r['samples']) == 2"

if has_vulkan; then
    expect 0 '^vecadd f32 on vulkan' - "$heddle" bench threshold --op vecadd --min 1024 --max 1024 --devices vulkan,cpu $short --csv g.csv
    rows g.csv 4 "r['kind'] in ('CPU', 'software')"
fi

# A page in the same breath, of the rows that lie beside it.
expect 0 '^vecadd f32 on null' - "$heddle" bench threshold --op vecadd --max 2048 --devices cpu,null $short --html page.html
"$heddle" bench report page.csv -o again.html
cmp -s page.html again.html && cmp -s page.md again.md || fail "the page of --html is not that of its rows"
expect 0 - - "$heddle" bench ops --op vecadd --types f32 --min 64 --max 64 --devices cpu $short --html ops.html --csv named.csv
[ -s ops.html ] && [ -s ops.md ] && [ -s named.csv ] && [ ! -e ops.csv ] || fail "--html beside --csv: not the files that were named"
refuse 1 'no/such/page.csv cannot be written' "$heddle" bench ops --op vecadd --devices cpu $short --html no/such/page.html

# What is refused, before the file is touched where the command line is wrong.
echo kept >kept.csv
refuse 2 'no operation "vecad"; did you mean vecadd\?' "$heddle" bench threshold --op vecad --csv kept.csv
refuse 2 'no operation "frobnicate"; there are vecadd, matmul, ' "$heddle" bench ops --op matmul,frobnicate --csv kept.csv
refuse 2 'no type "f23"; did you mean f32\?' "$heddle" bench ops --types f32,f23 --csv kept.csv
refuse 2 'softmax does not take q4_0' "$heddle" bench ops --op softmax --types q4_0 --csv kept.csv
refuse 2 'matmul takes none of the types' "$heddle" bench ops --op vecadd,matmul --types i32 --csv kept.csv
refuse 2 'leave no size of softmax f32' "$heddle" bench threshold --op softmax --max 100 --csv kept.csv
refuse 2 'leave no size' "$heddle" bench transfer --min 5K --max 6K --csv kept.csv
refuse 2 '--samples is a whole number' "$heddle" bench batch --samples 0 --csv kept.csv
refuse 2 '--seconds is a number' "$heddle" bench batch --seconds nan --csv kept.csv
grep -qx kept kept.csv || fail "a wrong command line overwrote the file"
refuse 2 '--devices names none' "$heddle" bench ops --devices ,
refuse 1 'no device is called "nosuch"' "$heddle" bench transfer --devices cpu,nosuch
refuse 1 'there is no device besides the CPU' "$heddle" bench threshold --devices cpu,cpu
refuse 1 'compares with the CPU' "$heddle" bench threshold --devices null
refuse 1 'no/x.csv cannot be written: No such file' "$heddle" bench ops --csv no/x.csv
[ ! -r /proc/meminfo ] || refuse 1 'vecadd needs [0-9.]+ [GT]iB of memory, and .* are free; give a smaller --max' "$heddle" bench ops --op vecadd --types f32 --max 4294967296 --min 4294967296 --devices null
[ -e /dev/full ] && refuse 1 '/dev/full cannot be written' "$heddle" bench ops --csv /dev/full

# Ctrl-C leaves what was sampled until then.
HEDDLE_BACKEND=cpu timeout --preserve-status -s INT 5 "$heddle" bench transfer --max 4K --samples 100000 --seconds 1000 --csv h.csv >out 2>err
[ $? = 1 ] || fail "Ctrl-C: not exit code 1"
matches err '^heddle bench transfer: ended by Ctrl-C' "Ctrl-C"
matches out '^ *4.0 KiB ' "Ctrl-C"
rows h.csv 0 "int(r['samples']) < 100000"

# At a terminal of 60 columns: how far each is, in lines that fit, and Ctrl-C ends it soon, with its rows and its table.
if "$python3" -c 'import pty' 2>/dev/null; then
    for bench in batch route transfer stream ops threshold llm; do
        other=null
        [ $bench = route ] && has_vulkan && other=vulkan
        devices="--devices cpu,$other --samples 100000 --seconds 0.2"
        [ $bench = llm ] && devices="-r 1000"
        [ $bench = ops ] && devices="$devices --types f32"
        terminal 60 100 'round 2 :' '+0.3:\x03' -- "$heddle" bench $bench $devices --csv i.csv
        [ $got = 1 ] && grep -q 'ended by Ctrl-C' out || fail "bench $bench at a terminal: $got"
        [ "$(cut -d. -f1 err)" -lt 10 ] || fail "bench $bench goes on for $(cat err) s after Ctrl-C"
        tr '\r' '\n' <out | grep '^heddle bench [a-z]*: \(prep\|round\|the peaks\)' | awk 'length > 63' >long
        [ -s long ] && fail "bench $bench: $(head -1 long)"
        case $bench in
        ops | threshold) ;; # one operation after the other: the first may not be done
        *) rows i.csv 0 True ;;
        esac
    done
fi
done_here
