# cache.sh: the cache's folder: what lies there and is no file is passed over at once, a folder that others can write to is not used,
# and where nothing can be kept that is said once, as a warning.
. "$2/tests/cli/lib.sh"
printf 'heddle 1\nv1 = input f32[4,8] "x"\nv2 = softmax v1 axis=1\noutput v2 "y"\n' >sum.hd
explain="$heddle explain sum.hd --device cpu"
tune="$heddle tune --device cpu --figures --quick --samples 1 --seconds 0.001"
export HEDDLE_CACHE="$work/cache"
expect 0 - "" $tune
has_vulkan && expect 0 - - "$heddle" generate -n 1 --device vulkan

# Every file becomes a FIFO without a writer, then a link to a device that never ends.
for kind in fifo zero; do
    for file in cache/*; do # those that a run has put into their place are files again
        rm "$file"
        if [ $kind = fifo ]; then mkfifo "$file"; else ln -s /dev/zero "$file"; fi
    done
    expect 0 'level 0' - $explain
    expect 0 - - "$heddle" devices
    ! has_vulkan || expect 0 - - "$heddle" generate -n 1 --device vulkan
done

warned() { # warned TEXT: once, as a warning, and nothing is kept
    expect 0 'level 0' "^heddle: warning: cache: .*$1" $explain
    [ "$(grep -c 'warning: cache' err)" = 1 ] || fail "not said once: $1"
    expect 0 - '^heddle tune: nothing of this is kept' $tune
}
mkdir open
chmod 777 open
HEDDLE_CACHE=$work/open warned 'others can put files there; run chmod go-w'
[ -z "$(ls open)" ] || fail "written into a folder of others"
echo >file
HEDDLE_CACHE=$work/file warned 'there can be no folder \(Not a directory\)'
HEDDLE_CACHE=/proc/heddle warned 'there can be no folder'
HEDDLE_CACHE=none expect 0 - '^heddle tune: nothing of this is kept: there is no folder for it; set HEDDLE_CACHE' $tune
HEDDLE_CACHE=none expect 0 'level 0' - $explain
grep -q 'warning' err && fail "none is what was asked for"

# The folder is right, and the file cannot be put there.
rm -rf cache
expect 0 - "" $tune
file=$(echo cache/facts-*.txt)
rm "$file"
mkdir "$file"
expect 1 - 'what is known of cpu could not be written' $tune
done_here
