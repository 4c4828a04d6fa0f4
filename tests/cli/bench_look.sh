# bench_look.sh: the page in a real browser: on a desk and on a phone, light and dark. No text overlaps other text or leaves its
# chart, the page is not wider than the screen, and dark is dark. BENCH_LOOK=FOLDER keeps the pictures.
. "$2/tests/cli/lib.sh"

browser=
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v $name || true)
done
[ -n "$browser" ] || { echo "no Chromium (package chromium) here: skipped"; exit 77; }
chromium() {
    timeout 100 "$browser" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run --user-data-dir="$work/profile" "$@" 2>browser.err
}
chromium --dump-dom about:blank >blank && grep -q '<html>' blank || { echo "Chromium does not start here: skipped"; exit 77; }

expect 0 "" "" "$heddle" bench report "$sources/tests/cli/bench/loom.csv" "$sources/tests/cli/bench/small.csv" -o report.html
cp "$sources/tests/cli/bench_look.html" look.html
for width in 390 1200; do
    chromium --allow-file-access-from-files --virtual-time-budget=20000 --dump-dom "file://$work/look.html?$width" >seen
    grep -qE 'looked at [1-9][0-9]+ charts: all well' seen || { fail "$width wide: $(grep -oE 'looked at .*' seen)"; }
    for scheme in 0 1; do # dark, light
        chromium --blink-settings=preferredColorScheme=$scheme --window-size=$width,2000 --screenshot="look-$width-$scheme.png" "file://$work/report.html" >shot
        [ -s "look-$width-$scheme.png" ] || fail "no picture $width wide"
    done
    cmp -s "look-$width-0.png" "look-$width-1.png" && fail "$width wide: dark looks like light"
    [ -z "${BENCH_LOOK:-}" ] || cp look-$width-?.png "$BENCH_LOOK"
done
done_here
