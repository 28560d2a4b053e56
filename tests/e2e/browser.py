# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A headless Chromium, driven over the pipes of --remote-debugging-pipe: real mouse and key events, no library."""
import json
import os
import select
import shutil
import subprocess
import time

KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "ArrowUp": (38, ""), "ArrowDown": (40, ""), "ArrowLeft": (37, ""),
        "ArrowRight": (39, ""), "Tab": (9, "")}


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    def __init__(self, program, folder):
        to_read, self.out = os.pipe()
        self.inp, to_write = os.pipe()
        # the browser reads from descriptor 3 and writes to 4
        shell = f'exec 3<&{to_read} 4>&{to_write}; exec "$0" "$@"'
        self.errors = open(os.path.join(folder, "browser.log"), "wb")
        self.child = subprocess.Popen(
            ["/bin/bash", "-c", shell, program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--remote-debugging-pipe", "--no-first-run", "--window-size=1200,900", f"--user-data-dir={folder}/profile", "about:blank"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=self.errors, stderr=self.errors,
            env={**os.environ, "HOME": folder})
        os.close(to_read)
        os.close(to_write)
        self.count, self.buffer, self.session = 0, b"", None
        self.requests, self.complaints = [], []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def _message(self, until):
        while b"\0" not in self.buffer:
            if not select.select([self.inp], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.inp, 1 << 20)
            if not data:
                raise OSError("the browser has ended")
            self.buffer += data
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60
        while True:
            answer = self._message(until)
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise OSError(f"{method}: {answer['error']}")
                return answer["result"]
            self._event(answer)

    def _event(self, event):
        if event["method"] == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])
        elif event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(event["params"]["exceptionDetails"])
        elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] in ("error", "warning"):
            self.complaints.append(event["params"]["entry"]["text"])
        elif event["method"] == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog")

    def open(self, path):
        self.requests.clear()
        self.complaints.clear()
        self.call("Page.navigate", url="file://" + path)
        until = time.monotonic() + 60
        while self.run("document.readyState") != "complete" or not self.run("location.href").startswith("file:"):
            if time.monotonic() > until:
                raise TimeoutError("the page does not load")
            time.sleep(0.02)

    def run(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise OSError(result["exceptionDetails"])
        return result["result"].get("value")

    def mouse(self, x, y, click=True):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key):
        code, text = KEYS[key] if key in KEYS else (ord(key.upper()), key)
        more = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except OSError:
            pass
        for fd in (self.inp, self.out):
            os.close(fd)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.errors.close()
