"""bench_report.py PAGE.html SUMMARY.md FILE.csv...: holds a report against the files it was made from. Reads the CSV by its own
rules and the page as a browser's parser would; who wins is worked out here again."""
import csv
import html.parser
import re
import sys
import xml.etree.ElementTree

page_path, summary_path, *csv_paths = sys.argv[1:]
page = open(page_path, encoding="utf-8").read()
rows = [dict(row, file=path) for path in csv_paths for row in csv.DictReader(open(path, encoding="utf-8", newline=""))]
failures = 0


def check(holds, what):
    global failures
    if not holds:
        failures += 1
        print("bench_report.py:", what)


class Reader(html.parser.HTMLParser):
    """Tables as lists of cells with their row's class, tags that are open, the titles of points, and all text."""
    empty = {"meta", "br", "link", "img"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tables, self.titles, self.text, self.tags = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.empty:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append((dict(attributes).get("class", ""), []))
        if tag in ("td", "th"):
            self.tables[-1][-1][1].append("")
        if tag == "title":
            self.titles.append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        check(self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}")
        if self.open:
            self.open.pop()

    def handle_data(self, data):
        self.text.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][1][-1] += data
        if self.open and self.open[-1] == "title":
            self.titles[-1] += data


reader = Reader()
reader.feed(page)
reader.close()
check(not reader.open, f"left open: {reader.open}")

# Nothing is loaded and nothing runs.
for tag, attributes in reader.tags:
    check(tag not in ("script", "iframe", "object", "embed", "link", "img", "base", "form"), f"a tag {tag}")
    for name, value in attributes.items():
        check(not name.startswith("on") and name not in ("src", "srcset"), f"an attribute {name}")
        check(name != "href" or value.startswith("#"), f"a link to {value}")
check("url(" not in page and "@import" not in page, "the style loads something")
check(not re.search(r"\b(nan|inf)\b", re.sub("<style>.*?</style>", "", page, flags=re.S)), "a number is none")

# Every picture is XML, with places within its box for each of its points.
pictures = re.findall(r"<svg class=\"chart\".*?</svg>", page, flags=re.S)
check(len(pictures) > 5, f"{len(pictures)} pictures")
points = 0
for picture in pictures:
    root = xml.etree.ElementTree.fromstring(picture)
    _, _, width, height = map(float, root.get("viewBox").split())
    for dot in root.iter("circle"):
        if dot.get("class") == "hit":
            points += 1
            check(0 < float(dot.get("cx")) < width and 0 < float(dot.get("cy")) < height, "a point outside its chart")
check(points == len(rows), f"{points} points for {len(rows)} rows")

# Each row of the CSV stands once in a table with its own digits, and once at a point.
data = [table for table in reader.tables if "median, ns" in table[0][1]]
listed = [dict(zip(table[0][1], cells), kind=kind) for table in data for kind, cells in table[1:]]
check(len(listed) == len(rows), f"{len(listed)} rows in tables, {len(rows)} in the files")
key = {"size": "size", "device": "device", "median, ns": "median_ns", "min": "min_ns", "P90": "p90_ns", "max": "max_ns", "first run": "first_ns", "elements": "elements"}


def digits(text):
    return repr(float(text)) if re.fullmatch(r"[-0-9.e+]+", text) else text


of_csv = sorted(tuple(digits(row[column]) for column in key.values()) for row in rows)
of_page = sorted(tuple(digits(row.get(column, "")) for column in key) for row in listed)
check(of_csv == of_page, f"the tables differ from the files: {[pair for pair in zip(of_csv, of_page) if pair[0] != pair[1]][:1]}")
told = [title for title in reader.titles if " median " in title]
for row in rows:
    name = f"{row['device'].split(':')[0]}: {row['op']} {row['type']}".strip() + f" {row['size']}, median "
    nanoseconds = re.sub(r"\.0$", "", row["median_ns"])
    check(any(title.startswith(name) and f"({nanoseconds} ns)" in title for title in told), f"no point tells {name}{nanoseconds}")

# Who is fastest, worked out again.
work = {}
for row in rows:
    work.setdefault(tuple(row[c] for c in ("machine", "bench", "op", "type", "size", "counted", "submissions")), []).append(row)
expected = []
for contest in work.values():
    measured = [row for row in contest if row["synthetic"] != "1"]
    if len(measured) > 1:
        first, second = sorted(measured, key=lambda row: float(row["median_ns"]))[:2]
        if float(second["median_ns"]) > 1.05 * float(first["median_ns"]):  # else a tie
            expected.append(first)
marked = [row for row in listed if "fastest" in row["kind"].split()]
check(sorted((digits(r["median_ns"]), r["device"]) for r in expected) == sorted((digits(r["median, ns"]), r["device"]) for r in marked), "the winners differ")
check(all("fastest" in row["remark"] for row in marked), "a winner is not named so")
check(not any("synthetic" in row["kind"] for row in marked), "a synthetic row wins")
check(sum("synthetic" in row["kind"] for row in listed) == sum(row["synthetic"] == "1" for row in rows), "synthetic rows are not marked")
check(page.count('class="flag"') == sum(row["flag"] != "" for row in rows), "flagged rows are not ringed")

# Names from outside are text, and the summary is one table row a line.
summary = open(summary_path, encoding="utf-8").read()
check("<script>alert(1)</script>|x" in "".join(reader.text), "the hostile name is not shown")
check("<" not in summary and "GPU & sons <b>" in "".join(reader.text), "a name is markup")
columns = 0
for line in summary.splitlines():
    here = len(re.findall(r"(?<!\\)\|", line))
    check(here in (0, columns) or line.startswith("| operation"), f"cells of {line}")
    columns = here
check("vulkan: from 65.5k" in summary and "vulkan: none" in summary, "the crossings are not in the summary")
check("imagined" not in summary, "a synthetic device is in the summary")
sys.exit(failures > 0)
