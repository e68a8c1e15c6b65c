"""A page as headless Chromium shows it: its document after its scripts ran, and what they complained of."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

CHROMIUM = shutil.which("chromium")
# Runs `ask` once the page is ready, and writes what it returns into the document, where `asked` finds it.
ASK = """<script>
const asking = setInterval(async () => {
  const waiting = document.querySelector(".replay") && !document.documentElement.dataset.ready;
  if (document.readyState !== "complete" || waiting) return;
  clearInterval(asking);
  const answer = await (%s)();
  const text = document.createElement("pre");
  Object.assign(text, { id: "answer", textContent: JSON.stringify(answer) });
  document.body.append(text);
}, 10);
</script>"""


@pytest.fixture(scope="session")
def asked():
    """`asked(page, question)`; without Chromium the test is left out."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: make browser installs it")
    return _asked


def _asked(page, question, place="", width=1000):
    """What a JavaScript function returns in a page; fails if the page complains on its console."""
    copy = page.with_name(f"asked-{page.name}")
    copy.write_text(page.read_text() + ASK % question)
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
    command += ["--allow-file-access-from-files"]  # a page may ask the pages in its frames
    command += [f"--window-size={width},900", "--virtual-time-budget=600000", "--dump-dom", copy.as_uri() + place]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    finally:
        copy.unlink()
    complaints = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert complaints == []
    answer = re.search(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert answer, "the page never answered"
    return json.loads(unescape(answer[1]))
