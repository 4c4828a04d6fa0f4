# doctor.sh: what `heddle doctor` says where all is well, and where something that was asked for does not work.
. "$2/tests/cli/lib.sh"

expect 0 '^ok +device cpu: .* known answers right in ' "" "$heddle" doctor
matches out '^ok +back end cpu: 1 device$' doctor
matches out '^ok +selection best: requested=best ' doctor
matches out '^note +cache none: ' "HEDDLE_CACHE=none"
matches out '^0 problems, [0-9]+ notes?, [0-9]+ ok$' doctor
grep -E '^(note|problem)' out | grep -c . >lines
[ "$(grep -c '^ *-> ' out)" = "$(cat lines)" ] || fail "not each line that is not ok has one thing to do"
if has_vulkan; then
    expect 0 '^ok +back end vulkan: 1 device, by /.*libvulkan' "" "$heddle" doctor --device vulkan
    matches out '^ok +selection vulkan: requested=vulkan .*selected=vulkan:' "--device vulkan"
    matches out '^note +device vulkan:[^ ]*: .*software.* known answers right in ' "--device vulkan"
    matches out '^ok +vulkan driver /usr/share/vulkan/icd.d/lvp_icd.*: .*libvulkan_lvp.so$' "--device vulkan"
fi

only="env HEDDLE_BACKEND=cpu $heddle" # without the time that other devices take
# What is asked for and does not work is a problem, and no longer a note.
expect 1 '^problem +selection nosuch: .*no device is called "nosuch"' "" $only doctor --device nosuch
expect 1 '^problem +selection nosuch: ' "" env HEDDLE_DEVICE=nosuch $only doctor
gone="env VK_DRIVER_FILES=/nonexistent/gone.json VK_ICD_FILENAMES=/nonexistent/gone.json"
expect 0 '^note +back end vulkan: not looked at' "" $only doctor
matches out '^note +environment HEDDLE_BACKEND: is "cpu": ' "HEDDLE_BACKEND=cpu"
expect 1 '^problem +vulkan driver /nonexistent/gone.json: ' "" $gone "$heddle" doctor
matches out '^note +environment VK_DRIVER_FILES: is "/nonexistent/gone.json": only these Vulkan drivers are looked at$' "no driver"
expect 1 '^problem +back end vulkan: ' "" $gone HEDDLE_BACKEND=vulkan "$heddle" doctor
expect 1 '^problem +back end nosuch: .*no back end is called "nosuch"' "" env HEDDLE_BACKEND=nosuch "$heddle" doctor
expect 1 '^problem +log heddle: HEDDLE_LOG is error' "" env HEDDLE_LOG=loud $only doctor
expect 0 '^note +environment HEDDLE_BAKCEND: ' "" env HEDDLE_BAKCEND=cpu $only doctor
matches out 'did you mean HEDDLE_BACKEND\?$' "a misspelt name"

# The cache.
mkdir own open
chmod 777 open
echo "four" >own/file
expect 0 "^ok +cache $PWD/own: [0-9]+ files, [0-9.]+ K?i?B; .* free on its disk\$" "" env HEDDLE_CACHE="$PWD/own" $only doctor
expect 1 "^problem +cache $PWD/open: " "" env HEDDLE_CACHE="$PWD/open" $only doctor
matches out "^note +log cache: $PWD/open: " "a folder that others can write to"

expect 1 '"problems"' "" $only doctor --device nosuch --json
if python3 -c '' 2>/dev/null; then
    python '
import json
found = json.load(open("out"))
levels = [f["level"] for f in found["findings"]]
assert found["problems"] == levels.count("problem") >= 1 and found["notes"] == levels.count("note"), levels
assert all(f["mend"] for f in found["findings"] if f["level"] != "ok")
assert {"back end", "device", "selection", "cache"} <= {f["part"] for f in found["findings"]}'
fi

# GPUs of NVIDIA and AMD, as far as their stand-ins go: the library is told, and the answers are right.
if [ -e "$standin/libcuda.so.1" ]; then
    expect 0 "^ok +back end cuda: [0-9]+ devices?, by .*/libcuda.so.1\$" "" env LD_LIBRARY_PATH="$standin" HEDDLE_BACKEND=cuda "$heddle" doctor
    matches out '^ok +device cuda:[0-9a-f]+: .* known answers right in ' "the stand-in of CUDA"
fi
done_here
