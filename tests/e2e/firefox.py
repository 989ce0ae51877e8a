# SPDX-License-Identifier: Apache-2.0
"""firefox.py: what browser.py --serve does in Chromium, in Firefox: opens a page and evaluates what each line [PAGE, EXPRESSIONS] on stdin
says; prints a line of JSON for each with the results, and with the errors and warnings of the page.
Speaks Firefox's own protocol for tests (Marionette), so that no package is needed. Run by any Python."""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
LOADED = "return document.readyState === 'complete' && document.documentElement.dataset.ready !== undefined"
# In the scope of the page's own scripts, which a script of the protocol does not see.
EVALUATE = """const [code, done] = arguments, script = document.createElement('script'), element = document.documentElement;
element.addEventListener('said', () => done(element.dataset.said), { once: true });
script.textContent = `(async () => { let said; try { said = { value: await (${code}) }; } catch (e) { said = { error: String(e) }; }
  document.documentElement.dataset.said = JSON.stringify(said); document.documentElement.dispatchEvent(new Event('said')); })()`;
document.head.append(script); script.remove();"""
HEARD = """const all = Services.console.getMessageArray(); Services.console.reset();
  return all.filter((m) => m instanceof Ci.nsIScriptError && m.sourceName.startsWith(arguments[0])).map((m) => m.errorMessage)"""


class Marionette:
    def __init__(self, said):
        """`said` is the file in which Firefox writes the port that it listens at."""
        while not said.exists() or not said.read_text():
            time.sleep(0.1)
        self.socket = socket.create_connection(("127.0.0.1", int(said.read_text())), timeout=300)
        self.read()
        self.count = 0
        self.ask("WebDriver:NewSession")
        self.ask("WebDriver:SetTimeouts", script=300000)

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


def look(tab, page, expressions):
    tab.ask("Marionette:SetContext", value="content")
    tab.ask("WebDriver:Navigate", url=page)
    while not tab.script(LOADED):
        time.sleep(0.1)
    results = [tab.evaluate(expression) for expression in expressions]
    tab.ask("Marionette:SetContext", value="chrome")
    return {"results": results, "said": tab.script(HEARD, page)}


def serve(tab):
    for line in sys.stdin:
        page, expressions = json.loads(line)
        try:
            answer = look(tab, Path(page).resolve().as_uri(), expressions)
        except Exception:
            answer = {"failed": traceback.format_exc()}
        print(json.dumps(answer), flush=True)


def main():
    with tempfile.TemporaryDirectory() as profile:
        (Path(profile) / "user.js").write_text('user_pref("marionette.port", 0);\nuser_pref("datareporting.policy.dataSubmissionEnabled", false);\n')
        browser = subprocess.Popen([FIREFOX, "--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--profile", profile],
                                   env={**os.environ, "HOME": profile}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            serve(Marionette(Path(profile) / "MarionetteActivePort"))
        finally:
            browser.terminate()
            browser.wait()


main()
