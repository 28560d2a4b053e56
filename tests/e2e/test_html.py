#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: timeout=300 parallel gate
"""The HTML report: its content against `sonde report --format json`, what hostile names become of, its size, and what it does in a
headless Chromium with a mouse and a keyboard."""
import html.parser
import json
import os
import re
import subprocess
import time

import browser
import planted
import stacks_lib
from export_lib import TMP, export
from tap import done, ok, skip

SONDE, GOLDEN = os.environ["SONDE"], os.path.join(os.environ["ROOT"], "tests", "golden")
ROWS_MAX, MIB = 100, 1 << 20


class Page(html.parser.HTMLParser):
    """Elements, findings, and tables as lists of rows of texts"""

    def __init__(self, path):
        super().__init__()
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.tags, self.links, self.events, self.tables, self.findings = [], [], [], {}, []
        self.table, self.cell, self.script, self.flame, self.data = None, None, None, "", ""
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.links += [v for k, v in attrs.items() if k in ("src", "href") and not v.startswith("#")]
        self.events += [k for k in attrs if k.startswith("on")]
        if tag == "iframe":
            self.flame = attrs["srcdoc"]
        elif tag == "script":
            self.script = attrs.get("id", "")
        elif tag == "table":
            self.table = []
        elif tag == "tr" and self.table is not None:
            self.table.append([])
        elif tag in ("td", "th", "caption", "li"):
            self.cell = ""

    def handle_data(self, data):
        if self.script == "data":
            self.data += data
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        if tag == "script":
            self.script = None
        elif tag == "caption":
            self.tables.setdefault(self.cell, self.table)
        elif tag in ("td", "th") and self.table:
            self.table[-1].append(self.cell)
        elif tag == "table":
            self.table = None
        elif tag == "li":
            self.findings.append(self.cell)


def report(path, *words):
    p = subprocess.run([SONDE, "report", path, *words, "--format", "json", "-n", "0"], capture_output=True, text=True, check=True)
    return json.loads(p.stdout)


def made(name):
    path = os.path.join(TMP, name + ".sonde")
    schema = os.path.join(GOLDEN, name + ".schema.json")
    subprocess.run([stacks_lib.MAKE_TRACE, schema if os.path.exists(schema) else f"{GOLDEN}/schema.json", f"{GOLDEN}/{name}.events",
                    path], check=True)
    return path


def page_of(path, name):
    out = os.path.join(TMP, name + ".html")
    return (out, Page(out)) if export(path, "html", out) is not None else (out, None)


def check_markup(page, label):
    ok(page.tags.count("script") == 2 and page.tags.count("iframe") <= 1 and not {"img", "svg"} & set(page.tags) and
       not page.events and page.links == ["data:,"], f"{label}: names of targets become no elements, and nothing is loaded",
       (sorted(set(page.tags)), page.links, page.events))
    ok("default-src 'none'" in page.text and not re.search(r"https?:", page.text), f"{label}: the network is forbidden, and no address is named")
    ok(not set("<>&'") & set(page.data) and not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", page.text),
       f"{label}: the data hold no markup, and no control character is raw")


def check_content(path, page, label):
    summary = report(path)
    texts = [[f["headline"], *f["evidence"]] if "headline" in f else [f["text"]] for f in summary["findings"]]
    ok(len(texts) > 0 and all(any(found.startswith(parts[0]) and all(part in found for part in parts) for found in page.findings) for parts in texts),
       f"{label}: all findings", (texts, page.findings))
    commands = [f["next"] for f in summary["findings"] if "next" in f]
    ok(all(any(command in found for found in page.findings) for command in commands), f"{label}: with the commands that show more", commands)
    names = {"Processes": summary["tables"]["processes"], "CPU time by thread": summary["tables"]["threads"]}
    for name, rows in names.items():
        found = page.tables.get(name, [])
        # a row is of the headings
        ok(len(found) - 1 == min(len(rows), ROWS_MAX) if rows else not found, f"{label}: rows of table {name}", (len(found) - 1, len(rows)))
    lost = [line for line in page.findings if line.startswith(("lost ", "no losses", "Losses"))]
    ok(lost or not summary["losses"], f"{label}: losses are stated", page.findings[-3:])


def check_timeline(path, page, label):
    data = json.loads(page.data)
    threads = {(t["pid"], t["tid"]): t for t in report(path, "timeline")["tables"]["threads"]}
    shown = {(t[0], t[1]): t for t in data["threads"]}
    ok(shown.keys() == threads.keys(), f"{label}: the time line has the threads of report timeline", (len(shown), len(threads)))
    wrong = []
    for key, thread in shown.items():
        width, numbers, run = thread[6], thread[7], 0
        for _, cells, value in zip(numbers[::3], numbers[1::3], numbers[2::3]):
            share = (data["names"][value - 1][1] == 0) if value > 0 else (-value & 7) / 7
            run += cells * width * share
        # cells at both ends of an interval are rounded
        if abs(run - threads[key]["run_ns"]) > 0.02 * threads[key]["wall_ns"] + 1000:
            wrong.append((key, run, threads[key]["run_ns"]))
        if thread[5] != threads[key]["wall_ns"]:
            wrong.append((key, thread[5], threads[key]["wall_ns"]))
    ok(not wrong, f"{label}: with the time on CPUs that it has", wrong[:5])
    named = [f["pid"] for f in report(path)["findings"] if f.get("pid") in {t[0] for t in data["threads"]}]
    ok(not named or data["threads"][0][0] == named[0], f"{label}: the process of the first finding comes first", named[:3])


def check_gpus():
    path = made("gpu-export")
    _, page = page_of(path, "gpu-export")
    if not page:
        return
    data = json.loads(page.data)
    gpus = {(t[0], t[3]): t[4] for t in data["threads"] if t[1] < 0}
    busy = {(d["pid"], f"GPU {d['device']}"): d["busy_ns"] for d in report(path, "timeline")["tables"]["devices"]}
    ok(gpus == busy and busy, "a GPU is a line, with the time that it was busy", (gpus, busy))


def check_size():
    """Many different stacks, and a switch each ten microseconds"""
    s = stacks_lib.Stacks()
    schema = json.load(open(f"{GOLDEN}/schema.json", encoding="utf-8"))
    kinds = {e["name"] for e in schema["events"]}
    schema["events"] += [e for e in stacks_lib.SCHEMA["events"] if e["name"] not in kinds]
    schema["families"] += [f for f in stacks_lib.SCHEMA["families"] if f["id"] not in {g["id"] for g in schema["families"]}]
    schema["enums"] += [e for e in stacks_lib.SCHEMA["enums"] if e["name"] not in {g["name"] for g in schema["enums"]}]
    root = s.frame(0, s.function("main", "/srv/app.py"), 1)
    for i in range(20000):
        leaf = s.frame(root, s.function(f"function_{i}_" + "x" * 200, f"/srv/module_{i}.py"), 1)
        s.sample(1 + i * 1e-5, 100, leaf, 1000000 + i)
    for i in range(40000):
        tid, at = 100 + i % 40, 1 + i // 40 * 1e-3
        s.line("sched_run", pid=100, tid=tid, cpu=0, start=f"@{at:.9f}", time=f"@{at + 0.0005:.9f}", state="SCHED_SLEEP")
        s.line("sched_off", pid=100, tid=tid, cpu=0, start=f"@{at + 0.0005:.9f}", time=f"@{at + 0.001:.9f}", wake="0", state="SCHED_SLEEP")
    path = s.write(TMP, "large", schema)
    out, page = page_of(path, "large")
    if page:
        size = os.path.getsize(out)
        ok(size < 6 * MIB, f"a page of 20,000 functions and 80,000 intervals takes {size / MIB:.1f} MiB")
        flame = json.loads(re.search(r'id="data">(.*?)</script>', page.flame, re.S).group(1))
        view = next(v for v in flame["views"] if v["id"] == "on-cpu")
        ok(sum(view["nodes"][2::4]) == sum(s.weights["on-cpu"].values()), "its flame graph has all of the time",
           (len(view["nodes"]) // 4, len(flame["functions"])))
        check_timeline(path, page, "large")


def center(page, selector):
    return page.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                    " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2, r.x, r.width]; })()")


def check_rows(page, parsed):
    counts = page.run("[...document.querySelectorAll('#reports table')].map(t => [t.caption.textContent, t.tBodies[0].rows.length])")
    wrong = [(name, n) for name, n in counts if name in parsed.tables and n != len(parsed.tables[name]) - 1 and
             [c[0] for c in counts].count(name) == 1]
    ok(counts and not wrong, f"the browser has all {len(counts)} tables with their rows", wrong)
    page.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    numbers = """(() => { const t = [...document.querySelectorAll('#reports table')].find(t => t.caption.textContent === 'CPU time by thread');
        const c = [...t.tHead.rows[0].cells].findIndex(h => h.textContent.startsWith('On CPU'));
        t.tHead.rows[0].cells[c].querySelector('button').%s;
        return [t.tHead.rows[0].cells[c].getAttribute('aria-sort'), [...t.tBodies[0].rows].map(r => +r.cells[c].dataset.v)]; })()"""
    order, values = page.run(numbers % "click()")
    ok(order == "descending" and values == sorted(values, reverse=True), "a click on a heading sorts by figures", values)
    page.run(numbers % "focus()")
    page.key("Enter")
    order, values = page.run(numbers % "focus()")
    ok(order == "ascending" and values == sorted(values), "a second one, by the keyboard, the other way round", values)


def check_mouse(page):
    _, y, x, width = center(page, "#rows .row canvas")
    threads = page.run("document.querySelectorAll('#rows .row').length")
    ok(threads == 2, "the time line has a row a thread", threads)
    # 1 to 1.5 s of 2: it runs
    page.mouse(x + width * 0.6, y)
    detail = page.run("detail.textContent")
    ok("on a CPU" in detail and "500.000 ms, from 1.000000 to 1.500000 s" in detail.replace(" s to ", " to "), "a click shows an interval", detail)
    page.key("ArrowRight")
    detail = page.run("detail.textContent")
    ok("249.900 ms" in detail and "</script><script>alert(1)</script>" in detail, "the right arrow the next one, in a call with a hostile name", detail)
    page.key("Enter")
    axis = page.run("[...document.querySelectorAll('#axis span')].map(s => parseFloat(s.textContent))")
    ok(axis and min(axis) >= 1.4 and max(axis) <= 1.85, "Enter zooms to it", axis)
    page.key("Escape")
    axis = page.run("[...document.querySelectorAll('#axis span')].map(s => parseFloat(s.textContent))")
    ok(axis == [0, 0.5, 1, 1.5] or (min(axis) < 0.3 and max(axis) > 1.7), "Escape shows the whole time", axis)
    page.key("ArrowDown")
    ok("4712" in page.run("document.activeElement.textContent"), "the down arrow goes to the next thread", page.run("document.activeElement.textContent"))
    drawn = page.run("""(() => { const c = document.querySelector('#rows .row canvas'), d = c.getContext('2d').getImageData(0, c.height / 2, c.width, 1).data;
        let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n / c.width; })()""")
    ok(0.45 < drawn < 0.55, "it is drawn where the thread's state is known, and only there", drawn)


def check_filter(page):
    page.run("filter.value = '4712'; filter.dispatchEvent(new Event('input'))")
    ok(page.run("[...document.querySelectorAll('#rows .row')].filter(r => !r.hidden).length") == 1 and
       page.run("shown.textContent") == "1 of 2 threads and GPUs", "the filter leaves one thread", page.run("shown.textContent"))
    page.run("filter.value = ''; filter.dispatchEvent(new Event('input'))")


def check_themes(page):
    backgrounds = []
    for scheme in ("light", "dark"):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        backgrounds.append(page.run("(() => { const c = document.createElement('canvas').getContext('2d'); c.fillStyle = 'Canvas';"
                                    " document.body.style.background = 'Canvas'; return getComputedStyle(document.body).backgroundColor; })()"))
    ok(backgrounds[0] != backgrounds[1], "it is light or dark as the system is", backgrounds)


def check_browser(page, out, parsed):
    page.open(out)
    ok(page.run("document.title") == "html.sonde - sonde" or page.run("document.title").endswith(".sonde - sonde"), "the page opens",
       page.run("document.title"))
    check_rows(page, parsed)
    check_mouse(page)
    check_filter(page)
    check_themes(page)
    ok("<img src=x on" in page.run("rows.textContent"), "hostile names are shown as they are")
    ok(not page.complaints, "no script failed, no name was run, nothing was refused", page.complaints)
    ok(set(page.requests) <= {"file://" + out, "data:,"}, "nothing but the file was read", page.requests)


def check_flame(page, out):
    page.open(out)
    frames = page.run("document.querySelector('iframe').contentDocument.querySelectorAll('.f').length")
    ok(frames > 10, "the flame graph is drawn in its frame", frames)
    ok(page.run("document.title").endswith(" - sonde") and not page.complaints, "no hostile name of a function is run", page.complaints)


def planted_wait(folder):
    """A thread that waits for a second in ask(), which is called by main(), until thread 21 of process 20 ends the wait"""
    stack, frame = planted.code(1, "main /srv/a.py 3", "ask /srv/a.py 7", "<img> /srv/b.py 9")
    lines = [*planted.process(10, "client"), *planted.process(20, "server"), *stack, planted.run(10, 10, 0.5, 1),
             planted.off(10, 10, 1, 2, 2, "SCHED_SLEEP", waker=20), planted.off_stack(10, 10, 1, 2, frame, "SYS_recvfrom", "SAMPLE_IO"),
             planted.run(10, 10, 2, 7.5), planted.run(20, 20, 1.5, 2)]
    lines += [f"sample_cpu pid=10 tid=10 time=@{2 + i * 0.1:.1f} period=100000000 stack={frame}" for i in range(50)]
    return planted.written(folder, "wait", [*lines, planted.END], planted.merged_schema(folder), "proc,sched,gil,sample")[0]


def check_details(page):
    """What a click on an interval and the buttons of findings show of planted_wait()"""
    _, y, x, width = center(page, "#rows .row[aria-label^=client] canvas")
    begin, end = page.run("(() => { const d = JSON.parse(data.textContent); return [d.from, d.to]; })()")
    page.mouse(x + width * (1.5e9 - begin) / (end - begin), y)
    lines = page.run("detail.textContent").split("\n")
    ok(lines[0] == "client, process 10, thread 10" and lines[1].startswith("recvfrom"), "a click on a wait: the thread, and the call", lines)
    ok(re.match(r"(1\.000 s|1000\.\d+ ms|999\.\d+ ms), from 1\.00000\d s to 2\.00000\d s", lines[2]), "when, rounded to a cell", lines)
    ok(lines[3:6] == ["in b.py:9 <img>", "called by a.py:7 ask", "called by a.py:3 main"], "its stack, in which names of targets are no elements", lines)
    ok(lines[6:] == ["ended by server 20"], "and who ended it", lines)
    page.mouse(x + width * (0.75e9 - begin) / (end - begin), y)
    ok("ended by" not in page.run("detail.textContent"), "an interval on a CPU has no such thread", page.run("detail.textContent"))
    buttons = page.run("[...document.querySelectorAll('#findings li button')].map(b => b.textContent)")
    ok("process 10 in the time line" in buttons and "<img> in the flame graph" in buttons, "findings have buttons", buttons)
    page.run("[...document.querySelectorAll('#findings li button')].find(b => b.textContent.startsWith('process 10')).click()")
    ok("ms, from 1.0000" in page.run("detail.textContent") and page.run("filter.value") == "10",
       "that of the time line shows the longest interval in the finding's function", page.run("detail.textContent"))
    page.run("[...document.querySelectorAll('#findings li button')].find(b => b.textContent.startsWith('<img>')).click()")
    found = page.run("(() => { const d = document.querySelector('#flame iframe').contentDocument; return [d.getElementById('search').value,"
                     " d.getElementById('matched').dataset.amount, d.querySelector('[aria-selected=true]').dataset.view]; })()")
    ok(found == ["<img>", "5000000000", "on-cpu"], "that of the flame graph searches the function, which has 50 samples of 100 ms", found)
    ok(not page.complaints and not [r for r in page.requests if not r.startswith(("file:", "data:", "about:"))], "without a complaint, or a request",
       (page.complaints, page.requests))


def check_without_script(page, out):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    page.call("Page.navigate", url="file://" + out)
    names, until = set(), time.monotonic() + 60
    while "CPU time by thread" not in names and time.monotonic() < until:
        time.sleep(0.05)
        names = {n.get("name", {}).get("value", "") for n in page.call("Accessibility.getFullAXTree")["nodes"]}
    ok(any("ran on a CPU" in n for n in names) and {"Processes", "CPU time by thread"} <= names,
       "without scripts findings and tables are there", sorted(names)[:5])
    ok(any("A script of this page draws" in n for n in names), "and it says that a script draws the time line")
    page.call("Emulation.setScriptExecutionDisabled", value=False)


def main():
    hostile, parsed = page_of(made("html"), "html")
    if parsed:
        check_markup(parsed, "hostile names")
        check_content(os.path.join(TMP, "html.sonde"), parsed, "hostile names")
        check_timeline(os.path.join(TMP, "html.sonde"), parsed, "hostile names")
    stacks, stack_page = page_of(stacks_lib.sample_trace(TMP)[1], "stacks")
    if stack_page:
        check_markup(stack_page, "stacks")
    run = made("run")
    _, page = page_of(run, "run")
    if page:
        check_content(run, page, "run")
        check_timeline(run, page, "run")
    check_gpus()
    check_size()
    wait, page = page_of(planted_wait(TMP), "wait")
    if page:
        check_markup(page, "a wait")
    program = browser.find()
    if not program:
        skip("the page in a browser", "no chromium (Debian's package chromium)")
        done()
    page = browser.Browser(program, TMP)
    try:
        check_browser(page, hostile, parsed)
        check_flame(page, stacks)
        page.open(wait)
        check_details(page)
        check_without_script(page, hostile)
    finally:
        page.close()
    done()


main()
