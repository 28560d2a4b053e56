# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: each request imports its plugin anew, in a container without byte code files, so that it is compiled each time."""
import importlib.util
import os

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "a plugin imported for each request",
    "cause": "import",
    "words": [["import", "compil"]],
    "must": "cause",
    "clock": "imports",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
imports = incident.Clock("imports")


def load_plugin(path):
    spec = importlib.util.spec_from_file_location("discount", path)
    plugin = importlib.util.module_from_spec(spec)
    with imports:
        spec.loader.exec_module(plugin)  # cause
    return plugin


@app.get("/price/<path:plugin>")
def price(plugin):
    return str(load_plugin("/" + plugin).discount_7(100))


def main():
    path = incident.folder() + "/discount.py"
    incident.write(path, "".join(f"def discount_{n}(price):\n    if price > {n}:\n        return price * {n} / 100\n    return price\n\n\n"
                                 for n in range(600)))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    incident.load(incident.gunicorn(__file__, 1, 2), f"/price{path}", 1, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
