"""What a topology needs to know of a domain: the jobs that its seats can be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mappa_envs.flow import StopWhen
from mappa_envs.topology import Act, Role, Topology, View


@dataclass(frozen=True, slots=True)
class Job:
    """What a seat is there for; the topology adds its name and what it sees."""

    duty: str
    """What the domain's rule judge expects."""
    instructions: str
    tool: Literal["python"] | None = None
    turns: int = 1
    """Most turns in a row, where the topology does not count them itself."""
    stop_when: StopWhen = "never"
    """What ends those turns early."""

    def role(self, name: str, intro: str, *sees: View) -> Role:
        """Return the role that does this job.

        Args:
            name: Of the role.
            intro: Its place in the team: one or two sentences before the job's own instructions.
            *sees: Its views.
        """
        return Role(name, f"{intro} {self.instructions}", duty=self.duty, sees=sees, tool=self.tool)

    def act(self, role: str, seat: int = 0) -> Act:
        """Return the turns of one seat of such a role."""
        return Act(role, self.turns, self.stop_when, seat)


@dataclass(frozen=True, slots=True)
class Domain:
    """The jobs of one kind of task. Every built-in topology works with every domain."""

    name: str
    team: Topology
    """The domain's team of specialists, who act one after the other; the last one gives the answer."""
    alone: Job
    """Does everything, turn by turn, until it writes `answered`."""
    answered: str
    propose: Job
    """Makes a proposal that others will see."""
    conclude: Job
    """Gives the team's answer from the proposals that it sees."""
    prove: Job
    """Does the work that `check` accepts or sends back."""
    check: Job
    """Looks at the work; writes `accepted` when it is good."""
    accepted: str
