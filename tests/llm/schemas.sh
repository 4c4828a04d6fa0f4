# schemas.sh: a thousand schemas by chance: every answer drawn by chance in their forms is one that Python's jsonschema takes.
#   schemas.sh SOURCES PROGRAM
exec "${PYTHON3:-python3}" "$1/tests/llm/schemas.py" "$2" 1000
