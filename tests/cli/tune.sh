# tune.sh: the CPU is measured, its figures are kept as text and read again, a damaged line of them is left out.
. "$2/tests/cli/lib.sh"
mkdir cache
export HEDDLE_CACHE="$work/cache"

expect 0 '^matvec +quantised +' '' "$heddle" tune --device cpu --quick --samples 2 --seconds 0.001 --list
matches out '^softmax +f32 +rows=2 n=512 .*[-+][0-9]+%$' tune
matches out '^upload +- ' tune
file=$(echo cache/tuning-*.txt)
[ -f "$file" ] || fail "no tuning file"
grep -q '^heddle tuning 1$' "$file" && grep -qE '^matmul word fixed_ns [0-9.e+-]+ ' "$file" && grep -q '^device cpu$' "$file" || fail "the tuning file is not well formed"
[ "$(find cache -name 'tuning-*' | wc -l)" = 1 ] || fail "more than one tuning file"
echo 'matmul word fixed_ns no' >>"$file"
expect 0 - 'tune: cpu: 1 lines of its tuning file are not well formed' "$heddle" tune --device cpu --quick --samples 2 --seconds 0.001
refuse 1 'a check needs the CPU and another device' "$heddle" tune --device cpu --check
refuse 2 '--samples is a whole number' "$heddle" tune --samples 0
refuse 1 'nowhere' "$heddle" tune --device nowhere
HEDDLE_CACHE=none expect 0 '^attention +half' '' "$heddle" tune --device cpu --quick --samples 1 --seconds 0.001
done_here
