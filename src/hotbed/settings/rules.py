"""The advice: one small function for each thing known about a combination of settings, torch version and use."""

from __future__ import annotations

from hotbed.settings.roundup import GREATER_EXCLUDES_LAST, INTERVALS, table
from hotbed.settings.rule import Advice, Case, Rule, rule
from hotbed.settings.torch_version import TorchVersion
from hotbed.settings.versions import V2_10, V2_11

USES = {
    "fraction": "a memory limit is set with set_per_process_memory_fraction",
    "graphs": "CUDA graphs are captured",
    "ipc": "CUDA tensors are sent to other processes",
    "late-env": "the variable is assigned in Python, after import torch",
    "mempool": "torch.cuda.MemPool is used",
    "nixl": "NIXL or UCX moves GPU memory",
    "pluggable": "a MemPool has an allocator of its own (CUDAPluggableAllocator)",
    "runtime": "the string is set while the program runs (_set_allocator_settings)",
    "sleep-mode": "vLLM runs with sleep mode",
    "spawn": "worker processes are started with spawn",
    "windows": "the program runs on Windows",
    "wsl": "the program runs under WSL",
}
"""Words that say what a program does besides allocating, and what each means."""

_FALLBACK = "instead try roundup_power2_divisions:[32:256,64:128,256:64,>:32], and replay a trace with it"
_WITHOUT = "leave expandable_segments out"
_SCOPED = "torch.cuda.memory._set_allocator_settings('expandable_segments:False')"


@rule("error", until=(2, 5))
def expandable_ipc_missing(case: Case) -> Advice | None:
    """PyTorch issue 130330; support came with PR 130890."""
    if not (case.expandable and "ipc" in case.uses):
        return None
    return Advice(
        "tensors in expandable segments cannot be sent to other processes before torch 2.5", _WITHOUT
    )


@rule("warning", since=(2, 5))
def expandable_ipc(case: Case) -> Advice | None:
    """PyTorch issues 130330, 186213, 198305; allocator-semantics section 4 (2.15 reserves only what is shared)."""
    if not (case.expandable and "ipc" in case.uses):
        return None
    space = (
        ""
        if case.version >= TorchVersion(2, 15)
        else ", and every import reserves 9/8 of the GPU as address space"
    )
    return Advice(
        "sharing expandable memory needs pidfd_open and pidfd_getfd (Linux 5.6, allowed in the container); libraries "
        f"that use cudaIpcGetMemHandle cannot share it{space}",
        f"allocate what is shared after {_SCOPED}",
    )


@rule("error", since=(2, 7), until=(2, 9))
def expandable_mempool(case: Case) -> Advice | None:
    """PyTorch PR 148378 and its review of July 2025; 2.9.1 and later accept it on the phantom GPU."""
    if not (case.expandable and "mempool" in case.uses):
        return None
    return Advice("allocating from any torch.cuda.MemPool raises while expandable segments are on", _WITHOUT)


@rule("warning", since=(2, 5), until=(2, 7))
def expandable_pluggable_bypassed(case: Case) -> Advice | None:
    """PyTorch issue 147851; private pools use expandable memory from 2.5 (allocator-semantics section 10)."""
    if not (case.expandable and "pluggable" in case.uses):
        return None
    return Advice(
        "the MemPool's own allocator is silently never called: its memory comes from expandable segments"
    )


@rule("error", since=(2, 7), until=(2, 11))
def expandable_pluggable(case: Case) -> Advice | None:
    """PyTorch issue 147851 and PR 169491; 2.9.1 raises and 2.11.0 does not on the phantom GPU, 2.10 is not tested."""
    if not (case.expandable and "pluggable" in case.uses):
        return None
    return Advice(
        "a MemPool with its own allocator raises while expandable segments are on",
        f"switch them off around the pool: {_SCOPED}, naming your other options in the same string",
    )


@rule("info", since=(2, 11))
def expandable_pluggable_apart(case: Case) -> Advice | None:
    """PyTorch PRs 169491 and 185818; 2.11.0 and 2.14.1 on the phantom GPU."""
    if not (case.expandable and "pluggable" in case.uses):
        return None
    return Advice("the MemPool with its own allocator stays outside expandable segments; the rest uses them")


@rule("warning")
def expandable_sleep_mode(case: Case) -> Advice | None:
    """PyTorch issue 147851; vLLM PRs 14189, 40812 and 54351."""
    if not (case.expandable and "sleep-mode" in case.uses):
        return None
    return Advice(
        "vLLM before PR 40812 (April 2026) stops with an assertion; later ones switch expandable segments off around "
        "their pool with a string that resets max_split_size_mb, garbage_collection_threshold and roundup",
        f"{_WITHOUT} for vLLM's process; if it must stay, set it in PYTORCH_CUDA_ALLOC_CONF, the name vLLM looks at",
    )


@rule("warning")
def expandable_nixl(case: Case) -> Advice | None:
    """NIXL issue 1754: 0.3 GB/s over TCP instead of about 200 GB/s, without a message."""
    if not (case.expandable and "nixl" in case.uses):
        return None
    return Advice(
        "UCX cannot share expandable memory through CUDA IPC and may fall back to TCP: 0.3 instead of 200 GB/s",
        f"allocate registered buffers after {_SCOPED}, and look at UCX_PROTO_INFO=y",
    )


@rule("warning")
def expandable_windows(case: Case) -> Advice | None:
    """PyTorch issue 122057 and PR 176884."""
    if not (case.expandable and "windows" in case.uses):
        return None
    return Advice(
        "torch for Windows has no expandable segments: it warns and goes on without them", _FALLBACK
    )


@rule("warning")
def expandable_wsl(case: Case) -> Advice | None:
    """PyTorch issues 122057 and 192330."""
    if not (case.expandable and "wsl" in case.uses):
        return None
    return Advice(
        "under WSL expandable segments are either not supported (a warning, then ignored) or fail at the first "
        "allocation with a CUDA driver error",
        _FALLBACK,
    )


@rule("info", until=(2, 5))
def expandable_graphs(case: Case) -> Advice | None:
    """allocator-semantics section 10: private pools use expandable memory from 2.5; PyTorch PR 128068."""
    if not (case.expandable and "graphs" in case.uses):
        return None
    return Advice("the private pools of CUDA graphs do not use expandable segments before torch 2.5")


@rule("error", until=(2, 5))
def expandable_assert(case: Case) -> Advice | None:
    """allocator-semantics section 4; PyTorch issue 119452, fixed by PR 134338."""
    settings = case.settings
    alone = settings.max_split_size_mb is None and settings.garbage_collection_threshold is None
    if not case.expandable or alone:
        return None
    return Advice(
        "near the end of memory this torch stops with an internal assert", "keep expandable_segments alone"
    )


@rule("warning", since=(2, 5))
def expandable_with_split(case: Case) -> Advice | None:
    """allocator-semantics section 4; PyTorch issues 123548 and 193400 (220 to 14,060 MiB in 100 cycles)."""
    if not case.expandable or case.settings.max_split_size_mb is None:
        return None
    return Advice(
        f"free stretches of {case.settings.max_split_size_mb} MiB or more in front of a live block are not reused, "
        "so reserved memory can grow without end",
        "keep one of the two: expandable_segments:True alone",
    )


@rule("warning", since=(2, 5))
def expandable_with_gc(case: Case) -> Advice | None:
    """allocator-semantics sections 3.4 and 4: collection passes over expandable memory."""
    if not case.expandable or case.settings.garbage_collection_threshold is None:
        return None
    return Advice(
        "garbage collection never frees expandable memory, so the threshold does nothing", "leave it out"
    )


@rule("warning", since=(2, 11))
def expandable_odd_page(case: Case) -> Advice | None:
    """allocator-semantics section 4: cuMemCreate takes multiples of the granularity, 2 MiB on today's GPUs."""
    page = case.settings.large_segment_size_mb
    if not case.expandable or page is None or page % 2 == 0:
        return None
    return Advice(
        f"expandable pages of {page} MiB are no multiple of the GPU's 2 MiB granularity",
        f"large_segment_size_mb:{page + 1}",
    )


@rule("warning")
def gc_without_limit(case: Case) -> Advice | None:
    """allocator-semantics sections 3.3 and 3.4; PyTorch issue 106660."""
    if case.settings.garbage_collection_threshold is None or case.limited or case.expandable or case.is_async:
        return None
    if case.version >= V2_10:
        hint = "add per_process_memory_fraction below 1, or call torch.cuda.set_per_process_memory_fraction"
    else:
        hint = "call torch.cuda.set_per_process_memory_fraction; 1.0 is enough before torch 2.10"
    return Advice(
        "without a memory limit the threshold is a share of nothing: no memory is ever collected", hint
    )


@rule("warning")
def async_ignores(case: Case) -> Advice | None:
    """allocator-semantics section 6: parsed, then not used."""
    ignored = [key for key in case.settings.named() if key in _NATIVE_ONLY]
    if not case.is_async or not ignored:
        return None
    return Advice(f"cudaMallocAsync ignores {', '.join(ignored)}", "leave them out, or use backend:native")


_NATIVE_ONLY = (
    "expandable_segments",
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "large_segment_size_mb",
    "garbage_collection_threshold",
    "roundup_power2_divisions",
)


@rule("error")
def async_mempool(case: Case) -> Advice | None:
    """Measured on 2.9.1, 2.11.0 and 2.14.1; memory-anchors section 1 (PyTorch PR 192464 is not merged)."""
    if not (case.is_async and case.uses & {"mempool", "pluggable"}):
        return None
    return Advice("cudaMallocAsync has no memory pools: torch.cuda.MemPool raises", "use backend:native")


@rule("error")
def async_ipc(case: Case) -> Advice | None:
    """The backend answers shareIpcHandle and getIpcDevPtr with "does not yet support" (2.9.1, 2.11.0, 2.14.1)."""
    if not (case.is_async and "ipc" in case.uses):
        return None
    return Advice("tensors of cudaMallocAsync cannot be sent to other processes", "use backend:native")


@rule("warning")
def async_graphs(case: Case) -> Advice | None:
    """PyTorch issue 158641 and PR 186809; phantom-replay section 1.6."""
    if not (case.is_async and "graphs" in case.uses):
        return None
    return Advice(
        "with CUDA graphs cudaMallocAsync counts reserved memory too low and cannot check graph pools"
    )


@rule("info")
def async_unseen(case: Case) -> Advice | None:
    """allocator-semantics section 6; PyTorch issue 110194 (54 of 79 GiB live, and out of memory)."""
    if not case.is_async:
        return None
    return Advice(
        "the driver's pool fragments as well, keeps no memory history, and cannot be replayed exactly: hotbed gives "
        "estimates for it"
    )


@rule("warning")
def async_fraction(case: Case) -> Advice | None:
    """allocator-semantics section 6: only set_per_process_memory_fraction reaches this backend."""
    if not case.is_async or case.settings.per_process_memory_fraction is None:
        return None
    return Advice(
        "cudaMallocAsync does not read per_process_memory_fraction",
        "call torch.cuda.set_per_process_memory_fraction",
    )


@rule("error")
def backend_at_runtime(case: Case) -> Advice | None:
    """allocator-semantics section 7; late assignment to the environment measured on 2.9.1, 2.11.0 and 2.14.1."""
    if not case.is_async or not case.uses & {"runtime", "late-env"}:
        return None
    return Advice(
        "the backend is chosen when torch is imported and cannot change afterwards",
        "set the variable before the process starts",
    )


@rule("warning")
def late_env(case: Case) -> Advice | None:
    """Measured on 2.11.0 and 2.14.1: read once, at the first use of CUDA; axolotl PR 2183."""
    if "late-env" not in case.uses:
        return None
    return Advice(
        "the variable is read once, when CUDA starts in this process: assigned later it changes nothing",
        "set it before the process starts, e.g. in the shell or the launcher",
    )


@rule("warning")
def runtime_reset(case: Case) -> Advice | None:
    """allocator-semantics section 7, corrected by measurement: 2.11.0 and 2.14.1 keep large_segment_size_mb."""
    resets = ["max_split_size_mb", "garbage_collection_threshold", "roundup_power2_divisions"]
    if case.version >= V2_11:
        resets.append("max_non_split_rounding_mb")
    lost = [key for key in resets if key not in case.named]
    if "runtime" not in case.uses or not lost:
        return None
    return Advice(
        f"setting this at run time also resets what it does not name: {', '.join(lost)} (even if it is refused); "
        "expandable_segments and the other keys keep their value",
        "name every option you want in the same string",
    )


@rule("warning", since=(2, 10))
def fraction_at_runtime(case: Case) -> Advice | None:
    """allocator-semantics section 3.3: read when the device's allocator is created."""
    if case.settings.per_process_memory_fraction is None or "runtime" not in case.uses:
        return None
    return Advice(
        "per_process_memory_fraction is read only when CUDA starts",
        "call torch.cuda.set_per_process_memory_fraction",
    )


@rule("warning")
def runtime_spawn(case: Case) -> Advice | None:
    """Settings made at run time belong to one process; memory-anchors section 5."""
    if not {"runtime", "spawn"} <= case.uses:
        return None
    return Advice(
        "spawned workers do not inherit settings made at run time",
        "export the environment variable before the workers start",
    )


@rule("error", since=(2, 10))
def fraction_zero(case: Case) -> Advice | None:
    """allocator-semantics section 3.3; 2.11.0 and 2.14.1 on the phantom GPU fail a 512-byte request."""
    if case.settings.per_process_memory_fraction != 0:
        return None
    return Advice("a fraction of 0 is a limit of 0 bytes: the first allocation fails")


@rule("info", since=(2, 10))
def fraction_one(case: Case) -> Advice | None:
    """allocator-semantics section 10: 1.0 means no limit from 2.10."""
    if case.settings.per_process_memory_fraction != 1:
        return None
    return Advice("a fraction of 1.0 sets no limit")


@rule("warning", since=(2, 12))
def oom_rejection(case: Case) -> Advice | None:
    """allocator-semantics section 3.3: at fraction 1.0 it refuses what an emptied cache would have satisfied."""
    if ("throw_on_cudamalloc_oom", "True") not in case.settings.other or case.limited:
        return None
    return Advice(
        "throw_on_cudamalloc_oom raises before cached memory is given back, so requests fail that would have succeeded"
    )


@rule("warning")
def split_without_limit(case: Case) -> Advice | None:
    """mission A3: max_split_size_mb:128 on 18 workloads, H200, torch 2.11, no cap: 14 worse, none better."""
    if case.settings.max_split_size_mb is None or case.limited or case.is_async:
        return None
    return Advice(
        "without a memory limit this usually costs memory: on 18 workloads on an H200, max_split_size_mb:128 made 14 "
        "reserve more and none less (up to 29 -> 77 GB)",
        "choose it by measurement: hotbed tune TRACE",
    )


@rule("info")
def split_cost(case: Case) -> Advice | None:
    """PyTorch issue 113481: a Conformer ran at half speed with max_split_size_mb:256."""
    if case.settings.max_split_size_mb is None or not case.limited or case.is_async:
        return None
    return Advice(
        "near the limit blocks that cannot be split are given back with cudaFree, which waits for the GPU"
    )


@rule("info")
def split_boundary(case: Case) -> Advice | None:
    """allocator-semantics section 9.3: segments are rounded to 2 MiB, so 31 MiB under 32 makes an oversize block."""
    split = case.settings.max_split_size_mb
    if split is None or case.expandable or case.is_async:
        return None
    low = (split - 1) // 2 * 2
    return Advice(
        f"a request of more than {low} and less than {split} MiB gets a segment of {low + 2} MiB, which counts as "
        "oversize and can never serve that size again"
    )


@rule("info")
def rounding_without_split(case: Case) -> Advice | None:
    """allocator-semantics section 1.6, step 5: compared only with requests of max_split_size_mb or more."""
    settings = case.settings
    if settings.max_non_split_rounding_mb is None or settings.max_split_size_mb is not None or case.is_async:
        return None
    return Advice("max_non_split_rounding_mb does nothing without max_split_size_mb")


@rule("info", since=(2, 4))
def roundup_one(case: Case) -> Advice | None:
    """allocator-semantics section 1.3; PyTorch issue 161139."""
    if case.settings.roundup_power2_divisions != 1:
        return None
    return Advice("roundup_power2_divisions:1 is the default rounding to 512 bytes, not to powers of two")


@rule("warning", until=(2, 4))
def roundup_one_unaligned(case: Case) -> Advice | None:
    """allocator-semantics section 1.3: 2.0 to 2.3 made blocks of 513 bytes for 513 requested."""
    divisions = case.settings.roundup_power2_divisions
    if divisions is None or 1 not in table(divisions, case.version):
        return None
    return Advice("1 division switches rounding off before torch 2.4: blocks lose their 512-byte alignment")


@rule("info")
def roundup_key_range(case: Case) -> Advice | None:
    """allocator-semantics section 1.4; PyTorch issues 87290 and 93942: the documentation reads otherwise."""
    divisions = case.settings.roundup_power2_divisions
    keys = [key for key, _ in divisions if key != ">"] if isinstance(divisions, tuple) else []
    if not keys:
        return None
    first = keys[0]
    return Advice(
        f"key {first} governs requests from {first} up to {2 * int(first)} MiB, not those below {first}; being the "
        "first it also governs everything smaller"
    )


@rule("warning")
def roundup_greater_changed(case: Case) -> Advice | None:
    """allocator-semantics sections 1.4 and 10: until 2.9 ">" overwrote the last key."""
    divisions = case.settings.roundup_power2_divisions
    old, new = table(divisions, TorchVersion(2, 9)), table(divisions, GREATER_EXCLUDES_LAST)
    if old == new:
        return None
    index = next(i for i in range(INTERVALS) if old[i] != new[i])
    return Advice(
        f"'>' changed in torch 2.10: requests from {1 << index} MiB up to the next interval get {old[index]} divisions "
        f"until 2.9 and {new[index]} from 2.10",
        "name every interval instead of using '>'",
    )


@rule("info")
def roundup_open_end(case: Case) -> Advice | None:
    """allocator-semantics section 1.4: intervals never named keep 0."""
    divisions = case.settings.roundup_power2_divisions
    if not isinstance(divisions, tuple) or any(key == ">" for key, _ in divisions):
        return None
    entries = table(divisions, case.version)
    last = max((i for i in range(INTERVALS) if entries[i]), default=INTERVALS)
    if last >= INTERVALS - 1:
        return None
    return Advice(f"requests of {2 << last} MiB and more are not rounded: the list ends below them")


@rule("info")
def roundup_last_interval(case: Case) -> Advice | None:
    """allocator-semantics section 1.4: keys above 32768 share the last entry."""
    divisions = case.settings.roundup_power2_divisions
    keys = [key for key, _ in divisions if key != ">"] if isinstance(divisions, tuple) else []
    if not any(int(key) > 1 << (INTERVALS - 1) for key in keys):
        return None
    return Advice("keys above 32768 MiB all mean the last interval, 32 GiB and more")


RULES = tuple(value for value in list(globals().values()) if isinstance(value, Rule))
"""All rules, in the order of this file."""
