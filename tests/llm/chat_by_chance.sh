#!/bin/sh
# chat_by_chance.sh ROOT TEST_CHAT: templates by chance, HEDDLE_TEMPLATES of them (2000), other ones than those that are stored, rendered
# by Jinja and by heddle. Passes over where Python has no jinja2.
set -eu
python3 -c 'import jinja2' 2>/dev/null || { echo "no jinja2"; exit 77; }
cases=$(mktemp)
trap 'rm -f "$cases"' EXIT
python3 "$1/tools/fixtures/chat_fixture.py" "$cases" "100000:${HEDDLE_TEMPLATES:-2000}"
"$2" "$cases"
