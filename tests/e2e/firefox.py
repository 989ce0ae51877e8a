# SPDX-License-Identifier: Apache-2.0
"""firefox.py PAGE < ACTIONS: what browser.py does in Chromium, in Firefox: opens a page and evaluates what the lines of JSON
on stdin say; prints one line of JSON with the results, and with the errors and warnings of the page.
Speaks Firefox's own protocol for tests (Marionette), so that no package is needed. Run by any Python."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
LOADED = "return document.readyState === 'complete' && document.documentElement.dataset.ready !== undefined"
# In the scope of the page's own scripts, which a script of the protocol does not see.
EVALUATE = """const [code, done] = arguments, script = document.createElement('script'), element = document.documentElement;
element.addEventListener('said', () => done(element.dataset.said), { once: true });
script.textContent = `(async () => { let said; try { said = { value: await (${code}) }; } catch (e) { said = { error: String(e) }; }
  document.documentElement.dataset.said = JSON.stringify(said); document.documentElement.dispatchEvent(new Event('said')); })()`;
document.head.append(script); script.remove();"""
HEARD = """return Services.console.getMessageArray().filter((m) => m instanceof Ci.nsIScriptError && m.sourceName.startsWith(arguments[0]))
  .map((m) => m.errorMessage)"""


class Marionette:
    def __init__(self, port):
        for _ in range(300):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        self.read()
        self.count = 0

    def read(self):
        length = b""
        while (c := self.socket.recv(1)) != b":":
            length += c
        text = b""
        while len(text) < int(length):
            text += self.socket.recv(int(length) - len(text))
        return json.loads(text)

    def ask(self, command, **parameters):
        self.count += 1
        text = json.dumps([0, self.count, command, parameters]).encode()
        self.socket.sendall(b"%d:%s" % (len(text), text))
        kind, number, error, value = self.read()
        assert not error, error
        return value

    def script(self, text, *words, how="Script"):
        return self.ask("WebDriver:Execute" + how, script=text, args=list(words))["value"]

    def evaluate(self, code):
        said = json.loads(self.script(EVALUATE, code, how="AsyncScript"))
        assert "error" not in said, said
        return said.get("value")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def look(tab, page):
    tab.ask("WebDriver:NewSession")
    tab.ask("WebDriver:SetTimeouts", script=300000)
    tab.ask("WebDriver:Navigate", url=page)
    while not tab.script(LOADED):
        time.sleep(0.1)
    results = [tab.evaluate(json.loads(line)["evaluate"]) for line in sys.stdin]
    tab.ask("Marionette:SetContext", value="chrome")
    return {"results": results, "said": tab.script(HEARD, page)}


def main():
    page, port = Path(sys.argv[1]).resolve().as_uri(), free_port()
    with tempfile.TemporaryDirectory() as profile:
        (Path(profile) / "user.js").write_text(f'user_pref("marionette.port", {port});\nuser_pref("datareporting.policy.dataSubmissionEnabled", false);\n')
        browser = subprocess.Popen([FIREFOX, "--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile", profile],
                                   env={**os.environ, "HOME": profile}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            print(json.dumps(look(Marionette(port), page)))
        finally:
            browser.terminate()
            browser.wait()


main()
