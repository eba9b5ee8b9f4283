"""What a rule is: the case it judges, the advice it gives, and the torch releases it applies to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from hotbed.settings.finding import Finding, Severity
from hotbed.settings.torch_version import TorchVersion

if TYPE_CHECKING:
    from collections.abc import Callable

    from hotbed.settings.allocator import AllocatorSettings


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule judges: settings, the keys the text names (defaults too), the torch they are for, and USES words."""

    settings: AllocatorSettings
    named: frozenset[str]
    version: TorchVersion
    uses: frozenset[str]

    @property
    def is_async(self) -> bool:
        return self.settings.backend == "cudaMallocAsync"

    @property
    def expandable(self) -> bool:
        return self.settings.expandable_segments and not self.is_async

    @property
    def limited(self) -> bool:
        """True when a memory limit is known to be in force."""
        fraction = self.settings.per_process_memory_fraction
        return "fraction" in self.uses or (fraction is not None and fraction < 1)


class Advice(NamedTuple):
    """What to tell the user."""

    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with the releases it applies to: `since` included, `until` not."""

    name: str
    severity: Severity
    since: TorchVersion | None
    until: TorchVersion | None
    source: str
    judge: Callable[[Case], Advice | None]

    def apply(self, case: Case) -> Finding | None:
        """The finding for `case`, or None when the rule has nothing to say."""
        after = self.since is None or case.version >= self.since
        before = self.until is None or case.version < self.until
        advice = self.judge(case) if after and before else None
        if advice is None:
            return None
        return Finding(
            severity=self.severity,
            rule=self.name,
            message=advice.message,
            hint=advice.hint,
            since=self.since.release if self.since else None,
            until=self.until.release if self.until else None,
        )


def rule(
    severity: Severity, since: tuple[int, int] | None = None, until: tuple[int, int] | None = None
) -> Callable[[Callable[[Case], Advice | None]], Rule]:
    """Makes a function a rule named after it; its docstring is the source of the fact."""

    def make(judge: Callable[[Case], Advice | None]) -> Rule:
        name = judge.__name__.replace("_", "-")
        bounds = [TorchVersion(*bound) if bound else None for bound in (since, until)]
        return Rule(name, severity, bounds[0], bounds[1], judge.__doc__ or "", judge)

    return make
