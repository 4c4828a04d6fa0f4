# headers.sh SOURCES: every public header by itself and twice, with all its descs as zero, as C11 and C++17, with each
# compiler there is; all warnings are errors.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$1" || exit 1
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wundef -Wcast-qual -Wmissing-declarations -Werror"
failures=0
compiled=0

# program HEADER ZERO: a program that uses HEADER, with each desc set to ZERO.
program() {
    printf '#include <%s>\n#include <%s>\n\nint main(void) {\n' "$1" "$1"
    for desc in $(grep -oE '^typedef struct hd_[a-z0-9_]*_desc' "include/$1" | sed 's/.* //'); do
        printf '    { const %s desc = %s; (void)desc; }\n' "$desc" "$2"
    done
    printf '    const int64_t rows = 3;\n    const hd_shape shape = HD_SHAPE(2, rows), one = HD_SHAPE(1);\n'
    printf '    return shape.rank == 2 && one.dims[0] == 1 && HD_OK == 0 ? 0 : 1;\n}\n'
}

# compile FILE COMPILER OPTION...
compile() {
    file=$1
    shift
    command -v "$1" >/dev/null || return
    compiled=$((compiled + 1))
    # shellcheck disable=SC2086
    "$@" $warnings -Iinclude -fsyntax-only "$file" >"$work/log" 2>&1 && return
    echo "FAILED: $* $file"
    head -20 "$work/log"
    failures=$((failures + 1))
}

for header in include/*.h; do
    name=$(basename "$header" .h)
    program "$name.h" '{0}' >"$work/$name.c"
    program "$name.h" '{}' >"$work/$name.cpp"
    grep -q desc "$work/$name.c" || { echo "FAILED: no desc found in $header"; failures=$((failures + 1)); }
    for compiler in gcc clang; do
        compile "$work/$name.c" $compiler -std=c11 -Wstrict-prototypes
        compile "$work/$name.c" $compiler -std=c2x
    done
    for compiler in g++ clang++; do
        compile "$work/$name.cpp" $compiler -std=c++17 -Wold-style-cast -Wzero-as-null-pointer-constant
        compile "$work/$name.cpp" $compiler -std=c++20
    done
done
echo "$compiled compilations, $failures failures"
[ "$failures" = 0 ] && [ "$compiled" -gt 0 ]
