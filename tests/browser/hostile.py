"""Texts that try to run as code, leave their place, or change how the page is read (HARDENING 4.8, S1)."""

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
    "line\u2028separator",
    "\u202eoverride",
    "url(https://example.org/x.png)",
    "\x1b[31mred",
    "' onmouseover='alert(1)",
    "&lt;b&gt; &amp;amp;",
    "</title><h1>x</h1>",
    "</style><style>*{display:none}</style>",
    "http://example.org/pixel.gif",
]


def hostile_table(n_items: int = 30) -> str:
    """A table of labels whose items, workers, classes and texts are hostile."""
    rows = ["item,worker,label,text"]
    classes = PAYLOADS[:3]
    for i in range(n_items):
        text = PAYLOADS[i % len(PAYLOADS)].replace('"', '""')
        for w in range(4):
            label = classes[(i + (w >= 2)) % 3].replace('"', '""')
            worker = PAYLOADS[(3 + w) % len(PAYLOADS)].replace('"', '""')
            rows.append(f'"{text} {i}","{worker}","{label}","{text}"')
    return "\n".join(rows) + "\n"
