"""The JSON Schema and the reference page of hotbed.toml, made from its model."""

from __future__ import annotations

from typing import Any

from hotbed.settings.toml.model import FREE_SECTIONS, SCHEMA, SECTIONS, keys_of

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) that editors can check a hotbed.toml against."""
    properties: dict[str, Any] = {"schema": {"const": SCHEMA, "description": "version of the file's form"}}
    properties |= {name: _section_schema(section) for name, section in SECTIONS.items()}
    properties["memory"]["additionalProperties"] = _section_schema(SECTIONS["memory"])
    properties |= {name: {"type": "object", "description": text} for name, text in FREE_SECTIONS.items()}
    return {
        "$schema": _DRAFT,
        "title": "hotbed.toml",
        "type": "object",
        "properties": properties,
        "required": ["schema"],
        "additionalProperties": False,
    }


def _section_schema(section: Any) -> dict[str, Any]:
    keys = {key.name: {**key.form.schema, "description": key.meaning} for key in keys_of(section)}
    return {"type": "object", "description": section.TITLE, "properties": keys, "additionalProperties": False}


def reference_tables() -> str:
    """A Markdown section for each table of the file: its keys, their forms and meanings."""
    parts = []
    for name, section in SECTIONS.items():
        rows = "\n".join(
            f"| `{key.name}` | {key.form.description} | {key.meaning} |" for key in keys_of(section)
        )
        parts.append(f"### [{name}]\n\n{section.TITLE}\n\n| key | value | meaning |\n|---|---|---|\n{rows}\n")
    parts += [f"### [{name}]\n\n{text}\n" for name, text in FREE_SECTIONS.items()]
    return "\n".join(parts)
