"""`kubectl gpupool inspect`: the pool, one row a pool; `--tree` shows every device and who holds it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from fractions import Fraction

from kubectl_gpupool import outputs, pools, sources
from kubectl_gpupool.errors import CommandError
from kubectl_gpupool.options import Flags
from kubectl_gpupool.pools import PooledDevice, PoolView, State
from kubectl_gpupool.signs import Signs
from kubectl_gpupool.tables import table

HEADS = ("POOL", "PRODUCT", "DEVICES", "FREE", "MEMORY", "FITS", "CLAIMS", "STATE")
WIDE_HEADS = (*HEADS, "NODE", "DRIVER", "GENERATION")
TREE_HEADS = ("DEVICE", "PRODUCT", "MEMORY", "NVLINK DOMAIN", "STATE", "CLAIM", "POD")
GIB = Fraction(1 << 30)


def declare(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `inspect`."""
    parser.add_argument("pool", nargs="*", metavar="POOL", help="only these pools or nodes (default: all)")
    parser.add_argument("--tree", action="store_true", help="every device and who holds it")
    parser.add_argument("-o", "--output", choices=("json", "yaml", "wide", "name"), help="form of the output")
    parser.add_argument("--no-headers", action="store_true", help="leave the heads of the table away")
    sources.declare(parser)
    parser.set_defaults(run=run)


def run(parsed: argparse.Namespace, flags: Flags) -> int:
    """Show the pool."""
    snapshot, _ = sources.take(parsed, flags)
    if "resourceslices" in snapshot.missing:
        raise CommandError(f"cannot show the pool without resourceslices: {snapshot.missing['resourceslices']}")
    views = _chosen(pools.view(sources.index(snapshot), snapshot.pods), parsed.pool)
    if "resourceclaims" in snapshot.missing:
        print(f"note: devices may be held though shown free: {snapshot.missing['resourceclaims']}", file=sys.stderr)
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
        print(_table(views, wide=parsed.output == "wide", with_heads=not parsed.no_headers))
    return 0


def _chosen(views: tuple[PoolView, ...], wanted: list[str]) -> tuple[PoolView, ...]:
    if not wanted:
        return views
    for word in wanted:
        if not any(word in (view.pool.name, view.pool.node) for view in views):
            known = ", ".join(sorted({view.pool.name for view in views})) or "none"
            raise CommandError(f"no pool or node {word!r}; there are: {known}")
    return tuple(view for view in views if view.pool.name in wanted or view.pool.node in wanted)


def _table(views: tuple[PoolView, ...], *, wide: bool, with_heads: bool) -> str:
    rows = [_row(view, wide=wide) for view in views]
    if len(views) > 1:
        rows.insert(0, _total(views, wide=wide))
    return table(WIDE_HEADS if wide else HEADS, rows, with_heads=with_heads)


def _row(view: PoolView, *, wide: bool) -> tuple[str, ...]:
    devices = view.devices
    row = (
        view.pool.name,
        _products(devices),
        str(len(devices)),
        str(view.count(State.FREE)),
        _memory(devices),
        ", ".join(map(str, view.fits)) or "-",
        str(len({use.claim for pooled in devices for use in pooled.uses})),
        _state(view),
    )
    return (*row, view.pool.node or "", view.pool.driver, str(view.pool.generation)) if wide else row


def _total(views: tuple[PoolView, ...], *, wide: bool) -> tuple[str, ...]:
    devices = tuple(pooled for view in views for pooled in view.devices)
    tainted = sum(view.count(State.TAINTED) for view in views)
    row = (
        "*",
        "-",
        str(len(devices)),
        str(sum(view.count(State.FREE) for view in views)),
        _memory(devices),
        "-",
        str(len({use.claim for pooled in devices for use in pooled.uses})),
        f"{tainted} tainted" if tainted else "ok",
    )
    return (*row, f"{len({view.pool.node for view in views})} nodes", "-", "-") if wide else row


def _products(devices: tuple[PooledDevice, ...]) -> str:
    names = Counter(str(pooled.attribute("productName") or pooled.attribute("type") or "device") for pooled in devices)
    return ", ".join(names) or "-"


def _memory(devices: tuple[PooledDevice, ...]) -> str:
    sizes = [(pooled.state is State.FREE, pooled.capacity("memory")) for pooled in devices]
    total = sum((size.value for _, size in sizes if size), Fraction(0))
    free = sum((size.value for is_free, size in sizes if size and is_free), Fraction(0))
    return f"{round(free / GIB)}/{round(total / GIB)}Gi" if total else "-"


def _state(view: PoolView) -> str:
    if view.pool.invalid is not None:
        return f"invalid: {view.pool.invalid}"
    if not view.pool.complete:
        return "incomplete: a slice of this generation is missing"
    tainted = [pooled.device.name for pooled in view.devices if pooled.device.taints]
    return f"{', '.join(tainted)} tainted" if tainted else "ok"


def _tree(views: tuple[PoolView, ...], signs: Signs, *, with_heads: bool) -> str:
    rows: list[tuple[str, ...]] = []
    for view in views:
        rows.append((view.pool.name, f"{len(view.devices)} devices", *("-" for _ in range(2)), _state(view), "-", "-"))
        for number, pooled in enumerate(view.devices, start=1):
            sign = signs.last if number == len(view.devices) else signs.branch
            rows.append(_device_row(sign, pooled))
    return table(TREE_HEADS, rows, with_heads=with_heads)


def _device_row(sign: str, pooled: PooledDevice) -> tuple[str, ...]:
    taints = ",".join(f"{taint.key}:{taint.effect}" for taint in pooled.device.taints)
    memory = pooled.capacity("memory")
    return (
        sign + pooled.device.name,
        pooled.product,
        memory.text if memory else "-",
        str(pooled.attribute("nvlinkDomain") or "-"),
        f"{pooled.state} {taints}".strip(),
        ",".join(use.claim for use in pooled.uses) or "-",
        ",".join(use.pod or "" for use in pooled.uses) or "-",
    )
