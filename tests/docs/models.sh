# models.sh SOURCES: docs/models.md names every key and every tensor that the sources know, and every architecture.
set -u
cd "$1" || exit 1
failures=0
names=0

# named NAME...: each stands in the page.
named() {
    for name in "$@"; do
        names=$((names + 1))
        grep -qF -- "$name" docs/models.md || { echo "FAILED: docs/models.md does not name $name"; failures=$((failures + 1)); }
    done
}

sources="src/llm/figures.c src/llm/rope.c"
named $(sed -nE 's/^.*(hdl_key_[a-z0-9]+|uniform_u32)\(k, "([^"]+)".*$/\2/p' $sources)
named $(sed -nE 's/^    (\{ )?"([a-z_.]+)",.*$/\2/p' src/llm/keys.c)
named $(sed -nE '/^static const char \*const (notes|foreign)/s/^[^{]*\{ (.*) \};$/\1/p' src/llm/keys.c | tr -d '",')
named $(grep -ohE '(HDL_NORM|HDL_LINEAR)\("[a-z_]+"' src/llm/arch/*.[ch] | sed -E 's/.*"(.*)"/\1/' | sort -u)
named $(grep -ohE '"[a-z_]+\.(weight|bias)"' src/llm/arch/arch.h src/llm/rope.c | tr -d '"')
named $(sed -nE 's/^ *X\("([^"]+)".*$/\1/p' src/llm/arch/arch.h)
echo "$names names, $failures missing"
[ $failures = 0 ] && [ $names -gt 75 ]
