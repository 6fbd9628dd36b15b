"""A page in Chromium."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest

CATCH = """<script>window.problems = [];
addEventListener("error", event => problems.push(String(event.message)));
addEventListener("securitypolicyviolation", event => problems.push(event.violatedDirective));
window.alert = text => problems.push("alert " + text);</script>"""


def probed(page, script, tmp_path, width=1200):
    """What a script, the body of a function, returns at the end of a page; its problems must be none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no chromium to open the page with")
    probe = f"""<script>addEventListener("load", () => setTimeout(() => {{
        const found = (() => {{ {script} }})();
        const requests = performance.getEntriesByType("resource").map(entry => entry.name);
        document.body.dataset.probe = JSON.stringify({{ found, problems, requests }});
    }}))</script></body>"""
    path = tmp_path / "probed.html"
    before, _, after = page.rpartition("</body>")
    path.write_text(before.replace("<title>", CATCH + "<title>", 1) + probe + after, "utf-8")
    seen = subprocess.run(
        [
            found, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},1000", "--virtual-time-budget=20000",
            "--dump-dom", path.as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip
    told = re.search(r'data-probe="([^"]*)"', seen)
    assert told, seen[-2000:]
    result = json.loads(unescape(told[1]))
    assert result["problems"] == []
    assert result["requests"] == []
    return result["found"]
