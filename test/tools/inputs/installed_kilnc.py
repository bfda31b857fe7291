"""Calls the command kilnc of an installed package as the script that pip makes of its entry point does."""

import importlib.metadata
import sys

command, = [each for each in importlib.metadata.distribution("kiln").entry_points if each.name == "kilnc"]
assert command.group == "console_scripts", command
sys.exit(command.load()())
