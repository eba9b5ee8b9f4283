"""Small training programs that leak, each with an innocent twin. `# here` marks the line that a finding must name."""

from __future__ import annotations

BEGIN = """
import collections, functools, gc, weakref
import torch, torch.nn as nn
MIB = 1 << 20
def mib(n=1):
    return torch.empty(n * MIB, dtype=torch.uint8, device="cuda")
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(512, 512), nn.Linear(512, 512)
    def forward(self, x):
        return self.two(torch.relu(self.one(x)))
model = Model().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def batch(n=512):
    return torch.randn(n, 512, device="cuda")
def train(x, **more):
    loss = model(x).square().mean()
    loss.backward(**more)
    optimizer.step()
    optimizer.zero_grad()
    return loss
"""

LEAKS = {
    "a list of outputs": (
        "leak/growing-container",
        """
outputs = []
def main():
    for _ in range(16):
        x = batch()
        train(x)
        with torch.no_grad():
            outputs.append(model(x))  # here
main()
""",
    ),
    "a dict on an object": (
        "leak/growing-container",
        """
class Trainer:
    def __init__(self):
        self.seen = {}
    def run(self):
        for i in range(16):
            x = batch()
            train(x)
            self.seen[i] = x  # here
Trainer().run()
""",
    ),
    "a list that a function is given": (
        "leak/growing-container",
        """
def note(store, value):
    store["features"].append(value)  # here
def main():
    store = {"features": [], "names": []}
    for _ in range(16):
        train(batch())
        note(store, mib(4))
main()
""",
    ),
    "a cached function": (
        "leak/growing-container",
        """
@functools.lru_cache(maxsize=None)  # here
def mask(step):
    return mib(2)
for step in range(16):
    train(batch())
    mask(step)
""",
    ),
    "hooks that pile up": (
        "leak/growing-container",
        """
def scaled(by):
    def hook(module, args, output):
        return None if by is None else output
    return hook
for _ in range(16):
    model.register_forward_hook(scaled(mib(2)))  # here
    train(batch())
""",
    ),
    "losses with their graphs": (
        "leak/retained-graph",
        """
losses = []
for _ in range(16):
    train(batch())
    losses.append(model(batch()).mean())  # here
""",
    ),
    "a sum of losses": (
        "leak/retained-graph",
        """
def main():
    total = 0
    for _ in range(16):
        train(batch())
        loss = model(batch()).mean()
        total += loss  # here
    print(float(total))
main()
""",
    ),
    "a hidden state": (
        "leak/retained-graph",
        """
cell = nn.GRUCell(512, 512).cuda()
more = torch.optim.SGD(cell.parameters(), 0.1)
hidden = torch.zeros(512, 512, device="cuda")
for _ in range(16):
    hidden = cell(batch(), hidden)  # here
    loss = hidden.square().mean()
    loss.backward(retain_graph=True)
    optimizer.step()
    optimizer.zero_grad()
""",
    ),
    "an object that refers to itself": (
        "leak/reference-cycle",
        """
gc.disable()
class State:
    def __init__(self):
        self.memory = mib(8)
        self.callback = lambda: self.memory  # here
for _ in range(16):
    State()
    train(batch())
""",
    ),
    "parents and children": (
        "leak/reference-cycle",
        """
class Node:
    def __init__(self, parent=None):
        self.memory, self.children = mib(8), []
        self.parent = parent  # here
        if parent is not None:
            parent.children.append(self)
for step in range(24):
    Node(Node())
    train(batch())
    if step % 8 == 7:
        gc.collect()
""",
    ),
    "errors that are kept": (
        "leak/traceback",
        """
errors = []
def risky():
    big = mib(8)
    raise ValueError("bad batch")
def main():
    for _ in range(16):
        train(batch())
        try:
            risky()
        except ValueError as error:
            errors.append(error)  # here
main()
""",
    ),
    "graphs that a validation piles up": (
        "leak/retained-graph",
        """
def validate():
    scores = []
    for _ in range(400):
        scores.append(model(batch()).mean())  # here
    return torch.stack(scores).mean().item()
for step in range(24):
    model.train()
    train(batch())
    if step % 8 == 7:
        model.eval()
        validate()
""",
    ),
    "a server whose state is not detached": (
        "leak/retained-graph",
        """
class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.state = nn.Linear(512, 512), None
    def forward(self, x):
        held = x if self.state is None else x + self.state
        self.state = torch.tanh(self.mix(held))  # here
        return self.state
def main():
    server = Filter().cuda().eval()
    for _ in range(400):
        server(batch()).argmax(1).tolist()
main()
""",
    ),
    "a side stream for the set-up": (
        "leak/side-stream-cache",
        """
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    staged = torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")  # here
torch.cuda.synchronize()
del staged
for _ in range(16):
    train(batch())
""",
    ),
    "a tensor that only native code has": (
        "leak/unknown-owner",
        """
for _ in range(16):
    train(batch())
    torch._C._cuda_cudaCachingAllocator_raw_alloc(4 * MIB, 0)  # here
""",
    ),
}

INNOCENT = {
    "numbers instead of losses": """
losses = []
for _ in range(16):
    losses.append(train(batch()).item())
""",
    "a ring buffer": """
recent = collections.deque(maxlen=4)
for _ in range(24):
    recent.append(batch())
    train(recent[-1])
""",
    "a ring buffer that is not full yet": """
recent = collections.deque(maxlen=100)
for _ in range(16):
    recent.append(batch())
    train(recent[-1])
""",
    "a list that each epoch empties": """
for _ in range(4):
    outputs = []
    for _ in range(6):
        x = batch()
        train(x)
        with torch.no_grad():
            outputs.append(model(x))
    torch.cat(outputs)
    outputs.clear()
""",
    "batches of every size": """
import random
random.seed(1)
for _ in range(32):
    x = batch(random.randrange(64, 2048))
    out = model(x)
    loss = out.square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "the longest batch so far": """
longest = None
for n in (64, 512, 128, 1024, 256, 1024, 512, 900, 700, 1024, 64, 32, 1000, 999, 512, 128):
    x = batch(n)
    if longest is None or len(x) > len(longest):
        longest = x
    train(x)
""",
    "a state of Adam, made at the first step": """
optimizer = torch.optim.Adam(model.parameters())
for _ in range(16):
    train(batch())
""",
    "a cache that is soon complete": """
seen = {}
for step in range(32):
    n = 128 * (1 + step % 4)
    if n not in seen:
        seen[n] = mib(8)
    train(batch(n))
""",
    "evaluations": """
for step in range(16):
    train(batch())
    if step % 4 == 3:
        model.eval()
        with torch.no_grad():
            outputs = [model(batch(2048)) for _ in range(8)]
            torch.cat(outputs)
        del outputs
        model.train()
""",
    "outputs that a validation gathers": """
def validate():
    with torch.no_grad():
        outputs = [model(batch()) for _ in range(400)]
    return torch.cat(outputs).mean().item()
for step in range(24):
    model.train()
    train(batch())
    if step % 8 == 7:
        model.eval()
        validate()
""",
    "a server whose state is replaced": """
class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.state = nn.Linear(512, 512), None
    def forward(self, x):
        held = x if self.state is None else x + self.state.detach()
        self.state = torch.tanh(self.mix(held))
        return self.state
def main():
    server = Filter().cuda().eval()
    for _ in range(400):
        server(batch()).argmax(1).tolist()
main()
""",
    "a state that is detached": """
cell = nn.GRUCell(512, 512).cuda()
hidden = torch.zeros(512, 512, device="cuda")
for _ in range(16):
    hidden = cell(batch(), hidden.detach())
    hidden.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "objects without cycles": """
class State:
    def __init__(self):
        self.memory = mib(8)
        me = weakref.ref(self)
        self.callback = lambda: me().memory
for _ in range(16):
    State()
    train(batch())
""",
    "weights averaged over the steps": """
average = {name: value.clone() for name, value in model.state_dict().items()}
for _ in range(16):
    train(batch())
    average = {name: 0.9 * average[name] + 0.1 * value for name, value in model.state_dict().items()}
""",
    "the best weights so far": """
import copy
best = None
for step in range(16):
    train(batch())
    if step in (0, 1, 3, 6, 10):
        best = copy.deepcopy(model.state_dict())
""",
    "gradients added up over four batches": """
for step in range(24):
    model(batch()).square().mean().backward()
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
""",
}
