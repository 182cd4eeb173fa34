"""Queries of found.json, whose results once differed from those of Apache Flink 2.3.0, and the tables that they read."""
import json
import os

from harness import case
from inputs import changes, events, rows, upserts, versions

ORDERS = [(1, "ann", "pen", 3, 1.5), (2, "bob", "ink", 1, 7.25), (3, "ann", "pad", 2, 4.0), (4, "cyd", "pen", 10, 1.25),
          (5, None, "pad", 1, 4.0), (6, "bob", "pen", None, 1.5), (7, "ann", "ink", 4, None), (8, "dee", "cup", 6, 3.5),
          (9, "cyd", "cup", 2, 3.5), (10, "bob", "pad", 5, 3.75), (11, "ann", "pen", 1, 1.5), (12, None, None, 7, 2.0)]
CLICKS = [(1, "ann", "home", 3), (2, "bob", "home", 5), (4, "ann", "cart", 1), (7, "cyd", "home", 2), (9, "bob", "cart", 8),
          (11, "ann", "pay", 4), (14, "cyd", "cart", 6), (15, "ann", "home", 2), (21, "bob", "pay", 9), (22, "ann", "cart", 5),
          (29, "cyd", "pay", 1), (33, "ann", "home", 7), (34, "bob", "home", 3), (48, "cyd", "home", 4)]
PRICES = [("+I", "pen", 10), ("+I", "ink", 40), ("-U", "pen", 10), ("+U", "pen", 12), ("+I", "cup", 30), ("-D", "ink", 40),
          ("-U", "cup", 30), ("+U", "cup", 25), ("+I", "pad", 25), ("-U", "pen", 12), ("+U", "pen", 9)]
TICKS = [(1, "acme", 12), (2, "acme", 17), (3, "zorg", 5), (4, "acme", 13), (5, "acme", 16), (6, "zorg", 4), (7, "acme", 25), (8, "acme", 2),
         (9, "zorg", 3), (10, "acme", 4), (11, "acme", 10), (12, "zorg", 9), (13, "acme", 15), (14, "zorg", 8), (15, "acme", 25), (16, "acme", 11)]


def orders(t):
    rows(t, "orders", "id INT, customer STRING, item STRING, qty INT, price DOUBLE", ORDERS)


def customers(t):
    rows(t, "customers", "name STRING, city STRING", [("ann", "Ulm"), ("bob", "Bonn"), ("cyd", "Ulm"), ("eve", "Kiel"), (None, "Nowhere")])


def clicks(t, delay=0):
    events(t, "clicks", "who STRING, page STRING, n INT", CLICKS, delay)


def clicks5(t):
    clicks(t, 5)


def alarms(t):
    events(t, "alarms", "who STRING, level INT", [(3, "ann", 1), (8, "dee", 2), (13, "cyd", 1), (16, "ann", 3), (45, "cyd", 2)])


def prices(t):
    changes(t, "prices", "item STRING, price INT", PRICES)


def stock(t):
    changes(t, "stock", "item STRING, n INT", [("+I", "pen", 5), ("+I", "jar", 1), ("-U", "pen", 5), ("+U", "pen", 4), ("+I", "pad", 9), ("-D", "jar", 1)])


def ticks(t):
    events(t, "ticks", "sym STRING, price INT", TICKS)


def ups(t):
    upserts(t, "u", "k STRING, v INT", [("+I", "a", 1), ("+U", "b", 2), ("+U", "a", 3), ("-D", "b", None), ("+I", "a", 3), ("+U", "c", 4), ("-D", "z", None), ("+U", "d", 3)], key=("k",))


def rates(t):
    versions(t, "rates", "cur STRING, rate INT", [("+I", 0, "eur", 100), ("+I", 1, "usd", 90), ("-U", 0, "eur", 100), ("+U", 10, "eur", 105), ("-D", 20, "usd", 90), ("+I", 24, "yen", 1)], key=("cur",))


def pays(t):
    events(t, "o", "id INT, cur STRING, amount INT", [(2, 1, "eur", 10), (5, 2, "usd", 20), (12, 3, "eur", 30), (15, 4, "yen", 40), (25, 5, "usd", 50)])


LATE = [(1, "a", 1), (5, "a", 2), (3, "a", 4), (9, "b", 8), (4, "b", 16), (6, "a", 32), (12, "a", 64), (11, "b", 128), (25, "b", 256), (18, "a", 512),
        (24, "b", 1024), (40, "a", 2048), (23, "a", 4096), (39, "b", 8192)]


def l0(t):
    events(t, "e", "k STRING, v INT", LATE)


def l3(t):
    events(t, "e", "k STRING, v INT", LATE, 3)


def prepare(t, kind, *words):
    if kind == "input":
        globals()[words[0]](t)
    elif kind == "run":
        t.execute_sql(words[0])
    else:
        t.get_config().set(*words)


def register(name, found):
    def fn(t):
        for one in found["inputs"]:
            prepare(t, *one)
        return found["sql"]
    fn.__name__ = name
    case(mode=found["mode"], order=found["order"], error="error" in found["expected"])(fn)


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "found.json")) as f:
    for name, found in json.load(f).items():
        register(name, found)
