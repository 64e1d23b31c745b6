"""Hardware that is only described: a stand-in for the NVML library, node descriptions, fault injection.

load(name_or_path) -> Description       raises DescriptionError (file, value, remedy)
shipped() -> tuple[str, ...]             names of the descriptions in the package
Library(description, state)              what pynvml believes to be libnvidia-ml.so.1; state is a directory
materialise(description, root)           dev, proc and sys trees under a directory
"""
