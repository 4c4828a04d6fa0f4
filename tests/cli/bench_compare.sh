# bench_compare.sh: two runs: what is slower by more than the noise is found, what is not is let be.
. "$2/tests/cli/lib.sh"

heading=bench,machine,device,op,type,size,counted,samples,median_ns,p90_ns,min_ns,flag,synthetic
run() { # run FILE ROW...: "MEDIAN P90 MIN FLAG SYNTHETIC" of one case after the other
    file=$1 case=0
    shift
    echo $heading >"$file"
    for row in "$@"; do
        case=$((case + 1))
        echo "$row" | awk -v case=$case '{ print "threshold,loom,cpu,add,f32,n=" case ",compute,11," $1 "," $2 "," $3 "," ($4 == "-" ? "" : $4) "," $5 }' >>"$file"
    done
}
compare() { expect "$1" "$2" "$3" "$heddle" bench compare old.csv new.csv; }

run old.csv "1000 1030 990 - 0" "500 600 450 - 0"
expect 0 '^2 cases: 2 the same' "" "$heddle" bench compare old.csv old.csv
run new.csv "1049 1060 1040 - 0" "500 600 450 - 0" # 4.9%: below the limit
compare 0 '^2 cases: 2 the same within the noise, 0 faster, 0 slower' ""
run new.csv "1060 1070 1050 - 0" "500 600 450 - 0" # 6%, and the noise is 4%
compare 1 'add .*n=1 .*\+6.0% +4.0%  SLOWER' '1 of 2 cases became slower'
run new.csv "1000 1030 990 - 0" "640 700 600 - 0" # 28%, but the old row's noise is 30%
compare 0 '2 the same' ""
run new.csv "1000 1030 990 - 0" "660 700 600 - 0" # 32%
compare 1 'n=2 .*SLOWER' '1 of 2'
run new.csv "1000 1030 990 - 0" "660 900 600 - 0" # 32%, but the new row's noise is 45%
compare 0 '2 the same' ""
run new.csv "900 910 890 - 0" "500 600 450 - 0" # 11% faster
compare 0 'n=1 .*-10.0% +4.0%  faster' ""
run new.csv "2000 2010 1990 clocks 0" "500 600 450 - 0"
compare 0 'n=1 .*doubtful' ""
run new.csv "1000 1030 990 - 0" "2000 2010 1990 - 0" "1 1 1 - 0"
compare 1 '^2 cases: 1 the same within the noise, 0 faster, 1 slower, 0 doubtful, 0 synthetic; 0 only in the old file, 1 only in the new one' '1 of 2'
expect 0 '2 the same' "" "$heddle" bench compare old.csv new.csv --limit 400
expect 1 'n=1 .*same' '1 of 2' "$heddle" bench compare old.csv new.csv --all
run old.csv "1000 1030 990 - 1"
run new.csv "9000 9030 8990 - 1"
compare 0 '1 synthetic' ""
printf 'bench,device,op,median_ns\nthreshold,cpu,add,100\n' >old.csv # no spread: the limit alone
printf 'bench,device,op,median_ns\nthreshold,cpu,add,106\n' >new.csv
compare 1 'SLOWER' '1 of 1'

printf 'bench,device,op,median_ns\nthreshold,gpu,add,106\n' >new.csv
refuse 1 'no case stands in both files' "$heddle" bench compare old.csv new.csv
refuse 2 'needs OLD.csv NEW.csv' "$heddle" bench compare old.csv
refuse 2 'takes OLD.csv NEW.csv, and "c.csv" is one too many' "$heddle" bench compare old.csv new.csv c.csv
refuse 2 '--limit is a number of 0 to 1000' "$heddle" bench compare old.csv new.csv --limit -1
refuse 1 'nosuch.csv cannot be read' "$heddle" bench compare old.csv nosuch.csv
printf 'bench,device,op,median_ns\nthreshold,cpu,add,106\nthreshold,cpu,add,107\n' >new.csv
refuse 1 'row 2 of new.csv measures what row 1 of new.csv does' "$heddle" bench compare old.csv new.csv
awk 'BEGIN { print "bench,device,op,median_ns,elements"; for (i = 1; i <= 50000; i++) print "threshold,cpu,add," i "," i }' >old.csv
expect 0 '^50000 cases: 50000 the same' "" "$heddle" bench compare old.csv old.csv --all
done_here
