#!/usr/bin/env python3
"""unicode_classes.py: writes src/llm/unicode_classes.inc, the classes of Unicode 16 that the tokenizers' patterns ask for, as
\\p{Lu}, \\p{N}, \\s and so on. pip install unicodedata2==16.0.0; run from the project's root."""
import unicodedata2

# White_Space of Unicode's PropList, which is what \\s means in the patterns.
SPACES = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
PAGE = 128

CLASSES = ["other", "upper or title case", "lower case", "letter without case", "mark", "number", "punctuation", "symbol", "space"]
OF_CATEGORY = {"Lu": 1, "Lt": 1, "Ll": 2, "Lm": 3, "Lo": 3, "M": 4, "N": 5, "P": 6, "S": 7}

def code_class(code):
    kind = unicodedata2.category(chr(code))
    return 8 if code in SPACES else OF_CATEGORY.get(kind, OF_CATEGORY.get(kind[0], 0))

def rows(values):
    return ",\n".join("    " + ",".join(str(v) for v in values[i:i + 30]) for i in range(0, len(values), 30))

assert unicodedata2.unidata_version == "16.0.0"
classes = [code_class(code) for code in range(0x110000)]
end = max(code for code, kind in enumerate(classes) if kind) // PAGE * PAGE + PAGE
pages, index = {}, []
for at in range(0, end, PAGE):
    page = tuple(classes[b] | classes[b + 1] << 4 for b in range(at, at + PAGE, 2))
    index.append(pages.setdefault(page, len(pages)))
assert len(pages) <= 256, len(pages)
with open("src/llm/unicode_classes.inc", "w") as out:
    out.write("/* Made by tools/unicode_classes.py from Unicode 16.0. Do not edit. Codes come in pages of %d, two to a byte:\n"
              " * %s. */\n" % (PAGE, ", ".join(f"{i} {name}" for i, name in enumerate(CLASSES))))
    out.write("enum { CLASS_PAGE = %d, CLASS_END = 0x%X };\n" % (PAGE, end))
    out.write("static const uint8_t class_index[%d] = {\n%s\n};\n" % (len(index), rows(index)))
    out.write("static const uint8_t class_pages[%d][%d] = {\n%s\n};\n" % (len(pages), PAGE // 2, ",\n".join(
        "    {\n" + rows(page) + "}" for page in pages)))
