"""Weights that a program draws on the CPU while it is recorded: the first numbers and all later draws are its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotbed.recording import weights

if TYPE_CHECKING:
    from conftest import Server

DRAWS = f"""
spec = importlib.util.spec_from_file_location("weights", {weights.__file__!r})
weights = importlib.util.module_from_spec(spec)
spec.loader.exec_module(weights)

def draws(make):
    torch.manual_seed(3)
    torch.rand(17)
    tensor = make()
    return tensor.detach(), torch.get_rng_state()

def both(make):
    before = torch.Tensor.normal_, torch.Tensor.uniform_
    expected = draws(make)
    weights.draw_less(torch, phantom)
    found = draws(make)
    torch.Tensor.normal_, torch.Tensor.uniform_ = before
    return *expected, *found
"""


def test_later_draws_and_the_first_numbers_are_as_if_all_had_been_drawn(on_phantom: Server) -> None:
    found = on_phantom(f"""{DRAWS}
alike, spread = [], []
for count in (1 << 21, (1 << 22) + 5):
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for name in ("normal_", "uniform_"):
            tensor, state, less, same = both(lambda: getattr(torch.empty(count, dtype=dtype), name)())
            alike.append(torch.equal(state, same) and torch.equal(tensor[:262139], less[:262139]))
            spread.append((less.float().std() / tensor.float().std()).item())
answer(alike=alike, spread=spread)
""")
    assert all(found.alike)
    assert all(abs(each - 1) < 0.01 for each in found.spread)


def test_a_matrix_has_no_two_rows_alike(on_phantom: Server) -> None:
    found = on_phantom(f"""{DRAWS}
tensor, state, less, same = both(lambda: torch.nn.init.normal_(torch.nn.Parameter(torch.empty(4096, 2048)), 1.0, 0.02))
answer(rows=len(torch.unique(less[:, :4], dim=0)), mean=less.mean().item(), same=torch.equal(state, same))
""")
    assert found.rows == 4096
    assert abs(found.mean - 1.0) < 0.001
    assert found.same


def test_what_is_small_or_has_a_generator_of_its_own_is_drawn_in_full(on_phantom: Server) -> None:
    found = on_phantom(f"""{DRAWS}
makes = {{
    "small": lambda: torch.empty(1 << 20).normal_(),
    "own": lambda: torch.empty(1 << 22).normal_(generator=torch.Generator().manual_seed(1)),
    "turned": lambda: torch.empty(2048, 2048).t().uniform_(),
    "double": lambda: torch.empty(1 << 22, dtype=torch.double).normal_(),
}}
answer(equal=[name for name, make in makes.items() if torch.equal(*both(make)[::2])])
""")
    assert found.equal == ["small", "own", "turned", "double"]
