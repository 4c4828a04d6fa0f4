# abi.sh SOURCES: tools/abi.txt belongs to the headers; a function that is gone, a field that moved and a number that is another one
# are told by their names, and refused once the version was released.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
failed() { echo "FAILED: tools/abi $*"; failures=1; }

"$1/tools/abi" --check >"$work/said" 2>&1
code=$?
[ $code = 77 ] && exit 77
[ $code = 0 ] || { cat "$work/said"; exit 1; }
mkdir "$work/tools"
cp -r "$1/include" "$work"
cp "$1/tools/abi" "$1/tools/abi.txt" "$work/tools"
cd "$work" || exit 1

# change FILE EDIT WORDS: with this edit of a header the check fails with these words.
change() {
    cp "include/$1" kept
    sed -i "$2" "include/$1"
    cmp -s kept "include/$1" && failed "the edit '$2' changes nothing"
    tools/abi --check >said && failed "finds nothing wrong with '$2'"
    grep -q "$3" said || { failed "does not say '$3':"; cat said; }
}
change heddle.h '/^HD_API hd_status hd_devices(/d' 'function hd_devices is gone'
cp kept include/heddle.h
change heddle.h 's/^HD_API uint64_t hd_buffer_bytes(const hd_buffer/HD_API uint32_t hd_buffer_bytes(const hd_buffer/' 'function hd_buffer_bytes was uint64_t (const hd_buffer \*), and is uint32_t'
cp kept include/heddle.h
change heddle_llm.h 's/uint32_t device_layers, cpu_layers, streamed_layers;/uint32_t cpu_layers, device_layers, streamed_layers;/' 'struct hd_fit.cpu_layers was 4: uint32_t, and is 0'
cp kept include/heddle_llm.h
change heddle.h 's/HD_BUFFER_STORAGE = 0,/HD_BUFFER_STORAGE = 9,/' 'enum HD_BUFFER_STORAGE was 0, and is 9'
tools/abi >/dev/null || failed "refuses a change in the making"
cp kept include/heddle.h

# A release.
{ tools/abi && tools/abi --release && tools/abi --check; } >said || { failed "cannot release"; cat said; }
head -1 tools/abi.txt | grep -q making && failed "a released list is in the making"
change heddle.h 's/HD_BUFFER_STORAGE = 0,/HD_BUFFER_STORAGE = 9,/' 'enum HD_BUFFER_STORAGE was 0'
tools/abi >said && failed "changes what was released"
grep -q 'raise HD_VERSION' said || failed "does not ask for a version"
sed -i 's/^#define HD_VERSION_MINOR .*/#define HD_VERSION_MINOR 77/' include/heddle.h
{ tools/abi && tools/abi --check; } >said || { failed "refuses a new version"; cat said; }
head -1 tools/abi.txt | grep -q '\.77\..*making' || failed "a new version is not in the making"
[ $failures = 0 ] && echo ok
exit $failures
