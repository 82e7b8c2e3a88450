# SPDX-License-Identifier: Apache-2.0
"""An SCI that is pulled by HTTPS and answers as it is told: what a C-SMA must take, and what it must not.

    odd_sci.py ADDRESS PORT CA CERTIFICATE KEY CSCI_ID CS_ID HOW

HOW: good; gzip and deflate (compressed, unasked); transfer (the same, as a transfer encoding); large; drip (a byte a
second); mute; redirect (to where it is good); garbage; status (503). Prints a line for each question."""
import gzip
import http.server
import ssl
import sys
import time

import grpc_peer

ADDRESS, PORT, CA, CERTIFICATE, KEY, CSCI_ID, CS_ID, HOW = sys.argv[1:]
EPOCH, LARGE = int(time.time() * 1000), 5 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    sequence = 0

    def answer(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in {'content_length': str(len(body)), **headers}.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            pass                            # it was cut off, as it should be

    def do_GET(self):
        print(self.path, flush=True)
        Handler.sequence += 1
        report = grpc_peer.report(CSCI_ID, CS_ID, EPOCH, Handler.sequence, 50)
        if HOW == 'gzip':
            self.answer(gzip.compress(report), content_encoding='gzip')
        elif HOW == 'deflate':
            self.answer(gzip.compress(report), content_encoding='deflate')
        elif HOW == 'transfer':
            self.answer(gzip.compress(report), transfer_encoding='gzip')
        elif HOW == 'large':
            self.answer(report + grpc_peer.field(2000, b'x' * LARGE))
        elif HOW == 'mute':
            time.sleep(3600)
        elif HOW == 'drip':
            self.answer(b'', content_length=str(len(report)))
            for byte in report:
                self.wfile.write(bytes([byte]))
                time.sleep(1)
        elif HOW == 'redirect' and self.path != '/good':
            self.answer(b'', 302, location=f'https://{ADDRESS}:{PORT}/good')
        elif HOW == 'garbage':
            self.answer(b'\xff' * 100)
        elif HOW == 'status':
            self.answer(b'tired\n', 503)
        else:
            self.answer(report)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer((ADDRESS, int(PORT)), Handler)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=CA)
context.verify_mode = ssl.CERT_REQUIRED
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
