# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: the Holdfast authors
"""Hits of Python's HTTP caches, for the benchmark `hit`, which starts this and asks for one turn after another.

    peers.py DIRECTORY

Reads one JSON object a line and answers each with one. First {"fill": {"tier", "length", "entries"}}: an origin on 127.0.0.1
serves the responses once, then it is gone, so whatever is answered afterwards was not fetched. Then any number of
{"turn": {"subject", "tier", "length", "seconds", "seed"}}, answered by {"seconds", "hits", "wrong"}. The end of the input ends it.
What fails is answered by {"error": "why"}.
"""

import json
import random
import sqlite3
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import hishel
import hishel.httpx
import httpx
import requests
import requests_cache

REQUEST_FIELDS = {
    "Accept": "application/json",
    "Accept-Encoding": "gzip, deflate, br",
    "Accept-Language": "en-GB,en;q=0.9,de;q=0.6",
    "User-Agent": "Catalogue/4.2 (iPhone; iOS 18.1)",
    "Referer": "https://www.example.com/catalogue",
    "Priority": "u=3",
    "X-Client-Version": "4.2.1",
    "X-Request-Source": "list",
}


def body_of(number, length):
    stamp = number.to_bytes(4, "little")
    return (stamp * (length // 4 + 1))[:length]


class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    length = 0

    def do_GET(self):
        number = int(self.path.split("?")[0].rsplit("/", 1)[1])
        body = body_of(number, self.length)
        # `send_response` would add a Date and a Server of its own.
        self.send_response_only(200)
        for name, value in {
            "Date": formatdate(usegmt=True),
            "Cache-Control": "public, max-age=86400",
            "ETag": f'"5f3b-{number}"',
            "Last-Modified": "Tue, 04 Nov 2025 08:12:31 GMT",
            "Content-Type": "application/json; charset=utf-8",
            "Content-Length": str(len(body)),
            "Vary": "Accept-Encoding",
            "Server": "example",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Hishel:
    """An httpx client whose transport is hishel's, by RFC 9111; SQLite in memory or in a file, as it has no other storage."""

    def __init__(self, tier, directory):
        if tier == "memory":
            connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
            storage = hishel.SqliteStorage(connection=connection)
        else:
            storage = hishel.SqliteStorage(database_path=directory / "hishel.db")
        self.client = hishel.httpx.CacheClient(storage=storage, rfc=True)

    def request(self, url):
        return self.client.build_request("GET", url, headers=REQUEST_FIELDS)

    def send(self, request):
        return self.client.send(request).content


class RequestsCache:
    """A requests session with requests-cache that goes by Cache-Control; a dictionary in memory, or SQLite in a file."""

    def __init__(self, tier, directory):
        if tier == "memory":
            backend = requests_cache.BaseCache(cache_name="memory")
        else:
            backend = requests_cache.SQLiteCache(str(directory / "requests-cache.sqlite"))
        self.session = requests_cache.CachedSession(backend=backend, cache_control=True)

    def request(self, url):
        return self.session.prepare_request(requests.Request("GET", url, headers=REQUEST_FIELDS))

    def send(self, request):
        return self.session.send(request).content


SUBJECTS = {"hishel": Hishel, "requests-cache": RequestsCache}


class Fixture:
    """Filled caches of one tier and length of body."""

    def __init__(self, tier, length, entries, directory):
        directory = directory / f"{tier}-{length}"
        directory.mkdir(parents=True, exist_ok=True)
        self.length = length
        origin = ThreadingHTTPServer(("127.0.0.1", 0), type("SizedOrigin", (Origin,), {"length": length}))
        thread = threading.Thread(target=origin.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        port = origin.server_address[1]
        # As long as the URLs of the other subjects.
        beginning = f"http://127.0.0.1:{port}/v2/catalogue/items/"
        path = [f"{beginning}{number:09}?fields=full" for number in range(entries)]
        self.caches, self.requests = {}, {}
        for name, make in SUBJECTS.items():
            cache = make(tier, directory)
            self.caches[name] = cache
            self.requests[name] = [cache.request(url) for url in path]
            for number, request in enumerate(self.requests[name]):
                if cache.send(request) != body_of(number, length):
                    raise RuntimeError(f"{name} did not fetch what the origin has")
        origin.shutdown()
        origin.server_close()

    def turn(self, name, seconds, seed):
        cache, requests_, length = self.caches[name], self.requests[name], self.length
        order = random.Random(seed).choices(range(len(requests_)), k=1024)
        hits, wrong, size = 0, 0, 1
        begun = time.perf_counter()
        end = begun
        while end - begun < seconds:
            for place in range(hits, hits + size):
                number = order[place % 1024]
                content = cache.send(requests_[number])
                first, last = (number >> 0) & 255, (number >> (8 * ((length - 1) % 4))) & 255
                if len(content) != length or content[0] != first or content[-1] != last:
                    wrong += 1
            hits += size
            now = time.perf_counter()
            if now - end < 0.002:
                size *= 2
            end = now
        return {"seconds": end - begun, "hits": hits, "wrong": wrong}


def main():
    directory = Path(sys.argv[1])
    fixtures = {}

    def answer(question):
        if "fill" in question:
            wanted = question["fill"]
            key = (wanted["tier"], wanted["length"])
            fixtures[key] = Fixture(*key, wanted["entries"], directory)
            return {"versions": {name: version(name) for name in SUBJECTS} | {"python": sys.version.split()[0]}}
        wanted = question["turn"]
        fixture = fixtures[wanted["tier"], wanted["length"]]
        return fixture.turn(wanted["subject"], wanted["seconds"], wanted["seed"])

    for line in sys.stdin:
        try:
            found = answer(json.loads(line))
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
