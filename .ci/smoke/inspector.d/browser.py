# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: the Holdfast authors
"""Drives a headless Chromium over its debugging pipe: the standard library is enough."""

import base64, fcntl, json, os, select, shutil, subprocess, tempfile, time

KEYS = {
    "Tab": (9, "Tab"), "Escape": (27, "Escape"), "Enter": (13, "Enter"), "ArrowDown": (40, "ArrowDown"),
    "ArrowUp": (38, "ArrowUp"), "ArrowLeft": (37, "ArrowLeft"), " ": (32, "Space"), "/": (191, "Slash"),
}
TEXTS = {"Enter": "\r", " ": " ", "/": "/"}


class Browser:
    def __init__(self, program, patience=120):
        self.patience = patience
        self.profile = tempfile.mkdtemp(prefix="inspector-smoke-")
        low_in, self.to_child = os.pipe()
        self.from_child, low_out = os.pipe()
        # Chromium reads its orders from descriptor 3 and answers on 4; a shell moves ours there, from where they are not in its way.
        child_in, child_out = (fcntl.fcntl(low, fcntl.F_DUPFD, 100) for low in (low_in, low_out))
        for low in (low_in, low_out):
            os.close(low)
        command = [
            "bash", "-c", 'exec "$0" "$@" 3<&%d 4>&%d' % (child_in, child_out), program, "--headless=new", "--no-sandbox",
            "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir=" + self.profile,
            "--remote-debugging-pipe", "about:blank",
        ]
        self.process = subprocess.Popen(
            command, pass_fds=(child_in, child_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(child_in)
        os.close(child_out)
        self.buffer = b""
        self.number = 0
        self.session = None
        self.complaints = []
        target = self.order("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.order("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.order(domain + ".enable")

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.to_child)
        os.close(self.from_child)
        shutil.rmtree(self.profile, ignore_errors=True)

    def order(self, method, **parameters):
        """Gives an order and waits for its answer; what the page complains of meanwhile is kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_child, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self.patience
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError("%s: %s" % (method, answer["error"]))
                return answer["result"]
            self.note(answer)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_child], [], [], left)[0]:
                raise RuntimeError("the browser did not answer")
            chunk = os.read(self.from_child, 1 << 16)
            if not chunk:
                raise RuntimeError("the browser ended")
            self.buffer += chunk
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, event):
        method, detail = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(detail["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and detail["entry"]["level"] in ("error", "warning"):
            self.complaints.append(detail["entry"]["text"] + " " + detail["entry"].get("url", ""))
        elif method == "Runtime.consoleAPICalled" and detail["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(detail["args"])[:500])
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog of a script: " + detail["message"])

    def open(self, url):
        failure = self.order("Page.navigate", url=url).get("errorText")
        if failure:
            raise RuntimeError("%s: %s" % (url, failure))
        self.wait_for("document.documentElement !== null && document.readyState === 'complete'", url + " loads")

    def ask(self, expression):
        """The value of a JavaScript expression in the page."""
        answer = self.order("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError("%s: %s" % (expression, answer["exceptionDetails"]))
        return answer["result"].get("value")

    def wait_for(self, expression, what):
        """Waits until an expression is true in the page."""
        deadline = time.monotonic() + self.patience
        while not self.ask(expression):
            if time.monotonic() > deadline:
                raise AssertionError("did not come about: " + what)
            time.sleep(0.1)

    def press(self, key, shift=False):
        code, name = KEYS[key]
        shared = {"key": key, "code": name, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        text = {"text": TEXTS[key]} if key in TEXTS else {}
        self.order("Input.dispatchKeyEvent", type="keyDown", **shared, **text)
        self.order("Input.dispatchKeyEvent", type="keyUp", **shared)

    def type(self, text):
        self.order("Input.insertText", text=text)

    def size(self, width, height):
        self.order("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name):
        self.order("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, path, whole=True):
        data = self.order("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
