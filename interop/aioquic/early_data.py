"""Requests in early data (0-RTT) by aioquic, without a loop of its own: this program decides which packets leave.

usage: early_data.py PORT AUTHORITY FIRST EARLY...

The first connection requests the path FIRST, and gets a ticket. The second sends one packet flight with the requests EARLY, each of them
METHOD:PATH, and then only receives until the last of them has its response: the handshake cannot be complete at the server. After that
it sends again until all have theirs. Prints JSON:

{"accepted": true, "before": {"GET:/a": [200, "body"]}, "after": {"POST:/b": [200, "body"]}}
"""

import json
import socket
import sys
import time

from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import HandshakeCompleted

PATIENCE_S = 60


class Client:
    """A connection, and the responses by request."""

    def __init__(self, port, authority, ticket=None):
        self.tickets = []
        self.accepted = None
        self.requests = {}
        self.responses = {}
        self.address = ("127.0.0.1", port)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        configuration = QuicConfiguration(is_client=True, alpn_protocols=["h3"], server_name="localhost")
        configuration.load_verify_locations(authority)
        configuration.session_ticket = ticket
        self.quic = QuicConnection(configuration=configuration, session_ticket_handler=self.tickets.append)
        self.quic.connect(self.address, now=time.monotonic())
        self.http = H3Connection(self.quic)

    def request(self, name):
        method, path = name.split(":", 1)
        stream = self.quic.get_next_available_stream_id()
        self.requests[stream] = (name, {"status": None, "body": b""})
        fields = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
        body = b"content" if method == "POST" else b""
        fields = [(name.encode(), value.encode()) for name, value in fields]
        self.http.send_headers(stream, fields, end_stream=not body)
        if body:
            self.http.send_data(stream, body, end_stream=True)

    def send(self):
        for data, _ in self.quic.datagrams_to_send(now=time.monotonic()):
            self.socket.sendto(data, self.address)

    def receive(self):
        """Waits for a packet, or for the next timer."""
        timer = self.quic.get_timer()
        self.socket.settimeout(max(0.001, min(1, timer - time.monotonic())) if timer else 1)
        try:
            data, _ = self.socket.recvfrom(65536)
            self.quic.receive_datagram(data, self.address, now=time.monotonic())
        except TimeoutError:
            if timer and timer <= time.monotonic():
                self.quic.handle_timer(now=time.monotonic())
        while event := self.quic.next_event():
            if isinstance(event, HandshakeCompleted):
                self.accepted = event.early_data_accepted
            for happened in self.http.handle_event(event):
                self.handle(happened)

    def handle(self, happened):
        if not isinstance(happened, (HeadersReceived, DataReceived)):
            return
        name, response = self.requests[happened.stream_id]
        if isinstance(happened, HeadersReceived):
            response["status"] = int(dict(happened.headers)[b":status"])
        else:
            response["body"] += happened.data
        if happened.stream_ended:
            self.responses[name] = [response["status"], response["body"].decode()]

    def run(self, is_over, sends=True):
        deadline = time.monotonic() + PATIENCE_S
        while not is_over():
            if time.monotonic() > deadline:
                sys.exit(f"no result: {self.responses} of {self.requests}")
            if sends:
                self.send()
            self.receive()


def main():
    port, authority, first, *early = sys.argv[1:]
    visit = Client(int(port), authority)
    # The tickets come after the handshake.
    visit.run(lambda: visit.accepted is not None)
    visit.request(first)
    visit.run(lambda: first in visit.responses and visit.tickets)
    visit.quic.close()
    visit.send()

    client = Client(int(port), authority, visit.tickets[0])
    for name in early:
        client.request(name)
    client.send()
    client.run(lambda: early[-1] in client.responses, sends=False)
    before = dict(client.responses)
    client.run(lambda: len(client.responses) == len(early))
    after = {name: response for name, response in client.responses.items() if name not in before}
    client.quic.close()
    client.send()
    print(json.dumps({"accepted": client.accepted, "before": before, "after": after}))


main()
