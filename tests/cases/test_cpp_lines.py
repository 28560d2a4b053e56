#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | perf, bcc: the function on the stack of a wait, without the line in it |
"""A C++ program with debug information: the lines that wait for a `std::mutex`, release it and compute meanwhile, also in inlined functions,
and their text. A file whose path is not known, or that was written after the program, is not quoted."""
import json
import os
import re
import shutil
import subprocess

from ahead import ahead
from case import FOLDER, finish, record, say, script, start
from tap import ok, skip

os.mkdir(os.path.join(FOLDER, "code"))
SOURCE = script("code/prices.cpp", """#include <chrono>
#include <map>
#include <mutex>
#include <thread>

class Prices {
	std::mutex mutex;
	std::map<int, double> prices;

    public:
	double look_up(int item)
	{
		std::lock_guard<std::mutex> guard(mutex); // waits
		return prices[item];
	}
	inline void rebuild()
	{
		mutex.lock();
		prices.clear();
		for (int i = 0; i < 300000; i++)
			prices[i % 30000] = i / 7.0; // computes
		mutex.unlock(); // releases
		count = prices.size();
	}
	volatile size_t count;
};

static Prices table;

__attribute__((noinline)) static void answer()
{
	for (int i = 0;; i++) {
		table.look_up(i % 100);
		std::this_thread::sleep_for(std::chrono::microseconds(200));
	}
}

int main()
{
	std::thread(answer).detach();
	std::thread(answer).detach();
	for (;;) {
		table.rebuild();
		std::this_thread::sleep_for(std::chrono::milliseconds(2));
	}
}
""")
with open(SOURCE, encoding="utf-8") as f:
    TEXT = f.read().splitlines()
LINES = {m[1]: n for n, line in enumerate(TEXT, 1) if (m := re.search("// (.*)", line))}


def at(function, mark):
    return f"Prices::{function} (prices.cpp:{LINES[mark]})"


def text(mark):
    return TEXT[LINES[mark] - 1].strip()


NO_FOLDER = f"-ffile-prefix-map={FOLDER}=."
LATER = "-DLATER"
for compiler, *flags in (("g++", "-O0"), ("g++", "-O0", NO_FOLDER), ("g++", "-O2"), ("g++", "-O2", "-gdwarf-4"), ("clang++", "-O2"), ("g++", "-O0", LATER)):
    has_path = NO_FOLDER not in flags
    title = " ".join([compiler, *flags]).replace(FOLDER, "FOLDER")
    if not shutil.which(compiler):
        skip(title, f"no {compiler}")
        continue
    program = os.path.join(FOLDER, "prices")
    subprocess.run([compiler, "-g", *flags, "-pthread", "-o", program, "code/prices.cpp"], check=True, cwd=FOLDER)
    if LATER in flags:
        later = os.stat(program).st_mtime + 1
        os.utime(SOURCE, times=(later, later))
    running = start(program, preexec_fn=ahead)
    trace = record("-d", "2", "-p", running.pid)
    found = json.loads(say("report", trace, "--format", "json"))["findings"][0]
    running.kill()
    running.wait()
    said = found["text"]
    ok(f"for a lock in {at('look_up', 'waits')}" in said and f"held by {at('rebuild', 'releases')}" in said and
       f"computed in {at('rebuild', 'computes')}" in said, title, said)
    ok((found["code"]["file"], found["code"]["line"]) == (SOURCE if has_path else "code/prices.cpp", LINES["waits"]), f"{title}: JSON", found["code"])
    quotes = [found[code]["source"] for code in ("code", "counterpart", "activity_code")]
    expected = [text(mark) if has_path and LATER not in flags else None for mark in ("waits", "releases", "computes")]
    ok(quotes == expected, f"{title}: text of the lines", quotes)
finish()
