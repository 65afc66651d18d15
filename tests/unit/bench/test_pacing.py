"""What bench.index_rates makes of the counters of region servers, and how it draws it."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from xml.etree import ElementTree

from bench.pacing.counters import Counts, read_counts
from bench.pacing.drawing import Drawn, draw


def test_what_was_read_meanwhile_is_told_by_table_and_by_server() -> None:
    before = Counts((10.0, 10.5), {(1, "trips"): 100, (2, "trips"): 50}, throttled=3)
    later = Counts((20.0, 30.5), {(1, "trips"): 400, (2, "trips"): 250, (2, "orders"): 30}, throttled=7)
    meanwhile = later.since(before)
    assert (meanwhile.at, meanwhile.throttled) == ((10.0, 20.0), 4)
    assert (meanwhile.of_table("trips"), meanwhile.of_table("orders")) == (500, 30)
    assert (meanwhile.rate_of_server(1), meanwhile.rate_of_server(2)) == (30.0, 11.5)


def test_bars_are_as_high_as_what_was_counted_and_marks_as_what_was_allowed() -> None:
    drawn = draw([Drawn("1", 1_000, 500)], [Drawn("<trips>", 2_000, 2_000), Drawn("orders", 500, 0)])
    heights = [float(height) for height in re.findall(r'<rect x="[^"]*" y="[^"]*" width="44" height="([^"]*)"', drawn)]
    marks = [float(y) for y in re.findall(r'y1="([^"]*)" y2="[^"]*" stroke="#b44d12"', drawn)]
    assert heights == [80.0, 160.0, 0.0]
    assert [210 - y for y in marks] == [160.0, 160.0, 40.0]
    texts = [element.text for element in ElementTree.fromstring(drawn).iter() if element.text]
    assert "<trips>" in texts


def test_servers_that_make_their_counters_anew_are_asked_once_more() -> None:
    answers = [
        {"beans": []},
        {"beans": [{"exceptions.rpcThrottling": 3}]},
        {"beans": [{"Namespace_default_table_t_region_0a_metric_readRequestCount": 7}]},
        {"beans": [{"exceptions.rpcThrottling": 3}]},
    ]

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answers.pop(0)).encode())

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        counts = read_counts([server.server_port])
        server.shutdown()
    assert (counts.rows, counts.throttled, answers) == ({(1, "t"): 7}, 3, [])
