# models.sh SOURCES: docs/models.md names every key and every tensor that the sources know, and every architecture.
set -u
cd "$1" || exit 1
failures=0
count=0

names=$(
    sources="src/llm/figures.c src/llm/rope.c"
    sed -nE 's/^.*(hdl_key_[a-z0-9]+|uniform_u32)\(k, "([^"]+)".*$/\2/p' $sources
    sed -nE 's/^    (\{ )?"([a-z_.]+)",.*$/\2/p' src/llm/keys.c
    sed -nE '/^static const char \*const (notes|foreign)/s/^[^{]*\{ (.*) \};$/\1/p' src/llm/keys.c | tr -d '",'
    grep -ohE '(HDL_NORM|HDL_LINEAR)\("[a-z_]+"' src/llm/arch/*.[ch] | sed -E 's/.*"(.*)"/\1/' | sort -u
    grep -ohE '"[a-z_]+\.(weight|bias)"' src/llm/arch/arch.h src/llm/rope.c | tr -d '"'
    sed -nE 's/^ *X\("([^"]+)".*$/\1/p' src/llm/arch/arch.h
)
for name in $names; do
    count=$((count + 1))
    grep -qF -- "$name" docs/models.md || { echo "FAILED: docs/models.md does not name $name"; failures=$((failures + 1)); }
done
echo "$count names, $failures missing"
[ $failures = 0 ] && [ $count -gt 75 ]
