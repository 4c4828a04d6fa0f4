# links.sh SOURCES: every link in a .md file leads to a file, and to a heading of it where it names one; every path of this
# tree that a document or the public header mentions is there.
set -u
cd "$1" || exit 1
failures=0
links=0

missing() {
    echo "FAILED: $1: $2"
    failures=$((failures + 1))
}

# anchors FILE: the names under which a page shows FILE's headings.
anchors() { sed -nE 's/^#+ //p' "$1" | tr '[:upper:]' '[:lower:]' | sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'; }

for page in *.md docs/*.md; do
    folder=$(dirname "$page")
    for link in $(grep -oE '\]\([^) ]+\)' "$page" | sed -E 's/^\]\((.*)\)$/\1/'); do
        links=$((links + 1))
        case $link in http://* | https://*) continue ;; esac
        file=$folder/${link%%#*}
        [ "${link%%#*}" ] || file=$page
        [ -e "$file" ] || { missing "$page" "no file for the link $link"; continue; }
        case $link in *#*) anchors "$file" | grep -qx "${link#*#}" || missing "$page" "no heading for the link $link" ;; esac
    done
done

# Paths as words: from the root, with an ending or of a folder that holds commands.
for page in *.md docs/* include/*.h; do
    for path in $(grep -oE '\b(src|docs|examples|include|research|scripts|tests|tools)/[A-Za-z0-9_./-]*[A-Za-z0-9_]' "$page" | sort -u); do
        case $path in *.*) ;; scripts/* | tools/*) ;; *) continue ;; esac
        links=$((links + 1))
        [ -e "$path" ] || missing "$page" "mentions $path, which is not there"
    done
done
echo "$links links and paths, $failures missing"
[ $failures = 0 ] && [ $links -gt 20 ]
