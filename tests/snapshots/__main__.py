"""Write what is public, and what model files hold, as text: ``python -m tests.snapshots``."""

from tests.snapshots import SNAPSHOTS

for path, lines in SNAPSHOTS.items():
    path.write_text("".join(f"{line}\n" for line in lines()))
