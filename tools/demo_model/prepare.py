#!/usr/bin/env python3
"""prepare.py FOLDER: the demo model's text: FOLDER/train.txt, and FOLDER/held-out.txt, every fiftieth chapter. `make` trains on them.

The text is public domain, as Debian packages it: the King James Bible (bible-kjv-text) and Jane Austen's six novels
(r-cran-janeaustenr). A chapter is a document: one line a verse under the book's name, or paragraphs; <|endoftext|> ends it.
apt install bible-kjv r-cran-janeaustenr."""
import itertools, pathlib, re, struct, subprocess, sys, zlib

END = "<|endoftext|>"
HELD_OUT = 50  # one chapter of so many
NOVELS = pathlib.Path("/usr/lib/R/site-library/janeaustenr/data/Rdata.rdb")
BOOKS = """Genesis Exodus Leviticus Numbers Deuteronomy Joshua Judges Ruth 1_Samuel 2_Samuel 1_Kings 2_Kings 1_Chronicles 2_Chronicles
Ezra Nehemiah Esther Job Psalm Proverbs Ecclesiastes Song_of_Solomon Isaiah Jeremiah Lamentations Ezekiel Daniel Hosea Joel Amos Obadiah
Jonah Micah Nahum Habakkuk Zephaniah Haggai Zechariah Malachi Matthew Mark Luke John Acts Romans 1_Corinthians 2_Corinthians Galatians
Ephesians Philippians Colossians 1_Thessalonians 2_Thessalonians 1_Timothy 2_Timothy Titus Philemon Hebrews James 1_Peter 2_Peter 1_John
2_John 3_John Jude Revelation""".split()

def bible():
    """Chapters: "Genesis 1", then a verse a line."""
    lines = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout.split("\n")
    verses = [re.fullmatch(r"(\d?[A-Za-z]+)(\d+):\d+ (.*)", line).groups() for line in lines if line]
    names = dict(zip(dict.fromkeys(book for book, _, _ in verses), BOOKS, strict=True))
    for (book, chapter), part in itertools.groupby(verses, lambda verse: verse[:2]):
        yield f"{names[book].replace('_', ' ')} {chapter}\n" + "\n".join(text.strip() for _, _, text in part) + "\n"

def novels():
    """Chapters: "Chapter 1", then paragraphs unwrapped. R keeps a novel as one compressed vector of strings, a line each."""
    data = NOVELS.read_bytes()
    while data:
        inflate = zlib.decompressobj()
        vector = inflate.decompress(data[4:])  # after its length
        data, lines, at = inflate.unused_data, [], 23  # past the format's versions and "UTF-8"
        kind, count = struct.unpack_from(">II", vector, at)
        assert kind & 255 == 16  # strings
        at += 8
        for _ in range(count):
            size = struct.unpack_from(">i", vector, at + 4)[0]
            lines.append(vector[at + 8:at + 8 + size].decode().strip())
            at += 8 + size
        paragraphs = [re.sub(r"_", "", " ".join(part)) for filled, part in itertools.groupby(lines, bool) if filled]
        heads = [i for i, text in enumerate(paragraphs) if re.fullmatch(r"(?i)chapter [ivxlc\d]+\.?", text)]
        for number, (start, stop) in enumerate(zip(heads, heads[1:] + [len(paragraphs)]), 1):
            yield f"Chapter {number}\n\n" + "\n\n".join(text for text in paragraphs[start + 1:stop] if not re.match(r"(?i)volume |the end|finis", text)) + "\n"

def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"train": [], "held-out": []}
    for number, chapter in enumerate([*bible(), *novels()]):
        parts["held-out" if number % HELD_OUT == HELD_OUT // 2 else "train"].append(chapter + END)
    for name, chapters in parts.items():
        (folder / f"{name}.txt").write_text("".join(chapters))
        print(len(chapters), "chapters of", name)

if __name__ == "__main__":
    main()
