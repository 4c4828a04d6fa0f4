# machines.sh SOURCES HEDDLE: docs/machines.md is what `heddle fit` tells.
export HEDDLE_CACHE=none
exec "${PYTHON3:-python3}" "$1/tools/machines" "$2" --check
