"""`kubectl gpupool`: one module for each command, one for each kind of view."""
