"""Red's true access and blue's table, as arrays over games and hosts."""

import numpy as np
from numpy.typing import NDArray

from cagepool.sim.batch import Batch
from cagepool.types import Bytes, Records


class TrueState:
    """Read-only views of a batch's memory; they always show the current state.

    Made of records, they are views of those records.
    """

    # Per game and host:
    access: Bytes  # of red: 0 none, 1 user level, 2 privileged
    privileged: Bytes  # number of red's privileged sessions
    user_seen: Bytes  # user-level sessions that blue can remove
    user_unseen: Bytes  # user-level sessions that blue cannot remove
    decoys: NDArray[np.uint16]  # bit i: names.DECOYS[i]; +256 per further Vsftpd
    malware: Bytes  # 1: a suspicious file is on the disk
    compromised: Bytes  # blue's table: 0 no, 1 unknown, 2 user, 3 privileged

    # Per game:
    ot_running: Bytes  # OTService runs on Op_Server0
    ot_pid_known: Bytes  # Impact can still stop OTService (docs/rules.md, Q2)
    ot_service_known: Bytes  # red has learned of OTService
    mail_immune: Bytes  # bit 0: User3, bit 1: User4 (docs/rules.md, L2)
    red: Bytes  # _core.Red of the episode
    edition: Bytes  # _core.Edition

    def __init__(self, source: Batch | Records) -> None:
        """View the true state of a batch, or records of type `dtypes.TRUE_STATE`."""
        state = (source.true_state if isinstance(source, Batch) else source).view()
        state.flags.writeable = False
        for field in state.dtype.names or ():
            setattr(self, field, state[field])
