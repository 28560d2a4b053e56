#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300 parallel gate
"""The flame graph page: its markup, and its behaviour in a headless Chromium with mouse and keyboard. Totals are
compared with those that the trace was written with."""
import html.parser
import os
import re

import browser
import stacks_lib
from export_lib import TMP, export
from tap import done, ok, skip

VIEWS = (("on-cpu", "sample_cpu"), ("off-cpu", "sample_off"), ("gil-wait", "gil_wait"), ("gil-blame", "pieces"))
FRAMES = """[...document.querySelectorAll('.f')].map(f => { const r = f.getBoundingClientRect();
    const box = chart.getBoundingClientRect();
    return {node: +f.dataset.node, depth: +f.dataset.depth, text: f.textContent, say: f.getAttribute('aria-label'),
            x: r.x, y: r.y, row: Math.round(r.y - box.y), w: r.width, hit: f.classList.contains('hit'), up: f.classList.contains('up')}; })"""


class Elements(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href")]


def check_file(path):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    elements = Elements()
    elements.feed(page)
    ok(elements.tags.count("script") == 2 and "img" not in elements.tags and elements.links == ["data:,"],
       "page: names of targets can't become elements, and nothing is loaded", (elements.tags, elements.links))
    data = re.search(r'id="data">(.*?)</script>', page, re.S).group(1)
    ok(not set("<>&'") & set(data) and not re.search(r"[\0-\t\v-\x1f\u2028\u202e]", data), "page: the data contain no markup")
    ok(not re.search(r"https?:(?!//schemas)", page.replace(data, "")), "page: it contains no URL")


def frames(page):
    return page.run(FRAMES)


def places(page):
    """The positions of all frames, independent of scrolling"""
    return [{k: v for k, v in f.items() if k != "y"} for f in frames(page)]


def choose(page, view):
    x, y = page.run(f"(() => {{ const r = document.querySelector(\"[data-view='{view}']\").getBoundingClientRect();"
                    " return [r.x + 5, r.y + 5]; })()")
    page.mouse(x, y)


def check_totals(page, stacks):
    for view, kind in VIEWS:
        choose(page, view)
        total, events = page.run("[+totals.dataset.total, +totals.dataset.events]")
        want = sum(stacks.weights[view].values())
        ok((total, events) == (want, stacks.events[kind]), f"{view}: total equals the trace's: {want} ns", (total, events))
        root = next(f for f in frames(page) if f["node"] == 0)
        ok(f"({want:,} ns)" in root["say"], f"{view}: the root has the total", root)
        of_process = {}
        for (pid, *_), ns in stacks.weights[view].items():
            of_process[pid] = of_process.get(pid, 0) + ns
        shown = sorted(f["w"] / root["w"] for f in frames(page) if f["depth"] == 1)
        want = sorted(ns / sum(of_process.values()) for ns in of_process.values())
        ok(len(shown) == 3 and all(abs(a - b) < 0.005 for a, b in zip(shown, want)), f"{view}: processes have proportional widths", (shown, want))


def below(stacks, view, name):
    """(ns of all stacks that contain a function, {process: ns})"""
    return sum(ns for (_, stack, *holder), ns in stacks.weights[view].items()
               if any(f[0] == name for s in (stack, *(h for h in holder if h in stacks.frames)) for f in stacks.path(s)))


def check_search(page, stacks):
    for view in ("on-cpu", "gil-blame"):
        choose(page, view)
        page.key("/")
        page.type("ITERenc")
        want, found = below(stacks, view, "iterencode"), page.run("+matched.dataset.amount")
        ok(found == want > 0, f"{view}: search finds all of a function's time, once", (found, want))
        marked = [f for f in frames(page) if f["hit"]]
        ok(marked and all("iterencode" in f["say"] or "encoder.py" in f["say"] for f in marked) and
           all(f["hit"] for f in frames(page) if "iterencode" in f["say"]), f"{view}: found frames are marked")
        page.key("Enter")
        ok("iterencode" in page.run("document.activeElement.getAttribute('aria-label')"), f"{view}: Enter goes to a hit")
        page.key("Escape")
        ok(page.run("[search.value, matched.textContent]") == ["", ""] and not any(f["hit"] for f in frames(page)),
           f"{view}: Escape ends the search")
    page.key("/")
    page.type("(broken[")
    ok(page.run("matched.dataset.amount") == "0" and not page.complaints, "search accepts an invalid regular expression as plain text")
    page.key("Escape")
    page.key("/")
    page.type("^(main|memcpy)$")
    want = sum(ns for (_, stack), ns in stacks.weights["gil-wait"].items()
               if any(f[0] in ("main", "memcpy") for f in stacks.path(stack)))
    page.run("document.activeElement.blur()")
    page.key("3")
    ok(page.run("+matched.dataset.amount") == want, "search accepts regular expressions, and stays active in another tab",
       (page.run("+matched.dataset.amount"), want))
    page.key("Escape")


def check_zoom(page, stacks):
    choose(page, "on-cpu")
    before, still = frames(page), places(page)
    wide = max((f for f in before if f["text"].startswith("iterencode")), key=lambda f: f["w"])
    page.mouse(wide["x"] + 2, wide["y"] + 5)
    after = frames(page)
    mine = next(f for f in after if f["node"] == wide["node"])
    root = next(f for f in after if f["node"] == 0)
    ok(abs(mine["w"] - root["w"]) < 1 and mine["w"] > wide["w"], "a click zooms: the frame is as wide as the chart", (wide, mine))
    ok([f["text"] for f in after if f["up"]][:2] == ["all", before[1]["text"]] or sum(f["up"] for f in after) == wide["depth"],
       "its callers stay and are dimmed", [f["text"] for f in after if f["up"]])
    hidden = {f["node"] for f in before} - {f["node"] for f in after}
    ok(hidden and {f["node"] for f in after if f["depth"] > mine["depth"]} <= {f["node"] for f in before} | {f["node"] for f in after},
       "frames beside it are hidden")
    page.mouse(mine["x"] + 50, mine["y"] + 5, click=False)
    tip = page.run("tip.hidden ? '' : tip.textContent")
    ok(re.search(r"ns\), [\d.]+% of all, 100\.00% of what is zoomed", tip) and "encoder.py:200" in tip, "the tooltip has the time and the percentage", tip)
    x, y = page.run("(() => { const r = reset.getBoundingClientRect(); return [r.x + 5, r.y + 5]; })()")
    page.mouse(x, y)
    ok(places(page) == still, "reset zooms out", [d for d in zip(places(page), still) if d[0] != d[1]][:2])
    for _ in range(3):
        page.key("ArrowUp")
    at = page.run("+document.activeElement.dataset.node")
    page.key("Enter")
    ok(at and page.run(f"document.querySelector(\"[data-node='{at}']\").getBoundingClientRect().width") == root["w"],
       "arrow keys and Enter zoom", at)
    ok(re.search(r"ns\), [\d.]+% of all", page.run("detail.textContent")), "the focused frame is described below the chart")
    page.key("ArrowDown")
    ok(page.run("+document.activeElement.dataset.node") != at, "arrow keys go to callers")
    page.key("Escape")
    ok(places(page) == still, "Escape zooms out")
    page.key("ArrowUp")
    left = page.run("document.activeElement.dataset.node")
    page.key("ArrowRight")
    page.key("ArrowLeft")
    ok(page.run("document.activeElement.dataset.node") == left, "arrow keys go left and right")
    page.run("icicle.click()")
    top = {f["node"]: f["y"] for f in frames(page)}
    ok(min(top.values()) == top[0], "an option draws the root at the top")
    page.run("icicle.click()")


def check_blame(page, stacks):
    """The holder's stack is drawn upside down above the waiter's."""
    choose(page, "gil-blame")
    (pid, stack, holder), _ = max(((k, v) for k, v in stacks.weights["gil-blame"].items() if k[2] in stacks.frames and len(stacks.path(k[2])) in (3, 4)
                                   and k[1] and len(stacks.path(k[1])) < 5), key=lambda kv: kv[1])
    want = [f[0] for f in stacks.path(stack)] + [stacks_lib.HELD] + [f[0] for f in stacks.path(holder)][::-1]
    found = page.run("""(() => { const data = JSON.parse(document.getElementById('data').textContent);
        const v = data.views[3].nodes, out = []; for (let i = 0; i < v.length / 4; i++) { if (!v[4 * i + 2]) continue;
        const path = []; for (let at = i; at; at = v[4 * at]) path.unshift(data.functions[v[4 * at + 1]][0]); out.push(path); }
        return out; })()""")
    shown = [p[1:] for p in found if p[0].endswith(str(pid))]
    ok(want in shown or not all(isinstance(n, str) for n in want), "blame: the data have the waiter's stack and above it the holder's, reversed", want)
    holders = [f for f in frames(page) if f["text"] == stacks_lib.HELD]
    ok(holders and all(any(g["depth"] == f["depth"] + 1 and f["x"] - 1 <= g["x"] <= f["x"] + f["w"] for g in frames(page))
                       for f in holders if f["w"] > 5), "blame: the stacks are drawn in this order")


def main():
    stacks, path = stacks_lib.sample_trace(TMP)
    out = os.path.join(TMP, "flame.html")
    if export(path, "flame", out) is None:
        done()
    check_file(out)
    program = browser.find()
    if not program:
        skip("the page in a browser", "no chromium (Debian's package chromium)")
        done()
    page = browser.Browser(program, TMP)
    try:
        page.open(out)
        ok(page.run("document.title") == os.path.basename(path) + " - sonde" or page.run("document.title").endswith(" - sonde"),
           "the page opens", page.run("document.title"))
        ok(page.run("missing.textContent") == "The recording was cut off.", "the page says what is missing", page.run("missing.textContent"))
        check_totals(page, stacks)
        check_search(page, stacks)
        check_zoom(page, stacks)
        check_blame(page, stacks)
        texts = " ".join(f["say"] for f in frames(page))
        ok("</script><script>" in texts or "owned" in texts, "hostile names are shown as text", texts[:300])
        ok(not page.complaints, "no script failed, nothing was refused", page.complaints)
        ok(page.requests == ["file://" + out] or set(page.requests) <= {"file://" + out, "data:,"}, "nothing but the file was read", page.requests)
        empty = os.path.join(TMP, "none.html")
        export(stacks_lib.old_trace(TMP), "flame", empty)
        page.open(empty)
        ok(page.run("totals.textContent") == "The trace has none." and not page.complaints, "the page of a trace without stacks says so")
    finally:
        page.close()
    done()


main()
