"""Claim: convolutions, recurrent networks and attention allocate on the phantom what they allocated on the card.

    python benchmarks/cudnn_workspaces.py --torch PYTHON --out results/cudnn_workspaces.json

Each row of tests/data/h200/cudnn_workspaces.jsonl.xz is a module run forward and backward alone: every size that torch
allocated and freed, in order (the rows of `pointwise`: allocated, without peaks). No rule or layout was fitted to these rows.
PYTHON has torch 2.11.0 with cuDNN 9.19.0.56 (and torchvision 0.26 for the rows of `benchmark`), as on the card.
"""

from __future__ import annotations

import argparse
import json
import lzma
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
MEASURED = ROOT / "tests" / "data" / "h200" / "cudnn_workspaces.jsonl.xz"
PHASES = ("forward", "backward", "eval", "first", "third")
MOST_ENTRIES = 200
"""Entries of a log that a row keeps."""

Row = dict[str, Any]


def measured_rows() -> list[Row]:
    return [json.loads(line) for line in lzma.decompress(MEASURED.read_bytes()).splitlines()]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--gpu", default="h200")
    parser.add_argument("--out", type=Path, help="write the comparison here")
    parser.add_argument("--run", metavar="KIND", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        _run_rows(options.run, [json.loads(line) for line in sys.stdin])
        return 0
    groups: dict[str, list[Row]] = {}
    for row in measured_rows():
        groups.setdefault(row["which"] if row["kind"] in ("conv", "benchmark") else row["kind"], []).append(
            row
        )
    results = [result for rows in groups.values() for result in _compare_group(rows, options)]
    differing = [result for result in results if not result["same"]]
    if options.out:
        lines = ",\n".join("  " + json.dumps(result) for result in differing)
        summary = json.dumps(_summary(results), indent=1)
        options.out.write_text(f'{{"summary": {summary},\n"differing": [\n{lines}\n]}}\n')
    print(json.dumps(_summary(results), indent=1))
    return 0


def _compare_group(rows: list[Row], options: argparse.Namespace) -> Iterator[Row]:
    """One process for the rows that were one process on the card: cuBLAS takes its workspace once."""
    from hotbed.phantom import environment

    child = subprocess.run(
        [options.torch, __file__, "--run", rows[0]["kind"]],
        input="".join(json.dumps(row) + "\n" for row in rows),
        env=environment(options.gpu),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = [json.loads(line[4:]) for line in child.stdout.splitlines() if line.startswith("ROW ")]
    for row, ours in zip(rows, found, strict=True):
        yield from _compare(row, ours)


def _compare(row: Row, ours: Row) -> Iterator[Row]:
    """Sizes in their order. When autograd's thread frees a gradient is chance, and with it how blocks are reused."""
    for phase in PHASES:
        card, phantom = row.get(phase) or {}, ours.get(phase) or {}
        if not card and not phantom:
            continue
        theirs, here = _allocated(card), _allocated(phantom)
        yield {
            "kind": row["kind"],
            "which": row.get("which") or row["backend"],
            "case": row.get("conv") or row.get("config"),
            "phase": phase,
            "same": theirs == here and ("error" in card) == ("error" in phantom),
            "card_peak": card.get("peak", phantom["peak"]),
            "phantom_peak": phantom["peak"],
            "only_card": sorted((Counter(theirs) - Counter(here)).elements()),
            "only_phantom": sorted((Counter(here) - Counter(theirs)).elements()),
        }


def _allocated(run: Row) -> list[int]:
    return [size for size in run.get("log", []) if size > 0]


def _summary(results: list[Row]) -> Row:
    out: Row = {}
    for result in results:
        key = f"{result['kind']} {result['phase']}"
        counts = out.setdefault(key, {"rows": 0, "same": 0, "most_below": 0, "most_above": 0})
        off = result["phantom_peak"] - result["card_peak"]
        counts["rows"] += 1
        counts["same"] += result["same"]
        counts["most_below"] = min(counts["most_below"], off)
        counts["most_above"] = max(counts["most_above"], off)
    return out


# What follows runs with the interpreter of --torch, on the phantom, step by step as on the card.


def _run_rows(kind: str, rows: list[Row]) -> None:
    import torch

    once = {"conv": _conv, "pointwise": _conv, "rnn": _rnn, "sdpa": _sdpa, "benchmark": _benchmark}[kind]
    if kind in ("conv", "pointwise"):
        torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")
    if kind == "benchmark":
        torch.backends.cudnn.benchmark = True
        torch.cuda.empty_cache = lambda: None
    done = None
    for row in rows:
        # The second row of a benchmark is another process that did the same.
        done = done if kind == "benchmark" and done else once(row)
        print("ROW " + json.dumps(done), flush=True)


def _recorded(action: Callable[[], Any]) -> Row:
    import torch

    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=100000)
    base = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    out: Row = {}
    try:
        action()
        torch.cuda.synchronize()
    except RuntimeError as error:
        out["error"] = repr(error)[:200]
    # Autograd's own thread lets go of the gradients a moment after it has handed them over.
    time.sleep(0.02)
    out["peak"] = torch.cuda.max_memory_allocated() - base
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(enabled=None)
    signs = {"alloc": 1, "free_completed": -1}
    log = [signs[event["action"]] * event["size"] for event in events if event["action"] in signs]
    return out | {"log": log[:MOST_ENTRIES]}


def _conv(row: Row) -> Row:
    import torch
    from torch import nn

    dtype_name, order, kind = row["which"].split(":")
    n, channels, sizes, filters, kernel, stride, padding, dilation, groups = row["conv"]
    options: Row = {"stride": stride, "padding": padding, "groups": groups}
    if kind != "t":
        options["dilation"] = dilation
    options |= {"device": "cuda", "dtype": getattr(torch, dtype_name)}
    form = getattr(nn, f"Conv{'Transpose' if kind == 't' else ''}{len(sizes)}d")
    last = (
        {1: None, 2: torch.channels_last, 3: torch.channels_last_3d}[len(sizes)] if order == "nhwc" else None
    )
    module = form(channels, filters, kernel, **options).to(memory_format=last or torch.contiguous_format)
    x = torch.randn(n, channels, *sizes, device="cuda", dtype=options["dtype"])
    x = x.contiguous(memory_format=last or torch.contiguous_format).requires_grad_()
    out: Row = {}
    forward = _recorded(lambda: out.update(y=module(x)))
    if "y" not in out:
        return {"forward": forward}
    gradient = torch.ones_like(out["y"])
    backward = _recorded(lambda: torch.autograd.grad(out["y"], [x, module.weight], gradient))
    return {"forward": forward, "backward": backward}


def _rnn(row: Row) -> Row:
    import torch
    from torch import nn

    inputs, hidden, layers, both, dropout, dtype_name, batch, steps = row["config"]
    form, dtype = getattr(nn, row["which"]), getattr(torch, dtype_name)
    module = form(inputs, hidden, layers, bidirectional=both, dropout=dropout).cuda().to(dtype)
    x = torch.randn(steps, batch, inputs, device="cuda", dtype=dtype).requires_grad_()
    out: Row = {}
    forward = _recorded(lambda: out.update(y=module(x)[0]))
    backward = _recorded(lambda: out["y"].sum().backward())
    module.eval()
    with torch.no_grad():
        return {"forward": forward, "backward": backward, "eval": _recorded(lambda: module(x))}


def _sdpa(row: Row) -> Row:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.functional import scaled_dot_product_attention

    batch, heads, length, width, causal, dtype_name = row["config"]
    backend = getattr(SDPBackend, row["backend"].removeprefix("SDPBackend."))
    q = torch.randn(
        batch, heads, length, width, device="cuda", dtype=getattr(torch, dtype_name)
    ).requires_grad_()
    out: Row = {}
    with sdpa_kernel(backend):
        forward = _recorded(lambda: out.update(y=scaled_dot_product_attention(q, q, q, is_causal=causal)))
    return {
        "forward": forward,
        "backward": _recorded(lambda: out["y"].sum().backward()) if "y" in out else None,
    }


def _benchmark(row: Row) -> Row:
    import torch
    from torch import nn

    torch.manual_seed(0)
    if row["which"] == "resnet18":
        import torchvision

        model = torchvision.models.resnet18()
    else:
        blocks = [nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()]
        blocks += [nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
        model = nn.Sequential(*blocks, nn.Flatten(), nn.Linear(128, 10))
    x = torch.randn(32, 3, 224, 224)
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    x, y = x.cuda(), torch.zeros(len(x), dtype=torch.long, device="cuda")

    def step() -> None:
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad()

    first = _recorded(step)
    _recorded(step)
    return {"first": first, "third": _recorded(step)}


if __name__ == "__main__":
    sys.exit(main())
