# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: the Holdfast authors
"""Starts an origin and `holdfast proxy --admin`, sends traffic through it, and looks at the inspector in a browser.

run.py HOLDFAST CHROMIUM DIRECTORY-FOR-PICTURES
"""

import http.client, http.server, os, re, signal, socket, subprocess, sys, threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser
import page


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = b"x" * (200 * len(self.path))
        self.send_response(503 if self.path.startswith("/bad") else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"v"')
        self.send_header("Vary", "Accept-Language")
        self.send_header("Cache-Control", "no-store" if self.path.startswith("/no") else "max-age=600")
        self.send_header("X-Hostile", "<img src=x onerror=\"document.title='taken over'\"></dd><script>document.title='taken over'</script>")
        self.send_header("X-Api-Token", "geheim")
        self.end_headers()
        self.wfile.write(body)


def send_traffic(port, stop):
    """Some requests, of which one in six is not stored and one in sixty fails, again and again."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    number = 0
    while not stop.is_set():
        paths = ["/pages/%d" % (number % 40), "/origin-page/1", "/origin-page/12", "/no/store?token=geheim", "/pages/1"]
        for path in paths + (["/bad"] if number % 12 == 0 else []):
            connection.request("GET", path, headers={"Accept-Language": "de"})
            connection.getresponse().read()
        number += 1
        stop.wait(0.15)
    connection.close()


def send_hostile_request(port):
    """A target full of markup, in the spelling that is stored."""
    with socket.create_connection(("127.0.0.1", port), timeout=600) as client:
        client.sendall(b"GET /%3Cimg/src=x/onerror=document.title='taken-over'%3E HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        answer = b""
        while chunk := client.recv(65536):
            answer += chunk
    page.check(answer.startswith(b"HTTP/1.1 200"), "the proxy forwards an odd target: %r" % answer[:80])


def refusals(port):
    """What another name, another site and a caller without the page's word are told, over real sockets."""
    def status(method, path, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request(method, path, body="{}" if method == "POST" else None,
                           headers={name.replace("_", "-"): value for name, value in fields.items()})
        answer = connection.getresponse()
        answer.read()
        page.check(answer.getheader("Access-Control-Allow-Origin") is None, "nothing is for other origins")
        page.check(answer.getheader("Cache-Control") == "no-store", "nothing is to be kept")
        connection.close()
        return answer.status

    page.check(status("GET", "/") == 200, "a caller on this machine is answered")
    for fields in ({"Host": "evil.example:%d" % port}, {"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"},
                   {"Via": "1.1 proxy"}):
        page.check(status("GET", "/api/summary", **fields) == 403, "refused: %s" % fields)
    page.check(status("POST", "/api/purge", Content_Type="application/json") == 403, "refused: no word")
    page.check(status("POST", "/api/purge", Content_Type="text/plain") == 415, "refused: no JSON")
    page.check(status("GET", "/api/purge") == 405, "refused: GET purges nothing")


def main():
    holdfast, chromium, pictures = sys.argv[1:4]
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    origin.daemon_threads = True
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    proxy = subprocess.Popen(
        [holdfast, "proxy", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:%d" % origin.server_port,
         "--mode", "shared", "--admin", "0"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    browser, stop = None, threading.Event()
    try:
        said = ""
        while "listening on" not in said:
            line = proxy.stderr.readline()
            page.check(line, "the proxy starts: " + said)
            said += line
        port = int(re.search(r"listening on http://[^ ]*:(\d+)", said).group(1))
        inspector = re.search(r"admin on (http://127\.0\.0\.1:(\d+))", said)
        url, inspector_port = inspector.group(1) + "/", int(inspector.group(2))
        threading.Thread(target=proxy.stderr.read, daemon=True).start()
        traffic = threading.Thread(target=send_traffic, args=(port, stop))
        traffic.start()
        send_hostile_request(port)
        refusals(inspector_port)
        browser = Browser(chromium)
        page.look(browser, url, pictures)
        page.keys(browser, url)
        page.hostility(browser, url)
        stop.set()
        traffic.join()
        page.purges(browser, url)
        page.nothing(browser.complaints, "complaints of the browser")
    finally:
        stop.set()
        if browser:
            browser.close()
        proxy.send_signal(signal.SIGTERM)
        proxy.wait(600)
        origin.shutdown()
    page.check(proxy.returncode == 0, "the proxy ends well: %s" % proxy.returncode)
    print("inspector-smoke: well; pictures in " + pictures)


main()
