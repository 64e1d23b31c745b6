"""Makes the modules beside the tests importable: they are commands as well."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
