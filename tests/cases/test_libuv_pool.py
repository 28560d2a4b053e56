#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=120
# case: right | node's four pool threads hash passwords, and reads of small files queue behind them |
"""All threads of libuv's pool are busy, so that other tasks wait for a free one; a callback that parses JSON blocks node's event loop."""
import shutil
import time

from case import finish, record, say, script, start
from tap import ok, skip_all

if not shutil.which("node"):
    skip_all("node is not installed")
node = start("node", script("server.js", """const crypto = require('crypto');
function login() { crypto.pbkdf2('secret', 'salt', 100000, 64, 'sha512', login); }
for (let i = 0; i < 8; i++) login();
console.log('ready');
"""), until="ready")
time.sleep(1)
said = " ".join(say("report", record("-d", "3", "-p", node.pid)).split("\n\n")[0].split())
ok("all 4 threads of libuv's thread pool (UV_THREADPOOL_SIZE) were busy for 100% of the time: further tasks wait for a free one" in said,
   "the pool is said to be busy", said)
node.kill()
node = start("node", script("parse.js", """const text = JSON.stringify(Array.from({length: 400000}, (_, i) => ({item: i, name: 'n' + i})));
console.log('ready');
setInterval(() => JSON.parse(text), 10);
"""), until="ready")
time.sleep(1)
said = " ".join(say("report", record("-d", "3", "-p", node.pid)).split("\n\n")[0].split())
ok("an event loop called it, and was blocked meanwhile" in said or "it blocked the event loop" in said, "node's event loop is said to be blocked", said)
ok("Json" in said, "what blocked it is named", said)
finish()
