"""calls.py: makes tools with schemas by chance (schemas.py), has the program given print the calls of answers that are drawn by chance
in every family's form, and judges them with the package jsonschema (python3-jsonschema). Every answer must be read as calls, of offered
tools only, with arguments that the tool's schema takes.
  calls.py PROGRAM [COUNT [SEED]]"""
import json
import random
import subprocess
import sys

import schemas

FORMS = ["hermes", "mistral", "llama 3", "granite", "gpt-oss", "deepseek", "command-r", "qwen3-coder", "glm"]
NAMES = ["f", "get_weather", "a-b", "x.y", "function", "functions.z", "\u00e9"]


def parameters(rng):
    out = schemas.root(rng)
    for _ in range(20):  # most tools take objects
        if out.get("type") == "object" or rng.random() < 0.03:
            break
        out = schemas.root(rng)
    return out


def tool(rng, name):
    out = {"name": name, "description": "A tool."}
    if rng.random() < 0.9:
        out["parameters"] = parameters(rng)
    return {"type": "function", "function": out}


def main():
    program, count, seed = sys.argv[1], int((sys.argv + ["300"])[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rng = random.Random(seed)
    cases = []
    for number in range(count):
        names = rng.sample(NAMES, 1 + rng.randrange(3))
        cases.append({"form": FORMS[number % len(FORMS)], "choice": rng.choice(["auto", "required", rng.choice(names)]),
                      "tools": [tool(rng, name) for name in names]})
    lines = "".join(json.dumps(each, ensure_ascii=rng.random() < 0.5) + "\n" for each in cases)
    ran = subprocess.run([program, "--answers"], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    said = wrong = endless = 0
    refused = {}
    for line in ran.stdout.decode("utf-8", "replace").split("\n")[:-1]:
        number, what, *rest = line.split(" ", 2)
        case = cases[int(number)]
        if what == "refused":
            refused[int(number)] = rest[0]
        elif what == "answer":
            pass
        elif what == "endless":
            endless += 1
        else:
            said += 1
            problem = "this was read as no call"
            if what == "said":
                name, arguments = rest[0].split(" ", 1)
                found = [t["function"] for t in case["tools"] if t["function"]["name"] == name]
                problem = None if found and case["choice"] in ("auto", "required", name) else "a tool that was not offered"
                schema = found[0].get("parameters", {"type": "object", "additionalProperties": False}) if found else False
                problem = problem or next(schemas.Draft202012Validator(schema).iter_errors(json.loads(arguments)), None)
            if problem is not None:
                wrong += 1
                if wrong < 4:
                    print(f"calls: {json.dumps(case)}\n  {line}\n  {problem}"[:2500])
    print(f"calls: {count} lists of tools, {len(refused)} refused; {said} calls, {wrong} wrong, {endless} cut off")
    for text in sorted(set(refused.values())):
        print(f"  {text}"[:240])
    sys.exit(1 if wrong or said < 3 * count or len(refused) > count // 5 or endless > said // 10 else 0)


if __name__ == "__main__":
    main()
