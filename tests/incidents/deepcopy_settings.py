# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""gunicorn + Flask: each request makes a deep copy of the settings of all tenants to change one of them."""
import copy

from flask import Flask

from lib import incident

MANIFEST = {
    "title": "`copy.deepcopy` for each request",
    "cause": "CPU",
    "words": [["CPU", "comput", "GIL"]],
    "must": "cause",
    "clock": "copies",
    "share": "sum",
    "packages": ["flask", "gunicorn"],
}
app = Flask(__name__)
copies = incident.Clock("copies")
SETTINGS = {f"tenant{n}": {"limits": {"rate": n, "burst": [n, n + 1]}, "flags": ["a", "b"]} for n in range(1500)}


def settings_for(tenant, language):
    with copies:
        settings = copy.deepcopy(SETTINGS)  # cause
    settings[tenant]["language"] = language
    return settings[tenant]


@app.get("/settings/<tenant>")
def settings(tenant):
    return settings_for(tenant, "en")


def main():
    incident.load(incident.gunicorn(__file__, 1, 2), "/settings/tenant7", 1, 5)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
