"""Everything there is to say about one settings string, gathered for a person or as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hotbed.settings.allocator import AllocatorSettings, read_settings
from hotbed.settings.checking import check
from hotbed.settings.environment import from_environment
from hotbed.settings.explaining import Explanation, explain
from hotbed.settings.versions import environment_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotbed.settings.finding import Finding
    from hotbed.settings.torch_version import TorchVersion

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A settings text judged for one torch.

    `read_from` is the environment variable the text was found in, None if it was given or no variable is set;
    `settings` is what could be read of it; `variable` is where that torch reads settings from first.
    """

    version: TorchVersion
    read_from: str | None
    text: str
    settings: AllocatorSettings
    variable: str
    explanations: tuple[Explanation, ...]
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        """True if any finding is an error."""
        return any(finding.severity == "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Plain containers; `settings` is the canonical text."""
        return {
            "schema": SCHEMA,
            "torch_version": str(self.version),
            "read_from": self.read_from,
            "text": self.text,
            "settings": self.settings.to_string(),
            "variable": self.variable,
            "explanations": [asdict(line) for line in self.explanations],
            "findings": [asdict(finding) for finding in self.findings],
        }


def judge(
    text: str | None,
    version: TorchVersion,
    uses: frozenset[str] = frozenset(),
    environ: Mapping[str, str] | None = None,
) -> Judgement:
    """Judges `text`, or with None what `environ` holds. Raises UsageError for an unknown word in `uses`."""
    found = from_environment(environ or {}, version) if text is None else None
    judged = text if found is None else found.text
    settings = read_settings(judged or "").settings
    return Judgement(
        version=version,
        read_from=found.name if found else None,
        text=judged or "",
        settings=settings,
        variable=environment_names(version)[0],
        explanations=tuple(explain(settings, version)),
        findings=(found.findings if found else ()) + check(judged or "", version, uses),
    )
