"""Writes docs/hotbed.schema.json and the reference tables of docs/hotbed-toml.md from hotbed's model of the file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hotbed.settings.toml.schema import json_schema, reference_tables

DOCS = Path(__file__).parent.parent / "docs"
BEGIN = "<!-- Made by tools/toml_schema.py: do not edit by hand. -->"
END = "<!-- End of the made part. -->"


def outdated() -> dict[Path, str]:
    """Files that are not as they should be, with the text they should have."""
    schema, page = DOCS / "hotbed.schema.json", DOCS / "hotbed-toml.md"
    head, _, rest = page.read_text().partition(BEGIN)
    tail = rest.partition(END)[2]
    wanted = {
        schema: json.dumps(json_schema(), indent=2) + "\n",
        page: f"{head}{BEGIN}\n\n{reference_tables()}\n{END}{tail}",
    }
    return {path: text for path, text in wanted.items() if not path.exists() or path.read_text() != text}


def main() -> int:
    stale = outdated()
    if "--check" in sys.argv[1:]:
        print("\n".join(f"{path} is not current: run tools/toml_schema.py" for path in stale))
        return 1 if stale else 0
    for path, text in stale.items():
        path.write_text(text)
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
