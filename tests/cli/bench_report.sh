# bench_report.sh: measurements as a page: its numbers are the files', nothing of a file's becomes markup, synthetic rows never win,
# and files that are no measurements are refused in one line.
. "$2/tests/cli/lib.sh"

loom=$sources/tests/cli/bench/loom.csv small=$sources/tests/cli/bench/small.csv
check() { "$python3" "$sources/tests/cli/bench_report.py" "$@" >checked 2>&1 || { fail "the report of $*"; cat checked; }; }

expect 0 "" "" "$heddle" bench report "$loom" "$small" -o report.html
[ -s report.html ] && [ -s report.md ] || fail "no report.html or no report.md"
check report.html report.md "$loom" "$small"
expect 0 "" "" "$heddle" bench report "$small" "$loom" -o again.html
cmp -s report.html again.html || fail "the order of the files changes the page"
expect 0 "" "" "$heddle" bench report "$loom" -o page
[ -s page ] && [ -s page.md ] || fail "-o without .html: no page or no page.md"

# Files are refused whole, and by line.
head=$(head -n 1 "$loom")
refuse 2 'needs -o FILE.html' "$heddle" bench report "$loom"
refuse 2 'needs FILE.csv' "$heddle" bench report -o x.html
refuse 1 'nosuch.csv cannot be read' "$heddle" bench report nosuch.csv -o x.html
: >empty.csv
refuse 1 'empty.csv: there is no column bench' "$heddle" bench report empty.csv -o x.html
printf '%s\n' "$head" >heading.csv
refuse 1 'heading.csv has no rows' "$heddle" bench report heading.csv -o x.html
head -c 3000 /dev/urandom >noise.csv
refuse 1 'noise.csv: ' "$heddle" bench report noise.csv -o x.html
for bad in NaN -5 0 1e999 inf 0x10 "1 2"; do
    printf 'bench,device,op,median_ns\nthreshold,cpu,add,%s\n' "$bad" >bad.csv
    refuse 1 'bad.csv: .*median_ns' "$heddle" bench report bad.csv -o x.html
done
printf 'bench,device,op,median_ns,min_ns\nthreshold,cpu,add,5,6\n' >bad.csv
refuse 1 'row 1: its times do not rise' "$heddle" bench report bad.csv -o x.html
printf 'bench,device,op,median_ns,bytes\nthreshold,cpu,add,5,-1\n' >bad.csv
refuse 1 'row 1: bytes is below 0' "$heddle" bench report bad.csv -o x.html
printf 'bench,device,op\nthreshold,cpu,add\n' >bad.csv
refuse 1 'there is no column median_ns' "$heddle" bench report bad.csv -o x.html
refuse 1 'row 1 of .*loom.csv measures what row 1 of .*loom.csv does' "$heddle" bench report "$loom" "$loom" -o x.html
awk 'BEGIN { print "bench,device,op,median_ns,elements"; for (i = 1; i <= 1000000; i++) print "threshold,cpu,add," i "," i }' >million.csv
refuse 1 'million.csv: more than 50000 rows' "$heddle" bench report million.csv -o x.html
awk 'BEGIN { print "bench,device,op,median_ns,elements"; for (i = 1; i <= 5000; i++) print "threshold,cpu,op" i ",5,7" }' >charts.csv
refuse 1 '5000 charts' "$heddle" bench report charts.csv -o x.html
[ ! -e x.html ] && [ ! -e x.md ] || fail "a page of a file that was refused"

# Rows that say little, devices beyond count, and values at the ends of what numbers can be.
printf 'bench,device,op,median_ns\nthreshold,cpu,add,5\nodd,cpu,add,1e300\nodd,gpu,add,1e-300\n' >little.csv
expect 0 "" "" "$heddle" bench report little.csv -o little.html
grep -q 'say too little for a chart' little.html || fail "no word about rows without a size"
awk 'BEGIN { print "bench,device,op,median_ns,elements"; for (i = 1; i <= 40; i++) for (k = 1; k < 60; k++) print "threshold,gpu" i ",add," i * k "," k }' >many.csv
expect 0 "" "" "$heddle" bench report many.csv -o many.html
grep -q 'Not everything fits' many.html || fail "no word about devices that are not drawn"
awk 'BEGIN { print "bench,device,op,median_ns,elements"; for (i = 1; i <= 50000; i++) print "threshold,cpu,add," i "," i }' >long.csv
expect 0 "" "" "$heddle" bench report long.csv -o long.html

# The null device computes nothing, so it wins nothing.
printf 'bench,device,kind,op,median_ns,elements\nthreshold,cpu,CPU,add,500,7\nthreshold,null,null,add,1,7\n' >null.csv
expect 0 "" "" "$heddle" bench report null.csv -o null.html
grep -q 'class="fastest' null.html && fail "the null device has won"
grep -q 'class="line s1 made-up"' null.html || fail "the null device is not marked"

# What is read is not written over, and what cannot be written is a failure.
cp "$loom" mine.csv
refuse 2 'mine.csv is one of the files to read' "$heddle" bench report mine.csv -o mine.csv
cp "$loom" mine.md
refuse 2 'mine.md, which is one of the files to read' "$heddle" bench report mine.md -o mine.html
cmp -s "$loom" mine.csv && cmp -s "$loom" mine.md || fail "a file that was read was written over"
refuse 1 'nosuch/report.html cannot be written' "$heddle" bench report "$loom" -o nosuch/report.html
[ ! -e /dev/full ] || refuse 1 '/dev/full cannot be written' "$heddle" bench report "$loom" -o /dev/full
done_here
