"""Builds Kubernetes, containerd and runc from Go modules, once, into a cache outside the checkout.

A build's directory is named by a hash of all it is made of: module files, source, flags and Go's version. It appears
by rename, whole or not at all; a lock beside it makes whoever comes second wait and find it done. Nothing is ever
removed but what a build that was killed left half done: delete the directory to be rid of old versions.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dradriver.lab.realcluster import needs
from dradriver.lab.realcluster.errors import BuildError, MissingError

VERSIONS: Mapping[str, str] = {"1.32": "1.32.13", "1.34": "1.34.4", "1.37": "1.37.2"}
"""The releases of Kubernetes that sources are there for, by minor."""
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
BUILD_SECONDS = 3600.0
LAST_LINES = 15

_SOURCES = Path(__file__).parents[3] / "tests" / "cluster"
_VERSION = "k8s.io/component-base/version"
_CONTAINERD = "github.com/containerd/containerd/v2/cmd"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Program:
    """One binary: its file name, Go's package, and how it is built."""

    name: str
    package: str
    flags: tuple[str, ...] = ()
    cgo: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """Binaries that are built together from one module."""

    name: str
    sources: Path
    inputs: tuple[str, ...]
    """Files beside each other in `sources`, all that decides the outcome."""
    programs: tuple[Program, ...]
    links: tuple[str, ...] = ()
    """Further names of the first program."""
    modfile: str = "go.mod"


def kubernetes(version: str) -> Recipe:
    """Control plane and kubelet of one version as one binary that goes by all their names."""
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    linking = " ".join(["-s -w", *(f"-X {_VERSION}.{name}={value}" for name, value in stamps.items())])
    return Recipe(
        f"kubernetes-{version}",
        _SOURCES / "kube",
        (f"{version}.mod", f"{version}.sum", "main.go"),
        (Program("kube", ".", ("-ldflags", linking)),),
        COMPONENTS,
        f"{version}.mod",
    )


def containers() -> Recipe:
    """What runs containers: containerd with its shim and `ctr`, and runc."""
    tags = ("-tags", "no_btrfs,no_devmapper,no_zfs", "-ldflags", "-s -w")
    names = ("containerd", "containerd-shim-runc-v2", "ctr")
    runc = Program("runc", "github.com/opencontainers/runc", ("-tags", "seccomp", "-ldflags", "-s -w"), cgo=True)
    programs = (*(Program(name, f"{_CONTAINERD}/{name}", tags) for name in names), runc)
    return Recipe("containers", _SOURCES / "containers", ("go.mod", "go.sum"), programs)


def cache() -> Path:
    """Where builds are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpupool" / "kube"


def missing(recipes: Iterable[Recipe]) -> list[str]:
    """Sentences on what must be installed to build these."""
    recipes = tuple(recipes)
    found = [sentence for recipe in recipes for sentence in needs.missing_go(recipe.sources / recipe.modfile)]
    if any(program.cgo for recipe in recipes for program in recipe.programs):
        found += needs.missing_for_runc()
    return list(dict.fromkeys(found))


def build(recipe: Recipe, say: Say) -> Path:
    """The directory of a recipe's binaries, built now unless they are there.

    Args:
        recipe: What to build.
        say: Told of a build that begins or is waited for: it takes minutes.

    Raises:
        MissingError: Go, a compiler or a library is not installed.
        BuildError: Go failed.
    """
    sentences = missing([recipe])
    if sentences:
        raise MissingError("; ".join(sentences))
    go = shutil.which("go") or "go"
    built = cache() / f"{recipe.name}-{_key(recipe, _go_version(go, recipe))}"
    if built.is_dir():
        return built
    built.parent.mkdir(parents=True, exist_ok=True)
    with _locked(built.with_name(f"{built.name}.lock"), lambda: say(f"waiting for another build of {recipe.name}")):
        if not built.is_dir():
            say(f"building {recipe.name} (minutes, once)")
            _build_into(built, recipe, go)
    return built


def _build_into(built: Path, recipe: Recipe, go: str) -> None:
    for left in built.parent.glob(f"{built.name}.part-*"):
        shutil.rmtree(left)
    part = Path(tempfile.mkdtemp(dir=built.parent, prefix=f"{built.name}.part-"))
    try:
        for program in recipe.programs:
            _go_build(go, recipe, program, part / program.name)
        for link in recipe.links:
            (part / link).symlink_to(recipe.programs[0].name)
        part.chmod(0o755)
        part.rename(built)
    except BaseException:
        shutil.rmtree(part)
        raise


def _go_build(go: str, recipe: Recipe, program: Program, target: Path) -> None:
    command = [go, "build", *_flags(recipe), *program.flags, "-o", str(target), program.package]
    environment = {**os.environ, "CGO_ENABLED": "1" if program.cgo else "0", "GOWORK": "off"}
    try:
        done = subprocess.run(  # noqa: S603 - Go, on our sources
            command,
            cwd=recipe.sources,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BuildError(f"building {program.name} of {recipe.name} took over {BUILD_SECONDS:.0f} s") from error
    if done.returncode:
        last = "\n".join(done.stderr.splitlines()[-LAST_LINES:])
        raise BuildError(f"go could not build {program.name} of {recipe.name} in {recipe.sources}:\n{last}")


def _flags(recipe: Recipe) -> tuple[str, ...]:
    return ("-trimpath", "-buildvcs=false", "-mod=readonly", f"-modfile={recipe.modfile}")


def _key(recipe: Recipe, go_version: str) -> str:
    digest = hashlib.sha256(f"{go_version}\n{_flags(recipe)}\n{recipe.programs}\n{recipe.links}\n".encode())
    for name in recipe.inputs:
        digest.update((recipe.sources / name).read_bytes())
    return digest.hexdigest()[:16]


def _go_version(go: str, recipe: Recipe) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - Go
            [go, "env", "GOVERSION", "GOOS", "GOARCH"],
            cwd=recipe.sources,
            capture_output=True,
            text=True,
            timeout=needs.ASK_SECONDS,
            check=True,
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise BuildError(f"{go} does not work: {getattr(error, 'stderr', None) or error}") from error
    return done.stdout


@contextmanager
def _locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file, `waiting` called where another process holds it."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
