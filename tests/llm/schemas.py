"""schemas.py: makes schemas by chance, has the program given print answers drawn by chance in each one's form, and judges them
with the package jsonschema (python3-jsonschema). Of what is made, at least nine of ten must be taken: the others' refusals are
told. Every answer must be JSON that its schema takes.
  schemas.py PROGRAM [COUNT [SEED]]"""
import json
import random
import subprocess
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("skipped: the Python package jsonschema is needed (python3-jsonschema)")
    sys.exit(77)

PATTERNS = [
    "^[a-z]{2,5}$", "ab", "^x", "\\d+$", "^(foo|bar)-\\d{1,3}$", "^[^aeiou]{1,4}$", "^\\w+\\s\\w+$", "^a.b$", "^[\\u00e0-\\u00ff]+$", "^(?:[0-9a-f]{2}:){2}[0-9a-f]{2}$",
    "^\\\\\"$", "a|^b$", "^\\S{3,}$", "^\\D\\W?$", "^[\\]\\-^]+$",
]
KEYS = ["a", "b", "ab", "abc", "name", "x y", "\u00e9", "q\"", "b\\s", "id", "value", "\u20ac1"]


def value(rng, depth=0):
    kind = rng.randrange(8 if depth < 2 else 6)
    if kind < 2:
        return rng.choice(["", "a", "two words", "\"", "\\", "\u00e9\U0001f600", "line\nbreak", "]}"])
    if kind == 2:
        return rng.choice([0, -1, 12345678901, 7])
    if kind == 3:
        return rng.choice([0.5, -2.25, 1e300, 3.0])
    if kind == 4:
        return rng.choice([True, False])
    if kind == 5:
        return None
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(rng.randrange(3))}


def string(rng):
    out = {"type": "string"}
    what = rng.randrange(6)
    if what < 3:
        least = rng.randrange(5)
        if rng.random() < 0.6:
            out["minLength"] = least
        if rng.random() < 0.6:
            out["maxLength"] = least + rng.randrange(6)
    elif what == 3:
        out["pattern"] = rng.choice(PATTERNS)
    elif what == 4 and rng.random() < 0.5:
        out["format"] = rng.choice(["date", "time", "date-time", "uuid"])
    return out


def integer(rng):
    out = {"type": "integer"}
    low = rng.choice([0, 1, -1, 9, 10, 99, -100, -12, 1234, -98765, 10**9])
    high = low + rng.choice([0, 1, 5, 10, 89, 90, 1000, 123456, 10**10])
    if rng.random() < 0.6:
        out[rng.choice(["minimum", "exclusiveMinimum"])] = low - rng.choice([0, 0, 0.5])
    if rng.random() < 0.6:
        out[rng.choice(["maximum", "exclusiveMaximum"])] = high + rng.choice([0, 0, 0.5]) + 2
    return out


def number(rng):
    out = {"type": "number"}
    low = rng.choice([0, 0.5, -1, 0.1, -0.25, 3.14159, -273.15, 1e-3, 99.9, 1e6])
    high = low + rng.choice([0, 0.01, 0.5, 1, 1.125, 10, 1e4])
    open_ended = low == high
    if rng.random() < 0.8:
        out["minimum" if open_ended else rng.choice(["minimum", "exclusiveMinimum"])] = low
    if rng.random() < 0.8:
        out["maximum" if open_ended else rng.choice(["maximum", "exclusiveMaximum"])] = high
    return out


def array(rng, depth, refs):
    out = {"type": "array"}
    prefix = 0
    if rng.random() < 0.3:
        prefix = 1 + rng.randrange(3)
        out["prefixItems"] = [schema(rng, depth + 1, refs) for _ in range(prefix)]
    if rng.random() < 0.8:
        out["items"] = False if prefix and rng.random() < 0.3 else schema(rng, depth + 1, refs)
    least = rng.randrange(3)
    if rng.random() < 0.5 and (out.get("items") is not False or least <= prefix):
        out["minItems"] = least
    if rng.random() < 0.5:
        out["maxItems"] = least + rng.randrange(4)
    if rng.random() < 0.1:
        out["uniqueItems"] = False
    return out


def obj(rng, depth, refs):
    out = {"type": "object"}
    keys = rng.sample(KEYS, rng.randrange(5))
    if keys or rng.random() < 0.5:
        out["properties"] = {key: schema(rng, depth + 1, refs) for key in keys}
    needed = [key for key in keys if rng.random() < 0.5]
    if rng.random() < 0.1:
        needed.append("only needed")
    if needed and rng.random() < 0.8:
        out["required"] = needed
    if rng.random() < 0.5 and "only needed" not in needed:
        out["additionalProperties"] = rng.choice([False, True, {"type": "integer"}, {"type": "string", "maxLength": 3}])
    return out


def schema(rng, depth=0, refs=()):
    if depth > 3:
        return rng.choice([{"type": "boolean"}, {"type": "null"}, {"const": value(rng)}, integer(rng), string(rng)])
    what = rng.randrange(20)
    if what < 5:
        out = obj(rng, depth, refs)
    elif what < 8:
        out = array(rng, depth, refs)
    elif what < 10:
        out = string(rng)
    elif what < 12:
        out = rng.choice([integer, number])(rng)
    elif what == 12:
        out = {"type": rng.choice(["number", "boolean", "null"])}
    elif what == 13:
        out = {"enum": [value(rng) for _ in range(1 + rng.randrange(4))]}
    elif what == 14:
        out = {"const": value(rng)}
    elif what == 15:
        out = {"anyOf": [schema(rng, depth + 1, refs) for _ in range(1 + rng.randrange(3))]}
    elif what == 16:
        if rng.random() < 0.5:
            kinds = rng.sample([string(rng), integer(rng), {"type": "boolean"}, array(rng, depth + 1, refs), obj(rng, depth + 1, refs)], 2)
            out = {"oneOf": kinds}
        else:
            out = {"oneOf": [{"type": "object", "properties": {"kind": {"const": kind}, "v": schema(rng, depth + 1, refs)}, "required": ["kind"]} for kind in "ab"]}
    elif what == 17:
        first, second = obj(rng, depth, refs), obj(rng, depth, refs)
        for part in (first, second):  # what one must have the other must not forbid
            if part.get("additionalProperties") is False:
                del part["additionalProperties"]
        out = {"allOf": [first, second]} if rng.random() < 0.5 else {"type": "string", "allOf": [{"minLength": 1}, {"maxLength": 4}]}
    elif what == 18 and refs:
        out = {"$ref": "#/$defs/" + rng.choice(refs)}
        if rng.random() < 0.3:
            out["description"] = "a reference"
    else:
        out = rng.choice([True, {}, {"type": ["string", "null"]}, {"type": ["integer", "boolean", "array"]}])
    if isinstance(out, dict) and rng.random() < 0.1:
        out["title"] = "a title"
    return out


def root(rng):
    refs = rng.sample(["node", "leaf", "pair"], rng.randrange(4))
    out = schema(rng, 0, refs)
    if out is True:
        out = {}
    if refs:
        out["$defs"] = {name: schema(rng, 1, refs) for name in refs}
    return out


def main():
    program, count, seed = sys.argv[1], int((sys.argv + ["1000"])[2]), int((sys.argv + ["", "1"])[3] if len(sys.argv) > 3 else 1)
    rng = random.Random(seed)
    schemas = [root(rng) for _ in range(count)]
    lines = "".join(json.dumps(each, ensure_ascii=rng.random() < 0.5) + "\n" for each in schemas)
    ran = subprocess.run([program, "--answers"], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    said = refused = endless = wrong = 0
    reasons = {}
    for line in ran.stdout.decode().split("\n")[:-1]:
        number, what, text = line.split(" ", 2)
        if what == "refused":
            refused += 1
            reasons.setdefault(text, schemas[int(number)])
            continue
        if what == "endless":
            endless += 1
            continue
        said += 1
        try:
            # strict: control characters in strings are no JSON
            problem = next(Draft202012Validator(schemas[int(number)]).iter_errors(json.loads(text)), None)
        except (ValueError, RecursionError) as error:
            problem = error
        if problem is not None:
            wrong += 1
            if wrong < 4:
                print(f"schemas: {json.dumps(schemas[int(number)])}\n  {text}\n  {problem}"[:1500])
    print(f"schemas: {count} schemas, {refused} refused; {said} answers, {wrong} wrong, {endless} cut off")
    for text, example in sorted(reasons.items()):
        print(f"  {text}: {json.dumps(example)}"[:240])
    sys.exit(1 if wrong or said < 4 * count or refused > count // 10 or endless > said // 20 else 0)


if __name__ == "__main__":
    main()
