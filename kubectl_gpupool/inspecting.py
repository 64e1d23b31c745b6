"""`kubectl gpupool inspect`: the pool, one row a pool; `--tree` shows every device and who holds it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from difflib import get_close_matches
from fractions import Fraction

from kubectl_gpupool import outputs, pools, sources
from kubectl_gpupool.errors import CommandError, UsageError
from kubectl_gpupool.options import Flags
from kubectl_gpupool.pools import PooledDevice, PoolView, State, Use
from kubectl_gpupool.signs import Signs
from kubectl_gpupool.tables import table

HEADS = ("POOL", "PRODUCT", "FREE", "MEMORY", "FITS", "CLAIMS", "STATE")
WIDE_HEADS = (*HEADS, "NODE", "DRIVER", "GENERATION")
TREE_HEADS = ("DEVICE", "STATE", "MEMORY", "NVLINK", "HELD BY")
GIB = Fraction(1 << 30)
KINDS = ("ResourceSlice", "ResourceClaim", "DeviceClass", "Node")
"""What the pool is shown from."""


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `inspect`."""
    parser.add_argument("pool", nargs="*", metavar="POOL", help="only these pools or nodes (default: all)")
    parser.add_argument("--tree", action="store_true", help="every device and who holds it")
    parser.add_argument("-o", "--output", choices=("json", "yaml", "wide", "name"), help="form of the output")
    parser.add_argument("--no-headers", action="store_true", help="leave out the heads of the table")
    sources.declare(parser)
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace, flags: Flags) -> int:
    """Show the pool."""
    snapshot, _ = sources.take(parsed, flags, KINDS)
    if "ResourceSlice" in snapshot.missing:
        raise CommandError(f"cannot show the pool without ResourceSlices: {snapshot.missing['ResourceSlice']}")
    if parsed.tree and parsed.output:
        raise UsageError("--tree and -o cannot go together: -o json holds every device too")
    views = _chosen(pools.view(sources.index(snapshot)), parsed.pool)
    if "ResourceClaim" in snapshot.missing:
        print(f"note: devices may be held though shown free: {snapshot.missing['ResourceClaim']}", file=sys.stderr)
    if parsed.output in ("json", "yaml"):
        document = {"apiVersion": outputs.API_VERSION, "kind": "PoolList", "pools": pools.as_json(views)}
        print(outputs.dump(document, parsed.output))
    elif parsed.output == "name":
        for view in views:
            for pooled in view.devices:
                print(f"device/{view.pool.driver}/{view.pool.name}/{pooled.device.name}")
    elif not views:
        print("No pools found: no driver has published a ResourceSlice.", file=sys.stderr)
    elif parsed.tree:
        print(_tree(views, Signs.of(flags), with_heads=not parsed.no_headers))
    else:
        print(_table(views, Signs.of(flags), wide=parsed.output == "wide", with_heads=not parsed.no_headers))
    return 0


def _chosen(views: tuple[PoolView, ...], wanted: list[str]) -> tuple[PoolView, ...]:
    names = {name for view in views for name in (view.pool.name, view.pool.node) if name}
    for word in wanted:
        if word not in names:
            near = get_close_matches(word, names, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(sorted(names)) or 'none'}"
            raise CommandError(f'pool or node "{word}" not found; {hint}')
    return tuple(view for view in views if not wanted or {view.pool.name, view.pool.node} & set(wanted))


def _table(views: tuple[PoolView, ...], signs: Signs, *, wide: bool, with_heads: bool) -> str:
    rows = [_row(view, wide=wide) for view in views]
    if len(views) > 1:
        rows.insert(0, _total(views, wide=wide))
    return table(WIDE_HEADS if wide else HEADS, rows, signs, with_heads=with_heads)


def _row(view: PoolView, *, wide: bool) -> tuple[str, ...]:
    devices = view.devices
    row = (
        view.pool.name,
        _products(devices),
        f"{view.count(State.FREE)}/{len(devices)}",
        _memory(devices),
        ", ".join(map(str, view.fits)) or "-",
        str(_claims(devices)),
        _state(view),
    )
    return (*row, view.pool.node or "", view.pool.driver, str(view.pool.generation)) if wide else row


def _total(views: tuple[PoolView, ...], *, wide: bool) -> tuple[str, ...]:
    devices = tuple(pooled for view in views for pooled in view.devices)
    wrong = sum(_state(view) != "ok" for view in views)
    row = (
        "*",
        f"{len(views)} pools",
        f"{sum(view.count(State.FREE) for view in views)}/{len(devices)}",
        _memory(devices),
        "-",
        str(_claims(devices)),
        f"{wrong} not ok" if wrong else "ok",
    )
    return (*row, f"{len({view.pool.node for view in views})} nodes", "-", "-") if wide else row


def _claims(devices: tuple[PooledDevice, ...]) -> int:
    return len({use.claim for pooled in devices for use in pooled.uses})


def _products(devices: tuple[PooledDevice, ...]) -> str:
    names = Counter(pooled.product for pooled in devices)
    return ", ".join(names if len(names) == 1 else (f"{count} {name}" for name, count in names.items())) or "-"


def _memory(devices: tuple[PooledDevice, ...]) -> str:
    """Free and all memory."""
    sizes = [(pooled.state is State.FREE, pooled.capacity("memory")) for pooled in devices]
    total = sum((size.value for _, size in sizes if size), Fraction(0))
    free = sum((size.value for is_free, size in sizes if size and is_free), Fraction(0))
    return f"{round(free / GIB)}/{round(total / GIB)}Gi" if total else "-"


def _state(view: PoolView) -> str:
    if view.pool.invalid is not None:
        return f"invalid: {view.pool.invalid}"
    if not view.pool.complete:
        return "incomplete: being published"
    tainted = [pooled.device.name for pooled in view.devices if pooled.device.taints]
    more = f" and {len(tainted) - 2} more" if len(tainted) > 2 else ""  # noqa: PLR2004 - two names tell which
    return f"{', '.join(tainted[:2])}{more} tainted" if tainted else "ok"


def _tree(views: tuple[PoolView, ...], signs: Signs, *, with_heads: bool) -> str:
    """All devices under their pools; the pool's own line carries what they have in common."""
    rows = [_device_row(view, number, signs) for view in views for number in range(len(view.devices))]
    lines = table(TREE_HEADS, rows, signs, with_heads=with_heads).split("\n")
    written = lines[:1] if with_heads else []
    position = len(written)
    for view in views:
        written.append(_heading(view))
        written += lines[position : position + len(view.devices)]
        position += len(view.devices)
    return "\n".join(written)


def _heading(view: PoolView) -> str:
    free = f"{view.count(State.FREE)} of {len(view.devices)} free"
    state = _state(view)
    wrong = f", {state}" if state != "ok" else ""
    elsewhere = f", node {view.pool.node}" if view.pool.node not in (None, view.pool.name) else ""
    return f"{view.pool.name}  {_products(view.devices)}, {free}{elsewhere}{wrong}"


def _device_row(view: PoolView, number: int, signs: Signs) -> tuple[str, ...]:
    pooled = view.devices[number]
    memory = pooled.capacity("memory")
    domain = str(pooled.attribute("nvlinkDomain") or "-")
    taints = ",".join(f"{taint.key}:{taint.effect}" for taint in pooled.device.taints)
    return (
        (signs.last if number == len(view.devices) - 1 else signs.branch) + pooled.device.name,
        f"{pooled.state} {taints}".strip(),
        memory.text if memory else "-",
        domain.removeprefix(f"{view.pool.name}."),
        ", ".join(map(_holder, pooled.uses)) or "-",
    )


def _holder(use: Use) -> str:
    namespace, _, _ = use.claim.partition("/")
    return use.claim + (f" (pod {use.pod.removeprefix(f'{namespace}/')})" if use.pod else "")
