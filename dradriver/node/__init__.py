"""The kubelet plugin: registration, prepare and unprepare, journal, CDI, publishing, metrics.

Settings                                 the flags of DESIGN 4.6 as values
Plugin(settings, nvml, connection)       run() until stop(); the wiring of everything in this room
"""
