"""Loads the mill that `--app module:mill` names."""

import importlib
import sys
from pathlib import Path

from batchmill.errors import BatchmillError, ConfigurationError
from batchmill.mill import Mill


def load_mill(reference: str) -> Mill:
    found = load(reference)
    if not isinstance(found, Mill):
        module_name, _, name = reference.partition(":")
        what = "does not exist" if found is None else f"is a {type(found).__name__}, not a Mill"
        raise ConfigurationError(f"{module_name}:{name} {what}.")
    return found


def load(reference: str) -> object:
    """The object with that name, or None."""
    module_name, _, name = reference.partition(":")
    if not module_name or not name:
        raise ConfigurationError(
            f'--app must be module:name, for example shop.work:mill, not "{reference}".'
        )
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    return getattr(_import(module_name), name, None)


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigurationError(f"There is no module {name} in {Path.cwd()}.") from None
        raise ConfigurationError(f"{name} needs the module {error.name}: install it.") from error
    except BatchmillError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"{name} cannot be imported: {reason}") from error
