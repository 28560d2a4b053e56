# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""uvicorn + FastAPI: a coroutine validates 20,000 rows by pydantic, one by one, and blocks the event loop meanwhile."""
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field, field_validator

from lib import incident

MANIFEST = {
    "title": "uvicorn, pydantic validates many rows in a coroutine",
    "cause": "event loop",
    "words": [["event loop", "CPU", "comput", "GIL"]],
    "must": "cause",
    "clock": "blocked",
    "packages": ["uvicorn", "fastapi", "pydantic"],
}
app = FastAPI()
blocked = incident.Clock("blocked")
ROWS = [{"id": n, "email": f" User{n}@Example.org", "prices": [n, n / 7]} for n in range(20_000)]


class Order(BaseModel):
    id: int = Field(ge=0)
    email: str
    prices: list[float]

    @field_validator("email")
    @classmethod
    def normalise(cls, email):
        return email.strip().lower()


def parse_orders(rows):
    with blocked:
        return [Order.model_validate(row) for row in rows]  # cause


@app.get("/orders", response_class=PlainTextResponse)
async def orders():
    return str(len(parse_orders(ROWS)))


@app.get("/ping", response_class=PlainTextResponse)
async def ping():
    return "pong"


def main():
    port = incident.uvicorn(__file__)
    incident.load(port, "/orders", 1, 30)
    incident.load(port, "/ping", 3, 10)
    incident.serve(__file__)


if __name__ == "__main__":
    main()
