"""Texts that try to run as code, leave their place, or change how the page is read (HARDENING 4.8, S1 to S4)."""

import csv
import io

PAYLOADS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "javascript:alert(1)",
    "{{7*7}}",
    "${7*7}",
    "{% for x in y %}",
    "<!-- open",
    "]]>",
    "line\u2028separator\u2029paragraph",
    "\u202eoverride",
    "\u2066isolate\u200f",
    "url(https://example.org/x.png)",
    "\x1b[31mred",
    "' onmouseover='alert(1)",
    "&lt;b&gt; &amp;amp;",
    "</title><h1>x</h1>",
    "</style><style>*{display:none}</style>",
    "http://example.org/pixel.gif",
    "data:text/html,<script>alert(1)</script>",
    '<a href="javascript:alert(1)">press</a>',
    '<iframe srcdoc="<script>alert(1)</script>">',
    "<math><mtext><form><mglyph><style></math><img src onerror=alert(1)>",
    "<plaintext>",
    "}body{background:url(//example.org/y)}/*",
    "@import url(//example.org/x.css);",
    '=HYPERLINK("http://example.org","x")',
    "+cmd|' /C calc'!A0",
    "--!><script>alert(1)</script>",
    "\u0001control\u0007bell",
    "&#x3c;script&#x3e;alert(1)&#x3c;/script&#x3e;",
    "constructor.prototype.__proto__",
    "</script x=1>",
    "<!--<script a",
]
LONG = "<b>" + "W" * 5000
CLASSES = [PAYLOADS[0], PAYLOADS[1], PAYLOADS[2]]
COLUMN = "<img src=x onerror=alert(2)>"  # name of the field with texts
QUESTION = "</h1><script>alert(3)</script>"  # name of the column with labels
FILE_NAME = '"><img src=x onerror=alert(4)>\u202e.csv'
GROUPS = ["<b onclick=alert(5)>north</b>", "</table><script>alert(6)</script>"]


def _csv(rows):
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def hostile_table(n_items: int = 40) -> str:
    """A table of labels whose columns, items, workers, classes and texts are hostile."""
    rows = [["item", "worker", QUESTION, COLUMN, "timestamp"]]
    for i in range(n_items):
        text = LONG if i == n_items - 1 else PAYLOADS[i % len(PAYLOADS)]
        for w in range(4):
            label = CLASSES[(i + (w >= 2)) % 3]
            when = f"2026-03-{1 + i % 28:02d}T10:0{w}:00"
            rows.append([f"{text} {i}", hostile_worker(w), label, f"{text} and more words", when])
    return _csv(rows)


def hostile_worker(number: int) -> str:
    """The id of a worker."""
    return f"{PAYLOADS[(3 + 7 * number) % len(PAYLOADS)]} {number}"


def hostile_groups() -> str:
    """The groups of the workers."""
    return _csv([["worker", "group"], *([hostile_worker(w), GROUPS[w % 2]] for w in range(4))])


def hostile_truth(n_items: int = 40) -> str:
    """The known classes of some items."""
    return _csv([["item", "label"], *([f"{PAYLOADS[i % len(PAYLOADS)]} {i}", CLASSES[i % 3]] for i in range(20))])


def write_hostile_report(folder, run_command):
    """Write the report of the hostile table, with everything that a command line can name."""
    source = folder / FILE_NAME
    source.write_text(hostile_table(), encoding="utf-8", newline="")
    (folder / "groups.csv").write_text(hostile_groups(), encoding="utf-8", newline="")
    (folder / "truth.csv").write_text(hostile_truth(), encoding="utf-8", newline="")
    page = folder / "report.html"
    command = [
        "report",
        str(source),
        "--label",
        QUESTION,
        "--item",
        "item",
        "--worker",
        "worker",
        "--worker-names",
        "ids",
        "-q",
    ]
    more = ["--compare", "--groups", str(folder / "groups.csv"), "--truth", str(folder / "truth.csv")]
    assert run_command([*command, *more, "--title", PAYLOADS[0], "-o", str(page)]) == 0
    return page
