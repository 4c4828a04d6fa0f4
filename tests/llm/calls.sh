# calls.sh: tools with schemas by chance, in every family's form of calls: every answer drawn by chance is calls that Python's jsonschema takes.
#   calls.sh SOURCES PROGRAM
exec "${PYTHON3:-python3}" "$1/tests/llm/calls.py" "$2" 300
