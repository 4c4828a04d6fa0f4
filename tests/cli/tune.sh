# tune.sh: the CPU is measured, its figures are kept as text and read again, a damaged line of them is left out.
. "$2/tests/cli/lib.sh"
mkdir cache
export HEDDLE_CACHE="$work/cache"

expect 0 '^matvec +quantised +' '' "$heddle" tune --device cpu --figures --quick --samples 2 --seconds 0.001 --list
matches out '^softmax +f32 +rows=2 n=512 .*[-+][0-9]+%$' tune
matches out '^upload +- ' tune
file=$(echo cache/facts-*.txt)
[ -f "$file" ] || fail "no facts file"
grep -q '^heddle facts 1$' "$file" && grep -qE '^matmul word fixed_ns [0-9.e+-]+ ' "$file" && grep -q '^device cpu$' "$file" || fail "the facts file is not well formed"
[ "$(find cache -name 'facts-*' | wc -l)" = 1 ] || fail "more than one facts file"
echo 'matmul word fixed_ns no' >>"$file"
expect 0 - 'facts: cpu: 1 lines of the file of what is known of it are not well formed' "$heddle" tune --device cpu --figures --quick --samples 2 --seconds 0.001
# Options of kernels: measured, told, kept, and what a file says of an option is taken by later plans.
expect 0 '^elementwise f32, rows 1, size .* [0-9]+ +w4096 +w[0-9]+ +[0-9.]+x$' - "$heddle" tune --device cpu --kernels elementwise,matvec --quick --samples 1 --list
matches out '^cpu: [0-9]+ classes of kernels, in [0-9]+ of them' tune
matches out '^matvec q4_0, rows 1, size 2\^22-2\^24 +[0-9]+ +vector_' tune
refuse 2 'no kernels are called matwec' "$heddle" tune --device cpu --kernels matvec,matwec
printf 'heddle 1\nx = input f32[40,2048] "x"\ns = sum x axis=1\ne = exp x\noutput s "s"\noutput e "e"\n' >rows.hd
sed -i '/^choice elementwise/d' "$file"
echo 'choice elementwise f32 rows 0 size 8 option 411 gain 1.5' >>"$file"
echo 'choice reduce f32 rows 6 size 5 option 999 gain 1.5' >>"$file"
expect 0 'elementwise as w1024, "x" -> "e"  because it was measured to be the fastest here$' - "$heddle" explain rows.hd --device cpu
matches out 'reduce "x" -> "s"  because a workgroup for each row$' explain
expect 0 - - "$heddle" explain rows.hd --device cpu --math exact
grep -q ' as w1024' out && fail "exact mode takes a choice"
# Ids of another table of options mean nothing, and that is told.
cp "$file" kept
sed -i 's/^options .*/options 1/' "$file"
expect 0 'elementwise "x" -> "e"  because every operand' 'or choose among options of another version, and were left out' "$heddle" explain rows.hd --device cpu
mv kept "$file"
if has_vulkan; then
    expect 0 '^vulkan: [1-9][0-9]* classes of kernels' - "$heddle" tune --device vulkan --kernels reduce --quick --samples 2
    expect 0 - - "$heddle" explain rows.hd --device vulkan
    if grep -q '^choice reduce f32 rows 6 size 5 ' "$(grep -l "^device vulkan" cache/facts-*.txt)"; then matches out 'reduce as w[0-9]+, ' explain
    else matches out 'reduce "x" -> "s"  because a workgroup' explain
    fi
fi
refuse 1 'a check needs the CPU and another device' "$heddle" tune --device cpu --check
refuse 2 '--samples is a whole number' "$heddle" tune --samples 0
refuse 1 'nowhere' "$heddle" tune --device nowhere
HEDDLE_CACHE=none expect 0 '^attention +half' 'nothing of this is kept' "$heddle" tune --device cpu --figures --quick --samples 1 --seconds 0.001
done_here
