# install.sh SOURCES: examples/01_add.c as somebody else's project, with heddle by add_subdirectory, by find_package and by
# pkg-config, static and shared; examples/05_llm.c by pkg-config, on the model that was installed, which the installed command
# finds too. The installed tree is moved first: nothing in it may know where it was made.
set -eu
sources=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HEDDLE_CACHE=none
unset HEDDLE_DEVICE HEDDLE_BACKEND HEDDLE_STRICT PKG_CONFIG_PATH LD_LIBRARY_PATH
consumer=$sources/examples/01_add.c

quietly() { "$@" >log 2>&1 || { echo "FAILED: $*"; tail -40 log; exit 1; }; }
adds() {
    quietly "$@"
    grep -q '^ 4 + 40 = 44$' log || { echo "FAILED: $* did not add:"; cat log; exit 1; }
}

for shared in OFF ON; do
    # The same objects make both libraries, so the second round only links.
    quietly cmake -G Ninja -S "$sources/tests/install" -B build -DHEDDLE_SOURCES="$sources" -DCONSUMER="$consumer" \
        -DBUILD_SHARED_LIBS=$shared -DCMAKE_BUILD_TYPE=None -DHEDDLE_CLI=ON
    quietly cmake --build build
    adds build/consumer
    quietly cmake --install build --prefix made
    rm -rf there && mv made there

    quietly cmake -G Ninja -S "$sources/tests/install" -B found -DCONSUMER="$consumer" -DCMAKE_PREFIX_PATH="$work/there"
    quietly cmake --build found
    adds found/consumer
    rm -rf found

    libraries=$(dirname "$(find there -name 'libheddle.*' | head -1)")
    export PKG_CONFIG_PATH="$work/$libraries/pkgconfig"
    static=$([ $shared = ON ] || echo --static)
    # shellcheck disable=SC2046,SC2086
    quietly cc "$consumer" $(pkg-config $static --cflags --libs heddle) -o by_pkg_config
    adds env LD_LIBRARY_PATH="$libraries" ./by_pkg_config

    # shellcheck disable=SC2046,SC2086
    quietly cc "$sources/examples/05_llm.c" $(pkg-config $static --cflags --libs heddle) -o llm
    if [ -x there/bin/heddle ]; then # else libjansson is not there
        quietly env LD_LIBRARY_PATH="$libraries" ./llm there/share/heddle/demo.gguf
        quietly there/bin/heddle info --json
        grep -q '"path": ".*/there/bin/../share/heddle/demo.gguf"' log || { echo "FAILED: heddle does not find the installed model:"; cat log; exit 1; }
        quietly there/bin/heddle generate -n 2 -p x
    fi
    if [ $shared = ON ]; then
        nm -D --defined-only "$libraries/libheddle.so" | grep -v ' hd_' >others || true
        [ ! -s others ] || { echo "FAILED: the shared library shows more than hd_ names:"; cat others; exit 1; }
    fi
    echo "shared $shared: add_subdirectory, find_package and pkg-config work"
done
