"""`make`-style registration of multi-agent environments, shared with PettingZoo and Gymnasium.

```python
import envs_registry

envs_registry.register("Acme/Relay-v0", "acme.relay:RelayEnv", kwargs={"rounds": 3})
env = envs_registry.make("Acme/Relay", rounds=5)
```
"""

from envs_registry.errors import (
    ConfigError,
    EntryPointError,
    EnvIdError,
    MappaError,
    PluginWarning,
    RegistryError,
    UnknownEnvError,
)
from envs_registry.registry import make, pprint_registry, register, registered, spec
from envs_registry.spec import FACES, EnvSpec, Face

__all__ = [
    "FACES",
    "ConfigError",
    "EntryPointError",
    "EnvIdError",
    "EnvSpec",
    "Face",
    "MappaError",
    "PluginWarning",
    "RegistryError",
    "UnknownEnvError",
    "make",
    "pprint_registry",
    "register",
    "registered",
    "spec",
]
