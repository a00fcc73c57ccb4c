"""What a record is made of: typed events, written by the job and read by the reader.

A kind of event is a class. Its fields are the members of one JSON object in a rank's file, its name is that object's
`kind`: `NonFinite` is "non-finite". Here are those of the machinery and those that more than one room reads; what one
room alone writes and reads stands in its probes/events.py. Only the standard library is imported, since a job imports
it.
"""

from .event import E as E
from .event import Event as Event
from .event import Further as Further
from .event import Where as Where
from .event import from_row as from_row
from .event import replace as replace
from .event import to_row as to_row
from .processes import Attached as Attached
from .processes import Ended as Ended
from .processes import Error as Error
from .processes import Exit as Exit
from .processes import Handled as Handled
from .processes import Launcher as Launcher
from .processes import Left as Left
from .processes import Looked as Looked
from .processes import Moves as Moves
from .processes import Note as Note
from .processes import ProbesFailed as ProbesFailed
from .processes import Stands as Stands
from .processes import Torch as Torch
from .processes import TorchNotFollowed as TorchNotFollowed
from .processes import Watches as Watches
from .ranks import Call as Call
from .ranks import Collective as Collective
from .ranks import Collectives as Collectives
from .ranks import Hang as Hang
from .ranks import Look as Look
from .ranks import Meeting as Meeting
from .ranks import Moved as Moved
from .ranks import Reached as Reached
from .ranks import Replicas as Replicas
from .ranks import Rounds as Rounds
from .ranks import Wrapper as Wrapper
from .rehearsal import NotSimulated as NotSimulated
from .rehearsal import Rehearsal as Rehearsal
from .rehearsal import RehearsedPeak as RehearsedPeak
from .rehearsal import RehearsedSteps as RehearsedSteps
from .steps import Clock as Clock
from .steps import CopyRaces as CopyRaces
from .steps import Cost as Cost
from .steps import Device as Device
from .steps import End as End
from .steps import HostWaits as HostWaits
from .steps import ProbeOff as ProbeOff
from .steps import Rested as Rested
from .steps import Setup as Setup
from .steps import Slow as Slow
from .steps import Start as Start
from .steps import Step as Step
from .steps import StreamUses as StreamUses
from .steps import Thinned as Thinned
from .steps import Thread as Thread
from .steps import Utilization as Utilization
from .steps import Veiled as Veiled
from .training import Bad as Bad
from .training import Batch as Batch
from .training import Classes as Classes
from .training import ClippedByHook as ClippedByHook
from .training import ClipScaled as ClipScaled
from .training import EditedByHand as EditedByHand
from .training import GradNorm as GradNorm
from .training import Guess as Guess
from .training import Hooks as Hooks
from .training import Loader as Loader
from .training import Made as Made
from .training import NonFinite as NonFinite
from .training import PassFailed as PassFailed
from .training import Rate as Rate
from .training import Sharded as Sharded
from .training import Skip as Skip
from .training import Stacks as Stacks
from .training import Targets as Targets
from .training import Unfilled as Unfilled
