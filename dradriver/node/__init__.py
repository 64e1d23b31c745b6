"""The kubelet plugin: registration, prepare and unprepare, journal, CDI, publishing, metrics.

    parse(arguments, environment)                      flags and environment as Settings
    Plugin(settings, opening_nvml=..., opening_connection=..., roots=...)    run() serves until stop()

This room needs grpc and protobuf (`gpupool[node]`). State on disk belongs to `state` alone; nothing here keeps anything
that a restart must not lose in memory only.
"""

from dradriver.node.apiserver import REQUEST_SECONDS
from dradriver.node.errors import NodeError, SettingsError
from dradriver.node.plugin import Plugin
from dradriver.node.settings import SYSTEM, Settings, parse

__all__ = ["REQUEST_SECONDS", "SYSTEM", "NodeError", "Plugin", "Settings", "SettingsError", "parse"]
