#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# test: waits timeout=240
# case: right | profilers: the user's line is right, but what the library did is deep in a flame graph |
"""The first findings name what a line did: tracebacks as text, the lazy loads of an ORM, a free thread that tasks of an
executor wait for."""
import os
import sys

import pip_packages
from case import FOLDER, finish, run, script, start
from tap import ok, skip

TRACEBACKS = """import traceback
def deep(n):
    return deep(n - 1) if n else 1 // 0
def audit():
    try:
        deep(40)
    except ZeroDivisionError:
        return traceback.format_exc()
print("ready", flush=True)
while True:
    audit()
"""

EXECUTOR = """import concurrent.futures, threading, time
pool = concurrent.futures.ThreadPoolExecutor(1, "mail")
def send():
    time.sleep(0.02)
def order():
    while True:
        pool.submit(send).result()
for _ in range(4):
    threading.Thread(target=order, daemon=True).start()
print("ready", flush=True)
order()
"""

LAZY = """import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column, relationship
class Base(DeclarativeBase):
    pass
class Customer(Base):
    __tablename__ = "customer"
    id = mapped_column(sa.Integer, primary_key=True)
    name = mapped_column(sa.String)
class Order(Base):
    __tablename__ = "orders"
    id = mapped_column(sa.Integer, primary_key=True)
    customer_id = mapped_column(sa.ForeignKey("customer.id"))
    customer = relationship(Customer)
engine = sa.create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all(Order(customer=Customer(name="x")) for _ in range(300))
    session.commit()
def totals():
    with Session(engine) as session:
        orders = session.scalars(sa.select(Order)).all()
        return len([order.customer.name for order in orders])
print("ready", flush=True)
while True:
    totals()
"""


def findings(python, name, text):
    """The first three findings about a program, as text without line breaks"""
    program = start(python, "-u", script(name, text), until="ready")
    path = os.path.join(FOLDER, "x.sonde")
    ended = run("record", "-f", "-o", path, "-d", "3", "-p", program.pid)
    assert not ended.returncode, ended.stderr
    program.kill()
    return " ".join(run("report", path).stdout.split("\n\n", maxsplit=1)[0].split())


found = findings(sys.executable, "audit.py", TRACEBACKS)
ok("audit (audit.py:8)" in found and "of that in tracebacks as text: traceback.format_exc" in found, "tracebacks", found)
found = findings(sys.executable, "orders.py", EXECUTOR)
ok("result in order (orders.py:7)" in found and "the only thread of the pool mail was busy for 100% of the time: tasks waited for a free one" in found,
   "an executor without a free thread", found)
venv = os.path.join(FOLDER, "venv/bin/python")
if pip_packages.install(venv, "sqlalchemy"):
    found = findings(venv, "totals.py", LAZY)
    ok("(totals.py:22)" in found and "of that in sqlalchemy's InstrumentedAttribute.__get__, mostly in lazy loads of related rows "
       "(N+1 queries): _LazyLoader._emit_lazyload" in found, "an ORM", found)
else:
    skip("an ORM", "sqlalchemy can't be installed")
finish()
