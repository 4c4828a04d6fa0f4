#!/usr/bin/env python3
"""unicode_wordpiece.py: writes src/llm/unicode_wordpiece.inc: what WordPiece tokenizers make of each character before they look
for pieces, asked of PyPI `tokenizers` one by one (BertNormalizer and BertPreTokenizer), and the canonical order of what is left
of marks. pip install tokenizers unicodedata2==16.0.0; run from the project's root."""
import unicodedata2
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]

def normalizer(name):
    wishes = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return lambda code: [ord(c) for c in BertNormalizer(**{**wishes, name: True}).normalize_str(chr(code))]

def ranges(codes):
    out = []
    for code in codes:
        if out and out[-1][1] == code - 1: out[-1][1] = code
        else: out.append([code, code])
    return out

def mapped(pairs):
    """Runs of codes, one or two apart, that all move by the same distance."""
    out = []
    for code, to in pairs:
        last = out[-1] if out else None
        if last and last[3] == to - code and (code - last[1] == last[2] or (last[0] == last[1] and code - last[1] == 2)):
            last[2], last[1] = code - last[1], code
        else: out.append([code, code, 1, to - code])
    return out

def table(out, head, rows, form):
    text = [form(row) for row in rows]
    lines, line = [], "   "
    for item in text:
        if len(line) + len(item) + 2 > 118: lines, line = lines + [line], "   "
        line += " " + item + ","
    out.write("static const %s[%d] = {\n%s\n};\n" % (head, len(rows), "\n".join(lines + [line])))

def hexes(row): return "{ " + ", ".join("0x%X" % v for v in row) + " }"
def of(low, high, rest): return "{ { 0x%X, 0x%X }, %s }" % (low, high, rest)

clean, cjk, strip, lower = (normalizer(n) for n in ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase"))
splitter = BertPreTokenizer()
hangul = range(0xAC00, 0xD7A4)  # by arithmetic
stripped = {code: strip(code) for code in CODES}
low = {code: lower(code) for code in CODES}
assert [code for code in CODES if len(low[code]) > 1] == [0x130] and low[0x130] == [0x69, 0x307]
assert all(len(stripped[code]) in (2, 3) for code in hangul)
pieces = lambda code: len(splitter.pre_tokenize_str("a" + chr(code) + "b"))
order = {}
for code in CODES:
    nth = unicodedata2.combining(chr(code))
    if not nth or not stripped[code]: continue
    pair = "\U0001D16D" + chr(code) if nth < 226 else chr(code) + "\U0001D16E"  # of orders 226 and 216
    if BertNormalizer(strip_accents=True, lowercase=False).normalize_str(pair) != pair: order.setdefault(nth, []).append(code)
several = [(code, *to, *[0] * (3 - len(to))) for code, to in stripped.items() if len(to) > 1 and code not in hangul]
with open("src/llm/unicode_wordpiece.inc", "w") as out:
    out.write("/* Made by tools/unicode_wordpiece.py. Do not edit. Ranges of characters, in order. */\n")
    table(out, "range dropped", ranges(c for c in CODES if not clean(c)), hexes)
    table(out, "range spaces", ranges(c for c in CODES if clean(c) == [0x20]), hexes)
    table(out, "range ideographs", ranges(c for c in CODES if len(cjk(c)) > 1), hexes)
    table(out, "range punctuation", ranges(c for c in CODES if pieces(c) == 3), hexes)
    table(out, "range marks", ranges(c for c in CODES if not stripped[c]), hexes)
    moves = lambda row: of(*row[:2], "%d, %d" % tuple(row[2:]))
    table(out, "move bases", mapped([(c, to[0]) for c, to in stripped.items() if len(to) == 1 and to[0] != c]), moves)
    table(out, "move small", mapped([(c, to[0]) for c, to in low.items() if to[0] != c]), moves)
    table(out, "parts several", several, lambda row: of(row[0], row[0], hexes(row[1:])))
    table(out, "mark_order orders", sorted((a, b, n) for n, codes in order.items() for a, b in ranges(codes)),
          lambda row: of(*row[:2], "%d" % row[2]))
