#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens the page of a real run in a headless browser, in light and dark and on a narrow window.

browser_test.py ATP PROGRAM [ARGUMENT...]
The program runs under `atp run --report`. A script that only this test adds to a copy of the page looks at what the browser made of
it: no text over another text of the same chart, nothing wider than the window, every text readable on its background.
Ends with 77 (skipped) where there is no browser. ATP_KEEP_PAGES=FOLDER keeps the page and a picture of each window.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
BROWSERS = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]
WINDOWS = [("light", 1100), ("dark", 1100), ("light", 420)]

LOOK = """<script>
function luminance(color) {
  const part = color.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4));
  return 0.2126 * part[0] + 0.7152 * part[1] + 0.0722 * part[2];
}
function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}
function overlap(a, b) {
  return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
}
const found = {charts: 0, overlaps: [], outside: [], pale: [], wide: 0, tables: document.querySelectorAll('table').length};
for (const svg of document.querySelectorAll('svg')) {
  ++found.charts;
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  texts.forEach(([word, box], i) => {
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
      found.outside.push(word);
    texts.slice(i + 1).forEach(([other, its]) => { if (overlap(box, its)) found.overlaps.push(word + ' / ' + other); });
  });
}
const card = getComputedStyle(document.querySelector('section')).backgroundColor;
for (const e of document.querySelectorAll('section h2, section p, section li, section td, section th, svg text, .tile b')) {
  const style = getComputedStyle(e), color = e instanceof SVGElement ? style.fill : style.color;
  if (contrast(color, card) < 4.5) found.pale.push(e.textContent + ' ' + color);
}
found.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
document.body.insertAdjacentHTML('beforeend', '<pre id="found"></pre>');
document.getElementById('found').textContent = JSON.stringify(found);
</script>"""


def browse(browser, folder, page, scheme, width, *more):
    """The browser's output on a page. A profile of its own: it may run as root, and beside another one."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
               f"--user-data-dir={folder}/profile", f"--window-size={width},3600",
               f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}", *more, f"file://{page}"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if run.returncode != 0:
        sys.exit(f"{browser} ended with {run.returncode}: {run.stderr[-2000:]}")
    return run.stdout


def look(browser, folder, page, scheme, width):
    dom = browse(browser, folder, page, scheme, width, "--dump-dom")
    answers = re.findall(r'<pre id="found">({.*?})</pre>', dom, re.S)
    if not answers:
        sys.exit(f"the browser did not come to the end of the page: {dom[-500:]}")
    found = json.loads(answers[0].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    wrong = [f"{len(found[what])} {what}: {found[what][:5]}" for what in ("overlaps", "outside", "pale") if found[what]]
    if found["charts"] < 5 or found["tables"] < 4:
        wrong.append(f"{found['charts']} charts and {found['tables']} tables")
    if found["wide"] > 0:
        wrong.append(f"{found['wide']} pixels wider than the window")
    return [f"{scheme}, {width} wide: {text}" for text in wrong]


def main():
    atp, program = sys.argv[1], sys.argv[2:]
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        print(f"SKIPPED: the report page was not looked at, because there is no browser here (one of {', '.join(BROWSERS)})")
        return SKIPPED
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        page, copy = os.path.join(folder, "run.html"), os.path.join(folder, "looked_at.html")
        subprocess.run([atp, "run", "--sim", "tiny", "--sim-memory", "44MiB", "--report", page, "--", *program], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "ATP_LOG": "error"})
        with open(page, encoding="utf-8") as file:
            text = file.read()
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text.replace("</body>", LOOK + "</body>"))
        for scheme, width in WINDOWS:
            wrong += look(browser, folder, copy, scheme, width)
            if kept := os.environ.get("ATP_KEEP_PAGES"):
                browse(browser, folder, page, scheme, width, f"--screenshot={kept}/{scheme}-{width}.png")
                shutil.copy(page, kept)
    print("\n".join(wrong) or f"looked at in {browser}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
