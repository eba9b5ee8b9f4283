"""What programs read back from the device: certain bytes, learnt values, guesses, and the pass that is answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hotbed.recording import values

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Server

pytestmark = pytest.mark.torch

# What a recording process does, without the recording.
PASS = """
spec = importlib.util.spec_from_file_location("values", {package!r})
values = sys.modules["values"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(values)
session = values.begin({mode!r}, control=phantom, folder={folder!r}, seed={seed})
told = {{}}
with session:
{program}
rows = session.finish()
answer(told=told, rows=rows, remarks=phantom.remarks(), peak=stat("allocated_bytes.all.peak"))
"""


def one_pass(server: Server, mode: str, folder: Path, program: str, seed: int = 0) -> Any:
    body = "\n".join(f"    {line}" for line in program.splitlines())
    text = PASS.format(package=values.__file__, mode=mode, folder=str(folder), seed=seed, program=body)
    return server(text)


def learn_and_answer(
    server: Server, folder: Path, program: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What `program` put into `told`, and the rows; the answered pass must be told the same."""
    learnt = one_pass(server, "learn", folder, program)
    answered = one_pass(server, "answered", folder, program)
    assert answered.told == learnt.told
    assert answered.rows == learnt.rows
    assert answered.remarks == []
    return learnt.told, learnt.rows


def test_values_from_the_host_are_exact(on_phantom: Server, tmp_path: Path) -> None:
    program = """
x = torch.arange(10, device="cuda")
y = x * 2
half = y.view(2, 5)[:, 1:3]
half += 100
labels = torch.tensor([1, 1, 2, 5], device="cuda")
told["list"], told["sum"], told["transposed"] = y.tolist(), y.sum().item(), y.view(2, 5).t().float().cpu().tolist()
told["mask"], told["found"] = y[y > 100].tolist(), (y > 100).nonzero().tolist()
told["unique"], told["bins"] = torch.unique(labels).tolist(), torch.bincount(labels).tolist()
told["repeat"] = torch.repeat_interleave(labels, labels).tolist()
told["hot"] = torch.nn.functional.one_hot(labels).sum(0).tolist()
told["text"] = str(y[:3])
y[torch.tensor([True, False] * 5, device="cuda")] = torch.arange(5, device="cuda")
told["put"] = y.tolist()
"""
    told, rows = learn_and_answer(on_phantom, tmp_path, program)
    values = [0, 102, 104, 6, 8, 10, 112, 114, 16, 18]
    assert told["list"] == values
    assert told["sum"] == sum(values)
    assert told["transposed"] == [[0, 10], [102, 112], [104, 114], [6, 16], [8, 18]]
    assert told["mask"] == [102, 104, 112, 114]
    assert told["found"] == [[1], [2], [6], [7]]
    assert told["unique"] == [1, 2, 5]
    assert told["bins"] == [0, 2, 1, 0, 0, 1]
    assert told["repeat"] == [1, 1, 2, 2, 5, 5, 5, 5, 5]
    assert told["hot"] == [0, 2, 1, 0, 0, 1]
    assert told["text"] == "tensor([  0, 102, 104], device='cuda:0')"
    assert told["put"] == [0, 102, 1, 6, 2, 10, 3, 114, 4, 18]
    assert all(row["known"] for row in rows)


def test_unknown_values_let_checks_pass(on_phantom: Server, tmp_path: Path) -> None:
    program = """
x = torch.randn(1000, 1000, device="cuda") * 2
told["loss"], told["nan"] = x.mean().item(), bool(x.mean().isnan())
told["finite"], told["infinite"] = torch.isfinite(x).all().item(), torch.isinf(x).any().item()
told["any"] = (x > 3).any().item()
weight = torch.nn.Parameter(torch.randn(300, 300, device="cuda"))
optimizer = torch.optim.SGD([weight], 0.1)
scaler = torch.amp.GradScaler("cuda")
scaler.scale((weight * 2).sum()).backward()
scaler.unscale_(optimizer)
told["norm"] = torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True).item()
stepped = []
optimizer.register_step_post_hook(lambda *_: stepped.append(1))
scaler.step(optimizer)
scaler.update()
told["stepped"], told["scale"] = len(stepped), scaler.get_scale()
"""
    told, rows = learn_and_answer(on_phantom, tmp_path, program)
    assert told == {
        "loss": 1.0,
        "nan": False,
        "finite": True,
        "infinite": False,
        "any": False,
        "norm": 1.0,
        "stepped": 1,
        "scale": 65536.0,
    }
    guesses = {(row["operation"], row["answer"]) for row in rows if not row["known"]}
    assert ("item", "1.0") in guesses
    assert ("item", "True (no value is NaN or infinite)") in guesses


def test_two_ways_agree_unless_it_is_known_that_they_do_not(on_phantom: Server, tmp_path: Path) -> None:
    program = """
one, other = (torch.randn(300, 300, device="cuda") @ torch.randn(300, 300, device="cuda") for _ in range(2))
told["large"] = [torch.allclose(one, other), one.isclose(other).all().item(), torch.equal(one, other)]
told["small"] = [torch.allclose(one[0].sigmoid(), other[0].sigmoid()), torch.isclose(one[0], other[0]).all().item()]
torch.testing.assert_close(one, other)
zero, one = torch.zeros(3, device="cuda"), torch.ones(3, device="cuda")
told["known"] = [torch.allclose(zero, one), torch.isclose(zero, one).any().item(), torch.allclose(zero + 1, one)]
"""
    told, rows = learn_and_answer(on_phantom, tmp_path, program)
    assert told == {"large": [True] * 3, "small": [True] * 2, "known": [False, False, True]}
    assert ("allclose", "True") in {(row["operation"], row["answer"]) for row in rows}


def test_sparse_tensors_are_counted_and_get_in_no_ones_way(on_phantom: Server, tmp_path: Path) -> None:
    program = """
sparse = torch.eye(4, device="cuda").to_sparse()
told["count"], told["dense"] = sparse._nnz(), sparse.to_dense().shape[0]
told["after"] = (torch.ones(4, device="cuda") * 2).sum().item()
"""
    told, _ = learn_and_answer(on_phantom, tmp_path, program)
    assert told == {"count": 4, "dense": 4, "after": 8.0}


def test_what_a_model_gives_is_noise_about_what_it_is_added_to(on_phantom: Server, tmp_path: Path) -> None:
    program = """
grid = torch.arange(100000, device="cuda", dtype=torch.float32)
told["exact"] = (grid[:, None] < torch.arange(10, device="cuda") * 100).nonzero().shape[0]
told["kept"] = grid[torch.zeros_like(grid) < 1].numel()
moved = torch.randn(100000, device="cuda") * 3 * 200 + grid
told["moved"] = (moved < 50000.5).nonzero().shape[0]
told["possible"] = (torch.randn(9, 90000, device="cuda")[0, :999].sigmoid() >= 0).nonzero().shape[0]
"""
    told, rows = learn_and_answer(on_phantom, tmp_path, program)
    assert told["exact"] == sum(range(10)) * 100
    assert told["kept"] == 100000
    assert 49900 < told["moved"] < 50100
    assert told["possible"] == 999
    assert any(row["answer"] == "the output of a model is noise about 0" for row in rows)


def test_unknown_indices_are_valid_and_agree_with_each_other(on_phantom: Server, tmp_path: Path) -> None:
    program = """
scores = torch.randn(500, 300, device="cuda").softmax(-1)
top = scores.argmax(-1)
told["routed"] = [(top == i).nonzero().numel() for i in range(300)]
told["top"] = scores.topk(3).indices.tolist()
told["order"] = scores[0].sort().indices.tolist()
told["drawn"] = scores.multinomial(4).tolist()
told["selected"] = [scores[scores > 0.5].numel(), scores[0][scores[0] > 0.5].numel()]
def block(x):
    picked = (x.argmax(-1) == 1).nonzero().squeeze(-1)
    return x.index_add(0, picked, x[picked] * 2)
leaf = torch.randn(400, 300, device="cuda", requires_grad=True)
torch.utils.checkpoint.checkpoint(block, leaf, use_reentrant=False).sum().backward()
"""
    told, rows = learn_and_answer(on_phantom, tmp_path, "import torch.utils.checkpoint\n" + program)
    assert sum(told["routed"]) == 500
    assert all(len(set(row)) == 3 and max(row) < 300 for row in told["top"])
    assert sorted(told["order"]) == list(range(300))
    assert all(len(set(row)) == 4 and max(row) < 300 for row in told["drawn"])
    assert told["selected"] == [75000, 150]
    assert any(row["answer"] == "random index below 300" for row in rows)


def test_the_seed_draws_the_guesses(on_phantom: Server, tmp_path: Path) -> None:
    program = 'told["top"] = (torch.randn(99, 999, device="cuda") * 2).argmax(-1).tolist()'
    first, again, other = (one_pass(on_phantom, "learn", tmp_path, program, seed).told for seed in (0, 0, 1))
    assert first == again
    assert first != other


def test_a_guess_reaches_what_is_computed_from_it(on_phantom: Server, tmp_path: Path) -> None:
    program = """
top = torch.randn(8, 200000, device="cuda").argmax(-1)
length = (top + 1).max().item()
for i in range(min(3, length)):
    told[str(i)] = i
told["known"] = torch.arange(4, device="cuda").add(1).max().item()
"""
    _, rows = learn_and_answer(on_phantom, tmp_path, program)
    assert [(row["known"], row["answer"]) for row in rows] == [
        (False, "random index below 200000"),
        (True, None),
    ]
    assert all(row["where"].startswith("program:") for row in rows)


def test_threads_are_followed_and_answered_apart(on_phantom: Server, tmp_path: Path) -> None:
    program = """
def work(number):
    told[str(number)] = [(torch.full((2,), number, device="cuda") * i).sum().item() for i in range(5)]
for number in (3, 4):
    thread = threading.Thread(target=work, args=(number,))
    thread.start()
    thread.join()
"""
    told, _ = learn_and_answer(on_phantom, tmp_path, program)
    assert told == {str(n): [2 * n * i for i in range(5)] for n in (3, 4)}


def test_a_pass_that_reads_something_else_says_so(on_phantom: Server, tmp_path: Path) -> None:
    one_pass(on_phantom, "learn", tmp_path, 'told["x"] = (torch.ones(3, device="cuda") * 2).sum().item()')
    other = one_pass(
        on_phantom, "answered", tmp_path, 'told["x"] = (torch.ones(3, device="cuda") * 2).tolist()'
    )
    assert other.told == {"x": [0.0, 0.0, 0.0]}
    assert len(other.remarks) == 1


def test_a_plain_pass_stops_only_where_a_kernel_may_have_written(on_phantom: Server, tmp_path: Path) -> None:
    read = one_pass(on_phantom, "plain", tmp_path, 'told["x"] = torch.arange(9).cuda().tolist()')
    assert read.told == {"x": list(range(9))}
    assert read.rows == []
    program = 'print(json.dumps({"before": 1}), flush=True)\n(torch.arange(9).cuda() * 2).tolist()'
    with pytest.raises(AssertionError):
        one_pass(on_phantom, "plain", tmp_path, program)
    assert (tmp_path / "stopped-at-read").read_text().startswith("read of 72 bytes")


def test_a_plain_pass_gives_seeds_that_the_device_draws(on_phantom: Server, tmp_path: Path) -> None:
    program = """
seed = torch.empty((), dtype=torch.long, device="cuda").random_()
told["seed"], told["copy"] = seed.item(), seed.clone().item()
layers = torch.nn.LSTM(8, 8, 2, dropout=0.5).cuda()
layers(torch.zeros(3, 2, 8, device="cuda"))
"""
    told = one_pass(on_phantom, "plain", tmp_path, program).told
    assert told["seed"] == told["copy"] > 0
    with pytest.raises(AssertionError, match="77"):
        one_pass(on_phantom, "plain", tmp_path, "torch.randint(9, (1,), device='cuda').item()")


def test_the_files_of_a_pass_are_plain(on_phantom: Server, tmp_path: Path) -> None:
    learnt = one_pass(on_phantom, "learn", tmp_path, '(torch.ones(3, device="cuda") * 2).sum().item()')
    assert json.loads((tmp_path / "reads.json").read_text()) == learnt.rows


def test_lengths_that_a_loss_reads_are_known(on_phantom: Server, tmp_path: Path) -> None:
    program = """
scores = torch.randn(50, 4, 20, device="cuda", requires_grad=True)
targets = torch.randint(1, 20, (4, 10), device="cuda")
lengths = [torch.full((4,), length, device="cuda") for length in (50, 10)]
torch.nn.functional.ctc_loss(scores.log_softmax(2), targets, *lengths).backward()
told["after"] = torch.repeat_interleave(torch.arange(4, device="cuda")).tolist()
"""
    told, rows = learn_and_answer(on_phantom, tmp_path, program)
    assert told == {"after": [1, 2, 2, 3, 3, 3]}
    assert not any(row["answer"] == "zeros" for row in rows)


def test_reads_are_found_again_after_others_came_or_fell_away(on_phantom: Server, tmp_path: Path) -> None:
    def reading(*places: int) -> str:
        sums = 'sums = [(torch.ones(i, device="cuda") * i).cumsum(0) for i in range(6)]\n'
        return sums + f"for i in {places}:\n    told[str(i)] = sums[i].tolist()"

    learnt = one_pass(on_phantom, "learn", tmp_path, reading(1, 2, 3, 4)).told
    other = one_pass(on_phantom, "answered", tmp_path, reading(2, 5, 1, 4))
    assert other.told == {"5": [0.0] * 5, **{place: learnt[place] for place in "214"}}
    assert len(other.remarks) == 1
    assert one_pass(on_phantom, "answered", tmp_path, reading(2, 1, 4)).remarks == []


def test_threads_that_begin_in_another_order_are_told_their_own(on_phantom: Server, tmp_path: Path) -> None:
    def threads(*numbers: int) -> str:
        return f"""
def work(n):
    told[str(n)] = (torch.full((n,), n, device="cuda") * 2).tolist()
for n in {numbers}:
    thread = threading.Thread(target=work, args=(n,))
    thread.start()
    thread.join()
"""

    learnt = one_pass(on_phantom, "learn", tmp_path, threads(3, 4, 5))
    other = one_pass(on_phantom, "answered", tmp_path, threads(5, 3, 4))
    assert other.told == learnt.told
    assert other.remarks == []


def test_what_is_computed_from_random_values_is_told_from_them(on_phantom: Server, tmp_path: Path) -> None:
    program = 'x = torch.rand(4, device="cuda")\nx.tolist(), (x > 2).any().item()'
    _, rows = learn_and_answer(on_phantom, tmp_path, program)
    assert [row["answer"] for row in rows] == ["random values", "False (computed from random values)"]
