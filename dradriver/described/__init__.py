"""Hardware that is only described: a stand-in for the NVML library, node descriptions, fault injection.

load(name_or_path, node=None) -> Description    raises DescriptionError (file, key, value, remedy; one line)
shipped() -> tuple[str, ...]                    names of the descriptions in the package
models() -> tuple[str, ...]                     names of the GPU models in the package
Library(description, state)                     what pynvml believes to be libnvidia-ml.so.1; `state` is a directory
materialise(description, root)                  dev, proc and sys trees under a directory

Nothing here imports pynvml: what a caller of the library brings (structs, buffers) is what gets filled.
docs/described-hardware.md shows how to describe a node.
"""

from dradriver.described.description import Description
from dradriver.described.errors import DescriptionError
from dradriver.described.library import Library
from dradriver.described.loading import load, models, shipped
from dradriver.described.trees import materialise

__all__ = ["Description", "DescriptionError", "Library", "load", "materialise", "models", "shipped"]
