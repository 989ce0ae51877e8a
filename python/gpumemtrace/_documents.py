# SPDX-License-Identifier: Apache-2.0
# Made from viewer/answers/documents.def by scripts/python_documents.py: change that one.
"""What the tool's commands answer: one class for each object of their JSON (docs/json.md), with the same members.
Bytes are bytes of device memory as the allocator has them, times are nanoseconds of the recorded program's
``CLOCK_MONOTONIC``. A member whose name is a word of Python has ``_`` behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Mapping, Optional, Tuple

from ._rows import Row, Table


@dataclass(frozen=True)
class InfoDefinitions(Row):
    """How many definitions of each kind the recording has.

    strings: strings (count)
    threads: threads (count)
    modules: loaded libraries (count)
    codes: Python functions (count)
    stack_nodes: nodes of the tree of stacks (count)
    """

    strings: int
    threads: int
    modules: int
    codes: int
    stack_nodes: int
    _types: ClassVar[str] = "COUNT COUNT COUNT COUNT COUNT"


@dataclass(frozen=True)
class InfoKind(Row):
    """How many events there are of one kind.

    kind: name of the kind, as in `dump`
    count: events of that kind (count)
    """

    kind: str
    count: int
    _types: ClassVar[str] = "TEXT COUNT"


@dataclass(frozen=True)
class InfoModule(Row):
    """A loaded library or program.

    start: address of its beginning in the process (address)
    end: address of its end (address)
    build_id: its build-id in hexadecimal; empty if it has none
    path: its file
    """

    start: int
    end: int
    build_id: str
    path: str
    _types: ClassVar[str] = "ADDRESS ADDRESS TEXT RAW"


@dataclass(frozen=True)
class Info(Row):
    """Facts about a recording and its program.

    file: the recording
    format_version: version of the format; 0 if the header is damaged
    pid: process id of the program
    start: time of the first event, in UTC; empty if there is none, or if its time is unknown
    duration_ns: from the first event to the last (ns)
    file_bytes: length of the recording (bytes)
    first_ns: first event (ns, of the clock of `dump`)
    last_ns: last event (ns, of the clock of `dump`)
    events: events of the recording, with those that a bounded one left out (count)
    dropped: events that could not be recorded (count)
    launches: launches of kernels and CUDA graphs that use known memory; 0 if uses are not recorded (count)
    launches_unread: the part of them whose parameters could not be read: what they use is not known (count)
    blocks: blocks of the file (count)
    damaged_blocks: blocks that cannot be read (count)
    skipped_bytes: bytes of the file that belong to no block (bytes)
    live_events: events read from the `.live` file beside it (count)
    clean_end: whether the recording has an end mark: the program ended by itself
    truncated: whether the end mark is missing, or a part of the file is damaged
    definitions: definitions by kind
    command: the command, without the folder of its program
    run: whose run it is, and in what: the columns `user` to `alloc_conf` of a lake; those that are known
    meta: facts about the process: command line, versions, devices, settings
    kinds: events by kind, for the kinds that occur
    modules: the loaded libraries
    started_unix_ns: if it is known: start of the program, or else its first event (ns since 1970)
    """

    file: str
    format_version: int
    pid: int
    start: str
    duration_ns: int
    file_bytes: int
    first_ns: int
    last_ns: int
    events: int
    dropped: int
    launches: int
    launches_unread: int
    blocks: int
    damaged_blocks: int
    skipped_bytes: int
    live_events: int
    clean_end: bool
    truncated: bool
    definitions: InfoDefinitions
    command: str
    run: Mapping[str, str]
    meta: Mapping[str, str]
    kinds: Table[InfoKind]
    modules: Table[InfoModule]
    started_unix_ns: Optional[int] = None
    _types: ClassVar[str] = "TEXT NUMBER NUMBER TEXT DURATION BYTES NS NS COUNT COUNT COUNT COUNT COUNT COUNT BYTES COUNT FLAG FLAG PART TEXT FACTS FACTS LIST LIST WALL"


@dataclass(frozen=True)
class StackFrame(Row):
    """A frame.

    kind: `python` or `native`
    function: its function; empty if not known
    file: source file, else the loaded library
    line: line, 0 if not known
    text: if it was recorded: the statement, as it was when the program started
    variables: if some were recorded: tensors in its variables, such as `x [8, 4096] float32`; at a failed request also how many a list has
    """

    kind: str
    function: str
    file: str
    line: int
    text: Optional[str] = None
    variables: Optional[str] = None
    _types: ClassVar[str] = "TEXT TEXT TEXT NUMBER TEXT TEXT"


@dataclass(frozen=True)
class Stack(Row):
    """The frames of a stack; with `--all` one object a line.

    frames: innermost first
    stack: with `--all`: its id
    """

    frames: Table[StackFrame]
    stack: Optional[int] = None
    _types: ClassVar[str] = "LIST NUMBER"


@dataclass(frozen=True)
class UnusedLine(Row):
    """A line of code and its memory of one class that is not used again.

    class_: the class of the blocks (a class)
    function: function of the line that allocated the blocks; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    bytes: bytes of its blocks (bytes)
    blocks: its blocks (count)
    last_use_ns: the last use of any of them (ns, of the clock of `dump`)
    """

    class_: str
    function: str
    file: str
    line: int
    bytes: int
    blocks: int
    last_use_ns: int
    _types: ClassVar[str] = "CLASS TEXT TEXT NUMBER BYTES COUNT NS"


@dataclass(frozen=True)
class PrivatePool(Row):
    """Private pools of one kind: parts of the framework's cache that serve no other request.

    kind: `cuda_graphs` (captured), `compiled_graphs` (of torch.compile), `mem_pool` (torch.cuda.MemPool), `unknown`
    bytes: reserved by them (bytes)
    allocated_bytes: the part of it in blocks (bytes)
    pools: number of pools (count)
    function: function of the line that called the model, or allocated, when the pools reserved most; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    """

    kind: str
    bytes: int
    allocated_bytes: int
    pools: int
    function: str
    file: str
    line: int
    _types: ClassVar[str] = "TEXT BYTES BYTES COUNT TEXT TEXT NUMBER"


@dataclass(frozen=True)
class EnginePart(Row):
    """A part of the device of a program that serves a model; all together are the device.

    part: `trained` (weights, of a program that trains as well), `weights`, `gradients`, `optimizer_state`, `lora` (adapters), `kv_cache`, `work` (activations, temporaries, workspaces), `cuda_graphs` (their pools), `graphs_of_pieces` (the same, where a forward pass is captured in several), `communication`, `other` (tensors), `cached` (not in use), `libraries` (their own allocations), `context` (and modules), `free`
    bytes: its bytes at `time_ns` (bytes)
    function: function of the line that holds most of its tensors; empty if none does; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    planned_bytes: with `planned_ns`: its bytes then; of `work` the most that a pass before took (bytes)
    training_bytes: with `training_ns`: its bytes then (bytes)
    asleep_bytes: with `asleep_ns`: its bytes on the device then (bytes)
    """

    part: str
    bytes: int
    function: str
    file: str
    line: int
    planned_bytes: Optional[int] = None
    training_bytes: Optional[int] = None
    asleep_bytes: Optional[int] = None
    _types: ClassVar[str] = "TEXT BYTES TEXT TEXT NUMBER BYTES BYTES BYTES"


@dataclass(frozen=True)
class Engine(Row):
    """The account of a program that serves a model.

    total_bytes: the device (bytes)
    time_ns: the last moment with all weights and the whole KV cache; with `training_ns` the highest one that has the KV cache, without gradients (ns, of the clock of `dump`)
    parts: those that have any bytes
    planned_ns: if a pass ran before the KV cache was made: when it was made (ns, of the clock of `dump`)
    planned_share: with `planned_ns`: of the device, what was in use then and set aside for passes (compare `gpu_memory_utilization`)
    training_ns: if the program trains as well: the highest moment of its passes with gradients, their backward passes and optimizer (ns, of the clock of `dump`)
    asleep_ns: if memory of a program that does not train was asleep: when most of it was (ns, of the clock of `dump`)
    """

    total_bytes: int
    time_ns: int
    parts: Table[EnginePart]
    planned_ns: Optional[int] = None
    planned_share: Optional[float] = None
    training_ns: Optional[int] = None
    asleep_ns: Optional[int] = None
    _types: ClassVar[str] = "BYTES NS LIST NS DECIMAL NS NS"


@dataclass(frozen=True)
class ReportDevice(Row):
    """A device that had memory.

    device: CUDA ordinal
    peak_bytes: the peak: most bytes in use at once, in blocks of the framework (without a framework: in allocations by CUDA calls) (bytes)
    peak_time_ns: its time (ns, of the clock of `dump`)
    end_bytes: in use at the end (bytes)
    peak_reserved_bytes: most that the framework had reserved (bytes)
    resident_peak_bytes: the peak without blocks whose physical memory was released (sleep modes) (bytes)
    asleep_bytes: most bytes asleep at once: in allocated blocks whose physical memory was released (bytes)
    context_bytes: in use on the device at the peak, but not by recorded allocations: contexts, modules, other processes (bytes)
    categories_at_peak: bytes by class at the peak (bytes)
    unused_at_peak_bytes: at the peak, in blocks that were used before and are not used again before they are freed; null if not all uses are known (bytes)
    unused_at_peak: the lines that allocated them, most bytes first
    used_bound_bytes: the smallest peak if each block lived from its first to its last use only; null if not all uses are known (bytes)
    ooms: how often memory ran out (count)
    pools: private pools when most was reserved, the largest first
    function: function of the line that held most at the peak (a line of code, if one held memory); empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    uuid: if it is known: its UUID, the same in every process that uses it
    engine: if the program keeps a KV cache of fixed size, or trains and has any KV cache: its account
    state_only: true for a snapshot without a trace: only one moment is known
    """

    device: int
    peak_bytes: int
    peak_time_ns: int
    end_bytes: int
    peak_reserved_bytes: int
    resident_peak_bytes: int
    asleep_bytes: int
    context_bytes: int
    categories_at_peak: Mapping[str, int]
    unused_at_peak_bytes: Optional[int]
    unused_at_peak: Table[UnusedLine]
    used_bound_bytes: Optional[int]
    ooms: int
    pools: Table[PrivatePool]
    function: str
    file: str
    line: int
    uuid: Optional[str] = None
    engine: Optional[Engine] = None
    state_only: Optional[bool] = None
    _types: ClassVar[str] = "SIGNED BYTES NS BYTES BYTES BYTES BYTES BYTES CLASSES BYTES_OR_NULL LIST BYTES_OR_NULL COUNT LIST TEXT TEXT NUMBER TEXT PART FLAG"


@dataclass(frozen=True)
class ReportContext(Row):
    """A device on which the program has a context and no memory.

    device: CUDA ordinal
    function: function of the line that made it, if the call was recorded; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    uuid: if it is known: its UUID, the same in every process that uses it
    """

    device: int
    function: str
    file: str
    line: int
    uuid: Optional[str] = None
    _types: ClassVar[str] = "SIGNED TEXT TEXT NUMBER TEXT"


@dataclass(frozen=True)
class Summary(Row):
    """A finding about a run.

    kind: `out_of_memory`, `growth` (from step to step), `spike` (the peak is far above that of the median step), `reserved` or `pools` (what the framework had reserved beyond what was ever in use), `advice` (the best change that `advise` finds without replays, if it lowers a peak of 320 MiB or more by a tenth; not searched in recordings of more than a million allocations), `line` (results of one line are a third of the peak or more, and no change is known), `unknown` (a converted snapshot does not say what a quarter of the bytes or more are), `values` (of a simulated device, that decided), `incomplete` (what the recording lacks)
    bytes: bytes that it is about; if memory ran out, the reserved bytes and the request (bytes)
    text: the finding in words
    action: the next step: a change, or the command that says more
    function: function of the line that it is about; empty if none is known; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    time_ns: its moment; 0 if it is about the whole run (ns, of the clock of `dump`)
    """

    kind: str
    bytes: int
    text: str
    action: str
    function: str
    file: str
    line: int
    time_ns: int
    _types: ClassVar[str] = "TEXT BYTES TEXT TEXT TEXT TEXT NUMBER NS"


@dataclass(frozen=True)
class ReportStep(Row):
    """A step, with `--steps`.

    step: its number from 1; 0 for the time before the first step and after the last
    peak_bytes: its peak (bytes)
    peak_time_ns: its time (ns, of the clock of `dump`)
    peak_phase: phase of the peak: `forward`, `backward`, `optimizer` and others
    peak_at: the moment in words
    categories_at_peak: bytes by class then (bytes)
    """

    step: int
    peak_bytes: int
    peak_time_ns: int
    peak_phase: str
    peak_at: str
    categories_at_peak: Mapping[str, int]
    _types: ClassVar[str] = "NUMBER BYTES NS TEXT TEXT CLASSES"


@dataclass(frozen=True)
class ValuePlace(Row):
    """A line that read values which the simulated device had not computed.

    function: function of the line that read; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    operation: PyTorch's name of the operation that read, such as `nonzero`; empty if not known
    decides: whether a decision of the program depends on the value (it is not only printed or kept)
    reads: how often (count)
    stack: id of the stack of the first read, for `stack`
    """

    function: str
    file: str
    line: int
    operation: str
    decides: bool
    reads: int
    stack: int
    _types: ClassVar[str] = "TEXT TEXT NUMBER TEXT FLAG COUNT NUMBER"


@dataclass(frozen=True)
class Values(Row):
    """Values that the program read and the simulated device had not computed.

    reads: reads in all (count)
    decisions: reads that decided how the program went on (count)
    sizes: reads that decided a size (count)
    assumed: the values that the device assumed instead, in words
    places: the lines that read, in the order of their first reads
    """

    reads: int
    decisions: int
    sizes: int
    assumed: Tuple[str, ...]
    places: Table[ValuePlace]
    _types: ClassVar[str] = "COUNT COUNT COUNT WORDS LIST"


@dataclass(frozen=True)
class Report(Row):
    """The peak, its moment, and its owners.

    events: events of the recording, with those that a bounded one left out (count)
    allocs: blocks that were allocated (count)
    frees: blocks that were freed (count)
    dropped: events that could not be recorded (count)
    truncated: whether the end mark is missing, or a part of the file is damaged
    devices: the devices that had memory
    contexts: devices without memory on which the program has a context
    summary: findings about the run, at most five, most bytes first; empty if nothing stands out
    file_bytes: length of the recording (bytes)
    steps: with `--steps`: before the first step, each step, after the last
    values_not_computed: if there are any: values that the program read and a simulated device had not computed
    """

    events: int
    allocs: int
    frees: int
    dropped: int
    truncated: bool
    devices: Table[ReportDevice]
    contexts: Table[ReportContext]
    summary: Table[Summary]
    file_bytes: int
    steps: Optional[Table[ReportStep]] = None
    values_not_computed: Optional[Values] = None
    _types: ClassVar[str] = "COUNT COUNT COUNT COUNT FLAG LIST LIST LIST BYTES LIST PART"


@dataclass(frozen=True)
class LiveBlock(Row):
    """A block.

    addr: its address (address)
    size: its size, rounded by the allocator (bytes)
    category: its class at that moment (a class)
    stack: id of the stack that allocated it, for `stack`
    born_ns: when it was allocated (ns, of the clock of `dump`)
    uses: kernels, copies, collectives and CUDA graphs that use it in its whole life; null if not all uses are known (count)
    last_use_ns: its last use up to that moment; null if there is none (ns, of the clock of `dump`)
    next_use_ns: its next use; null if `uses` is a number and it is not used again before it is freed or the recording ends, or if nothing is known (ns, of the clock of `dump`)
    function: function of the line that allocated it; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    module: modules around that line, such as `Net/Block`; empty outside of any
    rules: with `GPUMEMTRACE_TEST_RULES` set: all rules that apply, the deciding one first
    """

    addr: int
    size: int
    category: str
    stack: int
    born_ns: int
    uses: Optional[int]
    last_use_ns: Optional[int]
    next_use_ns: Optional[int]
    function: str
    file: str
    line: int
    module: str
    rules: Optional[str] = None
    _types: ClassVar[str] = "ADDRESS BYTES CLASS NUMBER NS COUNT_OR_NULL NS_OR_NULL NS_OR_NULL TEXT TEXT NUMBER TEXT TEXT"


@dataclass(frozen=True)
class Live(Row):
    """The blocks alive at a moment.

    device: CUDA ordinal
    time_ns: the moment (ns, of the clock of `dump`)
    bytes: of all blocks (bytes)
    reserved_bytes: reserved by the framework; without one, of all blocks (bytes)
    cached_bytes: the part of it outside blocks that a request to the common pool could use (bytes)
    waiting_bytes: freed, but still used by work of other streams (record_stream) (bytes)
    pools: private pools, the largest first; other requests cannot use their unused memory
    blocks: the blocks, by address
    """

    device: int
    time_ns: int
    bytes: int
    reserved_bytes: int
    cached_bytes: int
    waiting_bytes: int
    pools: Table[PrivatePool]
    blocks: Table[LiveBlock]
    _types: ClassVar[str] = "SIGNED NS BYTES BYTES BYTES BYTES LIST LIST"


@dataclass(frozen=True)
class Why(Row):
    """The class of a block, and the evidence.

    device: CUDA ordinal
    time_ns: the moment (ns, of the clock of `dump`)
    addr: its address (address)
    size: its size, rounded by the allocator (bytes)
    category: its class at that moment (a class)
    confidence: how sure the class is: `certain`, `likely` or `guess`
    rule: the rule that decided
    evidence: the evidence in words
    function: function of the line that allocated it; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    stack: id of the stack that allocated it, for `stack`
    born_ns: when it was allocated (ns, of the clock of `dump`)
    died_ns: when it was freed, 0 if it was not (ns, of the clock of `dump`)
    uses: kernels, copies, collectives and CUDA graphs that use it in its whole life; null if not all uses are known (count)
    first_use_ns: its first use (ns, of the clock of `dump`)
    last_use_ns: its last use up to the moment; null if there is none (ns, of the clock of `dump`)
    last_use_by: what that was: backward node, kernel or API function; empty if there is none
    next_use_ns: its next use; null if there is none (ns, of the clock of `dump`)
    next_use_by: what that was
    longest_pause_ns: the longest time between two uses, 0 if there is none; null if uses were left out (ns)
    longest_pause_from_ns: when that began (ns, of the clock of `dump`)
    confidence_percent: if enough bytes were measured: percent of the bytes that the rule got right
    text: if it was recorded: the statement at that line
    """

    device: int
    time_ns: int
    addr: int
    size: int
    category: str
    confidence: str
    rule: str
    evidence: str
    function: str
    file: str
    line: int
    stack: int
    born_ns: int
    died_ns: int
    uses: Optional[int]
    first_use_ns: Optional[int]
    last_use_ns: Optional[int]
    last_use_by: str
    next_use_ns: Optional[int]
    next_use_by: str
    longest_pause_ns: int
    longest_pause_from_ns: Optional[int]
    confidence_percent: Optional[int] = None
    text: Optional[str] = None
    _types: ClassVar[str] = "SIGNED NS ADDRESS BYTES CLASS TEXT TEXT TEXT TEXT TEXT NUMBER NUMBER NS NS COUNT_OR_NULL NS_OR_NULL NS_OR_NULL TEXT NS_OR_NULL TEXT DURATION NS_OR_NULL NUMBER TEXT"


@dataclass(frozen=True)
class ClassLine(Row):
    """A line of code and its memory of one class.

    class_: the class of the blocks (a class)
    function: function of the line that allocated the blocks; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    bytes: bytes of its blocks (bytes)
    blocks: its blocks (count)
    """

    class_: str
    function: str
    file: str
    line: int
    bytes: int
    blocks: int
    _types: ClassVar[str] = "CLASS TEXT TEXT NUMBER BYTES COUNT"


@dataclass(frozen=True)
class PeakDevice(Row):
    """A device that had memory.

    device: CUDA ordinal
    card: its name; empty if not known
    simulated: whether it was simulated
    total_bytes: its memory, 0 if not known (bytes)
    peak_bytes: its peak (bytes)
    peak_time_ns: the time of that (ns, of the clock of `dump`)
    peak_reserved_bytes: most that the framework had reserved (bytes)
    used_bytes: most in use on it, with its context and other libraries (bytes)
    end_bytes: in use at the end (bytes)
    allocs: blocks that were allocated (count)
    frees: blocks that were freed (count)
    retries: how often the cache was emptied to make room (count)
    refusals: how often memory ran out (count)
    """

    device: int
    card: str
    simulated: bool
    total_bytes: int
    peak_bytes: int
    peak_time_ns: int
    peak_reserved_bytes: int
    used_bytes: int
    end_bytes: int
    allocs: int
    frees: int
    retries: int
    refusals: int
    _types: ClassVar[str] = "SIGNED TEXT FLAG BYTES BYTES NS BYTES BYTES BYTES COUNT COUNT COUNT COUNT"


@dataclass(frozen=True)
class Peak(Row):
    """The peak of a device.

    device: CUDA ordinal
    bytes: bytes in use (bytes)
    time_ns: its time (ns, of the clock of `dump`)
    seq: number of the event
    step: step, 0 before the first and after the last
    phase: phase: `forward`, `backward`, `optimizer` and others
    text: the moment in words; empty if unknown
    reserved_bytes: reserved by the framework then (bytes)
    largest_hole: the largest piece of that outside blocks (bytes)
    total_bytes: memory of the device, 0 if not known (bytes)
    categories: bytes by class (bytes)
    lines: lines of code by class, the largest first
    devices: all devices that had memory
    """

    device: int
    bytes: int
    time_ns: int
    seq: int
    step: int
    phase: str
    text: str
    reserved_bytes: int
    largest_hole: int
    total_bytes: int
    categories: Mapping[str, int]
    lines: Table[ClassLine]
    devices: Table[PeakDevice]
    _types: ClassVar[str] = "SIGNED BYTES NS NUMBER NUMBER TEXT TEXT BYTES BYTES BYTES CLASSES LIST LIST"


@dataclass(frozen=True)
class StepsPeak(Row):
    """The peak of the run.

    bytes: bytes in use (bytes)
    time_ns: its time (ns, of the clock of `dump`)
    step: step, 0 before the first and after the last
    phase: phase
    what: the operation or line, in words
    text: step, phase and operation, in words
    """

    bytes: int
    time_ns: int
    step: int
    phase: str
    what: str
    text: str
    _types: ClassVar[str] = "BYTES NS NUMBER TEXT TEXT TEXT"


@dataclass(frozen=True)
class StepsRow(Row):
    """A step, or all of one phase in it.

    step: its number from 1; 0 for the time before the first step and after the last
    phase: `step` for a whole one, `setup` before the first, `after` the last; else the phase
    times: how often the phase is in the step (count)
    begin_ns: its first event (ns, of the clock of `dump`)
    end_ns: its last event (ns, of the clock of `dump`)
    begin_bytes: in use at its beginning (bytes)
    peak_bytes: its peak (bytes)
    peak_ns: its time (ns, of the clock of `dump`)
    end_bytes: in use at its end (bytes)
    growth_bytes: `end_bytes` less `begin_bytes` (bytes)
    peak_phase: phase of its peak
    peak_at: the moment of its peak in words
    ended: whether the step came to its end
    """

    step: int
    phase: str
    times: int
    begin_ns: int
    end_ns: int
    begin_bytes: int
    peak_bytes: int
    peak_ns: int
    end_bytes: int
    growth_bytes: int
    peak_phase: str
    peak_at: str
    ended: bool
    _types: ClassVar[str] = "NUMBER TEXT COUNT NS NS BYTES BYTES NS BYTES CHANGE TEXT TEXT FLAG"


@dataclass(frozen=True)
class Steps(Row):
    """The training steps and the phases in each.

    device: CUDA ordinal
    basis: how steps are recognized: `optimizer`, `backward`, `forward`, `none` and others
    steps: steps (count)
    at_least: whether there may be more steps, because calls of the model cannot be counted in a paused part of the recording
    peak: the peak of the run
    rows: in the order of time, each step before its phases
    """

    device: int
    basis: str
    steps: int
    at_least: bool
    peak: StepsPeak
    rows: Table[StepsRow]
    _types: ClassVar[str] = "SIGNED TEXT COUNT FLAG PART LIST"


@dataclass(frozen=True)
class LeaksModule(Row):
    """The outermost module, if each of its calls counts as a step.

    function: function of the line of the module's method; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    """

    function: str
    file: str
    line: int
    _types: ClassVar[str] = "TEXT TEXT NUMBER"


@dataclass(frozen=True)
class LeaksBlock(Row):
    """One of the blocks that stay.

    addr: its address (address)
    size: its size (bytes)
    stack: id of the stack that allocated it, for `stack`
    born_ns: when it was allocated (ns, of the clock of `dump`)
    step: step of its allocation
    """

    addr: int
    size: int
    stack: int
    born_ns: int
    step: int
    _types: ClassVar[str] = "ADDRESS BYTES NUMBER NS NUMBER"


@dataclass(frozen=True)
class LeaksOwner(Row):
    """A line of code that keeps more blocks with each step.

    class_: the class of the blocks (a class)
    function: function of the line that allocated the blocks; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    module: modules around that line for the latest block, such as `Net/Block`; empty outside of any
    bytes_per_step: growth with each step (bytes)
    bytes: of the blocks that stayed (bytes)
    blocks: the blocks that stayed (count)
    first: if blocks stayed: the first of them
    latest: if blocks stayed: the latest of them
    """

    class_: str
    function: str
    file: str
    line: int
    module: str
    bytes_per_step: int
    bytes: int
    blocks: int
    first: Optional[LeaksBlock] = None
    latest: Optional[LeaksBlock] = None
    _types: ClassVar[str] = "CLASS TEXT TEXT NUMBER TEXT BYTES BYTES COUNT PART PART"


@dataclass(frozen=True)
class Leaks(Row):
    """What grows from step to step.

    device: CUDA ordinal; without `--device` the one that grows most, else the one with the highest peak
    steps: steps (count)
    from_step: first of the compared steps
    to_step: last of the compared steps; the same as the first if there are too few
    growth_per_step: growth with each step, of all lines (bytes)
    reserved_growth_per_step: growth of the reserved memory with each step, if it grew in each third of the steps (bytes)
    step_basis: how steps are recognized, as in `steps`
    owners: lines of code that hold the growth, the largest first
    change: what would end most of the growth; empty if nothing grows
    unused_bytes: of models that nothing uses any more, with their gradients and optimizers, still in memory at the end of the last step (bytes)
    unused_since_step: the latest step that used some of it, 0 = none, or before the first
    unused: lines of code that allocated it, the largest first
    step_is: if each call of the outermost module counts as a step: that module; of several the last
    """

    device: int
    steps: int
    from_step: int
    to_step: int
    growth_per_step: int
    reserved_growth_per_step: int
    step_basis: str
    owners: Table[LeaksOwner]
    change: str
    unused_bytes: int
    unused_since_step: int
    unused: Table[ClassLine]
    step_is: Optional[LeaksModule] = None
    _types: ClassVar[str] = "SIGNED COUNT NUMBER NUMBER BYTES BYTES TEXT LIST TEXT BYTES NUMBER LIST PART"


@dataclass(frozen=True)
class AccountFigure(Row):
    """A figure of the model's shape.

    name: its name
    value: the figure
    source: `given`, `inferred` or `assumed`
    """

    name: str
    value: float
    source: str
    _types: ClassVar[str] = "TEXT DECIMAL TEXT"


@dataclass(frozen=True)
class AccountRow(Row):
    """A measured figure beside that of the published formula.

    section: `parameters`, `activations`, `peak`, `residual` or `out_of_memory`
    key: its name
    unit: `bytes`, `bytes_per_parameter` or `count`
    measured: if it was measured: the measured figure
    formula: if a formula fits: the formula's figure
    note: if there is one: in words
    """

    section: str
    key: str
    unit: str
    measured: Optional[float] = None
    formula: Optional[float] = None
    note: Optional[str] = None
    _types: ClassVar[str] = "TEXT TEXT TEXT DECIMAL DECIMAL TEXT"


@dataclass(frozen=True)
class Account(Row):
    """The published formulas of training memory, beside measured figures.

    device: CUDA ordinal
    step: the step that was measured, 0 if none was found
    optimizer: the optimizer's class; empty if not known
    shape: known figures of the model by name: `parameters`, `bytes`, `shards`, `layers`, `width`, `heads`, `tokens`, `batch`, `sequence`, `activation_bytes`
    rows: measured and computed figures
    """

    device: int
    step: int
    optimizer: str
    shape: Mapping[str, AccountFigure]
    rows: Table[AccountRow]
    _types: ClassVar[str] = "SIGNED NUMBER TEXT MAP LIST"


@dataclass(frozen=True)
class ModulesNode(Row):
    """A module of the tree, or a line of its forward pass.

    id: its number, from 1
    parent: number of the module around it, 0 = none
    kind: `module` or `line`
    name: class of the module, or function of the line
    file: file of the line, or of the module's forward pass
    bytes: with everything inside (bytes)
    blocks: with everything inside (count)
    line: for a line: its number
    """

    id: int
    parent: int
    kind: str
    name: str
    file: str
    bytes: int
    blocks: int
    line: Optional[int] = None
    _types: ClassVar[str] = "NUMBER NUMBER TEXT TEXT TEXT BYTES COUNT NUMBER"


@dataclass(frozen=True)
class Modules(Row):
    """Which modules hold the activations.

    device: CUDA ordinal
    time_ns: the moment (ns, of the clock of `dump`)
    class_: the class, or `all`
    bytes: of that class (bytes)
    outside_bytes: the part of it outside modules (bytes)
    modules: each before its children
    """

    device: int
    time_ns: int
    class_: str
    bytes: int
    outside_bytes: int
    modules: Table[ModulesNode]
    _types: ClassVar[str] = "SIGNED NS TEXT BYTES BYTES LIST"


@dataclass(frozen=True)
class TimelinePoint(Row):
    """A moment.

    bytes: bytes in use (bytes)
    time_ns: its time (ns, of the clock of `dump`)
    seq: number of the event
    """

    bytes: int
    time_ns: int
    seq: int
    _types: ClassVar[str] = "BYTES NS NUMBER"


@dataclass(frozen=True)
class TimelineBucket(Row):
    """A piece of the run.

    first_ns: its first event (ns, of the clock of `dump`)
    last_ns: its last event (ns, of the clock of `dump`)
    events: events in it (count)
    min: the moment with least memory in use
    max: the moment with most memory in use
    last: its last moment
    categories_at_max: bytes by class at `max` (bytes)
    categories_at_last: bytes by class at `last` (bytes)
    reserved_bytes: most that the framework had reserved in it (bytes)
    device_bytes: most in use on the device, of the samples in it; 0 if it has none (bytes)
    """

    first_ns: int
    last_ns: int
    events: int
    min: TimelinePoint
    max: TimelinePoint
    last: TimelinePoint
    categories_at_max: Mapping[str, int]
    categories_at_last: Mapping[str, int]
    reserved_bytes: int
    device_bytes: int
    _types: ClassVar[str] = "NS NS COUNT PART PART PART CLASSES CLASSES BYTES BYTES"


@dataclass(frozen=True)
class TimelinePhase(Row):
    """A phase of a step.

    step: step, 0 outside of them
    phase: phase
    first_ns: its first event (ns, of the clock of `dump`)
    last_ns: its last event (ns, of the clock of `dump`)
    """

    step: int
    phase: str
    first_ns: int
    last_ns: int
    _types: ClassVar[str] = "NUMBER TEXT NS NS"


@dataclass(frozen=True)
class Timeline(Row):
    """Memory by class over the time of the run.

    device: CUDA ordinal
    first_ns: first event of the recording (ns, of the clock of `dump`)
    last_ns: last event of the recording (ns, of the clock of `dump`)
    peak_bytes: the peak (bytes)
    peak_time_ns: its time (ns, of the clock of `dump`)
    peak_text: the moment in words; empty if unknown
    buckets: in the order of time
    phases: in the order of time
    """

    device: int
    first_ns: int
    last_ns: int
    peak_bytes: int
    peak_time_ns: int
    peak_text: str
    buckets: Table[TimelineBucket]
    phases: Table[TimelinePhase]
    _types: ClassVar[str] = "SIGNED NS NS BYTES NS TEXT LIST LIST"


@dataclass(frozen=True)
class Line(Row):
    """A line of code and its memory.

    function: function of the line that allocated the blocks; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    bytes: bytes of its blocks (bytes)
    blocks: its blocks (count)
    """

    function: str
    file: str
    line: int
    bytes: int
    blocks: int
    _types: ClassVar[str] = "TEXT TEXT NUMBER BYTES COUNT"


@dataclass(frozen=True)
class Top(Row):
    """The memory of a running process.

    pid: the process
    ended: whether the program has ended
    device: CUDA ordinal
    time_ns: the latest event (ns, of the clock of `dump`)
    events: events so far (count)
    bytes: in use now (bytes)
    peak_bytes: the peak so far (bytes)
    reserved_bytes: reserved by the framework now (bytes)
    total_bytes: memory of the device, 0 if not known (bytes)
    step: the latest step, 0 before the first
    phase: the latest phase
    categories: bytes by class (bytes)
    lines: lines of code, the largest first
    run: whose run it is, as in a lake: `user`, `host`, `job`, `job_name`, `job_task`, `namespace`, `experiment`, `experiment_run`, `labels`, `git_commit`, `git_branch`, `repository`; those that are known
    """

    pid: int
    ended: bool
    device: int
    time_ns: int
    events: int
    bytes: int
    peak_bytes: int
    reserved_bytes: int
    total_bytes: int
    step: int
    phase: str
    categories: Mapping[str, int]
    lines: Table[Line]
    run: Mapping[str, str]
    _types: ClassVar[str] = "NUMBER FLAG SIGNED NS COUNT BYTES BYTES BYTES BYTES NUMBER TEXT CLASSES LIST FACTS"


@dataclass(frozen=True)
class OomHolder(Row):
    """A line of code and its memory of one class.

    class_: the class of the blocks (a class)
    function: function of the line that allocated the blocks; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    bytes: of its blocks (bytes)
    blocks: its blocks (count)
    earlier_bytes: the part of them from earlier steps, or from earlier passes of an evaluation (bytes)
    last_use_ns: the last use of any of them; null if none was seen (ns, of the clock of `dump`)
    idle_bytes: the part of them that was used, but not in the whole step before nor since (bytes)
    """

    class_: str
    function: str
    file: str
    line: int
    bytes: int
    blocks: int
    earlier_bytes: int
    last_use_ns: Optional[int]
    idle_bytes: int
    _types: ClassVar[str] = "CLASS TEXT TEXT NUMBER BYTES COUNT BYTES NS_OR_NULL BYTES"


@dataclass(frozen=True)
class OomRemedy(Row):
    """A change that would have made room.

    name: its name
    what: the change in words
    saves_bytes: bytes that it saves; of a range the lower end, or the upper end if `at_most` is true or if that end is no bound (bytes)
    at_most: whether it saves `saves_bytes` at most, and perhaps nothing
    enough: whether that is enough: at least the missing bytes, plus the request again if memory is freed in pieces
    how_known: how the figure was found, in words; `run` if `--try` ran it to its end
    claim: its kind, in the table of docs/conclusions.md
    right: how often tests found that kind right (count)
    of: how often tests could decide, 0 = never (count)
    changes: with `--try`: the changes that make it, as `run --with` takes them; empty if it can only be made by hand
    code: with `--try`: how to write them: in plain PyTorch, and arguments of frameworks behind their names
    measured_peak_bytes: with `--try`, if it was made: peak of the run with it (`reserved`: of the reserved memory); if memory ran out, until then (bytes)
    ends: with `--try`, if it was made: whether the program then ran to its end, or until its peak was stable
    """

    name: str
    what: str
    saves_bytes: int
    at_most: bool
    enough: bool
    how_known: str
    claim: str
    right: int
    of: int
    changes: Optional[Tuple[str, ...]] = None
    code: Optional[Tuple[str, ...]] = None
    measured_peak_bytes: Optional[int] = None
    ends: Optional[bool] = None
    _types: ClassVar[str] = "TEXT TEXT BYTES FLAG FLAG TEXT TEXT COUNT COUNT WORDS WORDS BYTES FLAG"


@dataclass(frozen=True)
class OomVariable(Row):
    """A variable of a Python frame at the failed request: a tensor, or a list, tuple or dict that has some.

    name: its name
    function: function of the line that the frame was at; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    shape: sizes of the tensor, or of the first one, such as `[8, 4096]`
    type: type of its elements, such as `float32`
    tensors: tensors in a list, tuple or dict; 1 of a tensor (count)
    bytes: of their storages, which other tensors may share (bytes)
    """

    name: str
    function: str
    file: str
    line: int
    shape: str
    type: str
    tensors: int
    bytes: int
    _types: ClassVar[str] = "TEXT TEXT TEXT NUMBER TEXT TEXT COUNT BYTES"


@dataclass(frozen=True)
class OomSetting(Row):
    """A setting of PyTorch's allocator, and the result of a replay up to the failed request on the same device.

    alloc_conf: as in `PYTORCH_CUDA_ALLOC_CONF`; `default` is none
    fits: whether the request would have succeeded
    earlier: whether an earlier request already fails (then `lacking_bytes` is of that request)
    spare_bytes: if it fits: size of a further request that would also succeed (bytes)
    lacking_bytes: if it does not: the missing memory (bytes)
    """

    alloc_conf: str
    fits: bool
    earlier: bool
    spare_bytes: Optional[int] = None
    lacking_bytes: Optional[int] = None
    _types: ClassVar[str] = "TEXT FLAG FLAG BYTES BYTES"


@dataclass(frozen=True)
class OomDevice(Row):
    """Another device of the program.

    device: CUDA ordinal
    peak_bytes: its peak (bytes)
    """

    device: int
    peak_bytes: int
    _types: ClassVar[str] = "SIGNED BYTES"


@dataclass(frozen=True)
class OomGrown(Row):
    """A class, at an earlier step's peak and now.

    class_: the class (a class)
    bytes_before: at the peak of the earlier step (bytes)
    bytes: when memory ran out (bytes)
    delta: the difference (bytes)
    """

    class_: str
    bytes_before: int
    bytes: int
    delta: int
    _types: ClassVar[str] = "CLASS BYTES BYTES CHANGE"


@dataclass(frozen=True)
class OomRefusal(Row):
    """An out-of-memory error.

    nth: its number, from 1
    device: CUDA ordinal
    time_ns: its time (ns, of the clock of `dump`)
    step: step, 0 before the first and after the last
    phase: phase; empty if not known
    block_bytes: size of the program's request to the framework (bytes)
    function: function of the line that made the request; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    module: modules around that line, such as `Net/Block`; empty outside of any
    unix_ns: if it is known: its time by the clock (ns since 1970)
    """

    nth: int
    device: int
    time_ns: int
    step: int
    phase: str
    block_bytes: int
    function: str
    file: str
    line: int
    module: str
    unix_ns: Optional[int] = None
    _types: ClassVar[str] = "NUMBER SIGNED NS NUMBER TEXT BYTES TEXT TEXT NUMBER TEXT WALL"


@dataclass(frozen=True)
class OomRank(Row):
    """A recording of the folder.

    file: the recording
    rank: `rank N`, or the process
    failed: whether memory ran out there
    wall_ns: if it failed: time of the failure (ns since 1970)
    block_bytes: if it failed: size of its failed request (bytes)
    """

    file: str
    rank: str
    failed: bool
    wall_ns: Optional[int] = None
    block_bytes: Optional[int] = None
    _types: ClassVar[str] = "TEXT TEXT FLAG WALL BYTES"


@dataclass(frozen=True)
class Oom(Row):
    """The cause of an out-of-memory error, and changes that would have made room.

    asked_bytes: size of the framework's request to the device (bytes)
    free_bytes: free on the device (bytes)
    free_known: whether the device reported that
    largest_hole: largest block that could be made from cached memory (bytes)
    cause: `batch_too_large`, `retained_graph`, `held_unused`, `refused_attempts`, `growing`, `fragmentation`, `other_process`, `memory_limit`, `model_too_large`, `activation_spike`, `unsharded`, `kv_cache`, `workspace` or `unknown`
    text: the cause in words
    holders: lines of code by class, the largest first
    remedies: changes that would have made room, those for this cause first
    variables: tensors, and lists of some, in the variables of the Python frames of the request, the largest first; empty if they are not recorded, or it came from a backward pass
    look_at: what to look at in the line that made the request, or that made most of the activations, if no remedy names a line; else empty
    settings: settings of the allocator, up to the first that fits; empty if none can help or the recording cannot be replayed
    device: CUDA ordinal
    time_ns: its time (ns, of the clock of `dump`)
    nth: number of this out-of-memory error in the recording, from 1
    ooms: out-of-memory errors in the recording (count)
    went_on: whether the program allocated afterwards
    step: step, as in `steps`, 0 before the first and after the last
    phase: phase
    stack: id of the stack of the request, for `stack`
    class_: the class that the block would have had (a class)
    function: function of the line that made the request; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    block_bytes: size of the program's request to the framework (bytes)
    total_bytes: memory of the device, 0 if not known (bytes)
    allocated_bytes: allocated in blocks (bytes)
    reserved_bytes: reserved by the framework (bytes)
    cached_bytes: reserved, outside blocks, and usable for this request (bytes)
    pools: private pools, the largest first; other requests cannot use their unused memory
    waiting_bytes: freed, but still used by work of other streams (record_stream) (bytes)
    library_bytes: other libraries' allocations (bytes)
    context_bytes: in use on the device, but not by recorded calls: contexts, loaded code, other processes (bytes)
    other_bytes: the part of it above the size of a context (bytes)
    categories: bytes by class (bytes)
    compared_step: the earlier step that `grown` compares with, 0 = none
    grown: classes at that step's peak and now
    refusals: all out-of-memory errors of the recording that is explained, in order
    recording: the recording that is explained
    rank: `rank N`, or its process
    ranks: all recordings, the first to fail first
    engine_phase: of a serving engine: what it was doing: profile run, making the KV cache, start-up (what an engine makes before its first pass), CUDA graph capture, warm-up or serving
    replicas: if other devices had memory: whether the model runs as replicas on them
    other_devices: if other devices had memory: the other devices
    values_not_computed: if there are any: values that the program read and a simulated device had not computed
    tried_on: with `--try`: the simulated card that the changes were run on
    """

    asked_bytes: int
    free_bytes: int
    free_known: bool
    largest_hole: int
    cause: str
    text: str
    holders: Table[OomHolder]
    remedies: Table[OomRemedy]
    variables: Table[OomVariable]
    look_at: str
    settings: Table[OomSetting]
    device: int
    time_ns: int
    nth: int
    ooms: int
    went_on: bool
    step: int
    phase: str
    stack: int
    class_: str
    function: str
    file: str
    line: int
    block_bytes: int
    total_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    cached_bytes: int
    pools: Table[PrivatePool]
    waiting_bytes: int
    library_bytes: int
    context_bytes: int
    other_bytes: int
    categories: Mapping[str, int]
    compared_step: int
    grown: Table[OomGrown]
    refusals: Table[OomRefusal]
    recording: str
    rank: str
    ranks: Table[OomRank]
    engine_phase: Optional[str] = None
    replicas: Optional[bool] = None
    other_devices: Optional[Table[OomDevice]] = None
    values_not_computed: Optional[Values] = None
    tried_on: Optional[str] = None
    _types: ClassVar[str] = "BYTES BYTES FLAG BYTES TEXT TEXT LIST LIST LIST TEXT LIST SIGNED NS NUMBER COUNT FLAG NUMBER TEXT NUMBER CLASS TEXT TEXT NUMBER BYTES BYTES BYTES BYTES BYTES LIST BYTES BYTES BYTES BYTES CLASSES NUMBER LIST LIST TEXT TEXT LIST TEXT FLAG LIST PART TEXT"


@dataclass(frozen=True)
class DiffMoment(Row):
    """The moment of a recording that is compared.

    time_ns: its time (ns, of the clock of `dump`)
    step: step, 0 before the first
    phase: phase
    bytes: bytes in use (bytes)
    """

    time_ns: int
    step: int
    phase: str
    bytes: int
    _types: ClassVar[str] = "NS NUMBER TEXT BYTES"


@dataclass(frozen=True)
class DiffSide(Row):
    """A recording.

    file: the recording
    commit: the program's commit; empty if not known
    branch: the program's branch; empty if not known
    command: the command line
    device: CUDA ordinal
    steps: steps (count)
    peak_bytes: its peak (bytes)
    compared: the moment that is compared
    """

    file: str
    commit: str
    branch: str
    command: str
    device: int
    steps: int
    peak_bytes: int
    compared: DiffMoment
    _types: ClassVar[str] = "TEXT RAW RAW RAW SIGNED COUNT BYTES PART"


@dataclass(frozen=True)
class DiffBesides(Row):
    """A difference outside the program.

    what: its name
    old: in the old recording; empty if missing
    new: in the new one
    """

    what: str
    old: str
    new: str
    _types: ClassVar[str] = "TEXT TEXT TEXT"


@dataclass(frozen=True)
class DiffPart(Row):
    """Blocks of one class and one call path.

    class_: the class of the blocks (a class)
    function: function of the line that allocated them; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    module: the modules around that line; empty if there are none
    bytes_old: in the old recording (bytes)
    bytes_new: in the new one (bytes)
    delta: the difference (bytes)
    blocks_old: blocks in the old recording (count)
    blocks_new: blocks in the new one (count)
    """

    class_: str
    function: str
    file: str
    line: int
    module: str
    bytes_old: int
    bytes_new: int
    delta: int
    blocks_old: int
    blocks_new: int
    _types: ClassVar[str] = "CLASS TEXT TEXT NUMBER TEXT BYTES BYTES CHANGE COUNT COUNT"


@dataclass(frozen=True)
class DiffFinding(Row):
    """A finding: one change between the runs.

    kind: `grown`, `shrunk`, `new`, `gone` or `moved`
    class_: of most of the bytes (a class)
    function: function of the line innermost of the program's or the model's own code; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    bytes_old: in the old recording (bytes)
    bytes_new: in the new one (bytes)
    delta: the difference (bytes)
    text: in words
    cause: its cause: `line`, `function`, `kept`, `idle`, `precision`, `casts`, `scale`, `model`, `trained`, `optimizer`, `gradients`, `recompute`, `compiled`, `recorded`, `reach`, `passes`, `backwards`, `rounding`, `moved`, `peak` or `reserved`
    parts: the parts that it sums up
    """

    kind: str
    class_: str
    function: str
    file: str
    line: int
    bytes_old: int
    bytes_new: int
    delta: int
    text: str
    cause: str
    parts: Table[DiffPart]
    _types: ClassVar[str] = "TEXT CLASS TEXT TEXT NUMBER BYTES BYTES CHANGE TEXT TEXT LIST"


@dataclass(frozen=True)
class DiffClass(Row):
    """A class, each recording at its own peak.

    class_: the class (a class)
    bytes_old: in the old recording (bytes)
    bytes_new: in the new one (bytes)
    delta: the difference (bytes)
    """

    class_: str
    bytes_old: int
    bytes_new: int
    delta: int
    _types: ClassVar[str] = "CLASS BYTES BYTES CHANGE"


@dataclass(frozen=True)
class DiffPhase(Row):
    """A phase, at the highest moment of each recording in it.

    phase: the phase
    bytes_old: in the old recording (bytes)
    bytes_new: in the new one (bytes)
    delta: the difference (bytes)
    """

    phase: str
    bytes_old: int
    bytes_new: int
    delta: int
    _types: ClassVar[str] = "TEXT BYTES BYTES CHANGE"


@dataclass(frozen=True)
class DiffModule(Row):
    """Modules around the lines that allocated.

    module: the modules, the outermost first
    bytes_old: in the old recording (bytes)
    bytes_new: in the new one (bytes)
    delta: the difference (bytes)
    """

    module: str
    bytes_old: int
    bytes_new: int
    delta: int
    _types: ClassVar[str] = "TEXT BYTES BYTES CHANGE"


@dataclass(frozen=True)
class DiffLine(Row):
    """A line of code and a class.

    class_: the class of the blocks (a class)
    function: function of the line that allocated the blocks; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    bytes_old: in the old recording (bytes)
    bytes_new: in the new one (bytes)
    delta: the difference (bytes)
    blocks_old: blocks in the old recording (count)
    blocks_new: blocks in the new one (count)
    """

    class_: str
    function: str
    file: str
    line: int
    bytes_old: int
    bytes_new: int
    delta: int
    blocks_old: int
    blocks_new: int
    _types: ClassVar[str] = "CLASS TEXT TEXT NUMBER BYTES BYTES CHANGE COUNT COUNT"


@dataclass(frozen=True)
class Diff(Row):
    """The differences in memory between two runs.

    peak_old: peak of the old recording (bytes)
    peak_new: peak of the new one (bytes)
    delta: the difference (bytes)
    reserved_old: most that the framework reserved in the old recording; 0 without one (bytes)
    reserved_new: the same in the new one (bytes)
    peak_phase_old: phase of the old peak
    peak_phase_new: phase of the new peak
    old: the old recording
    new: the new one
    besides: versions, settings and devices that differ
    not_compared: what cannot be compared because only one recording has stacks or tags, in words; empty if everything can
    findings: the most important first
    classes: classes that occur in either recording
    phases: phases that occur in either recording
    modules: modules that differ, the greatest change first
    lines: lines that differ, the greatest change first
    """

    peak_old: int
    peak_new: int
    delta: int
    reserved_old: int
    reserved_new: int
    peak_phase_old: str
    peak_phase_new: str
    old: DiffSide
    new: DiffSide
    besides: Table[DiffBesides]
    not_compared: str
    findings: Table[DiffFinding]
    classes: Table[DiffClass]
    phases: Table[DiffPhase]
    modules: Table[DiffModule]
    lines: Table[DiffLine]
    _types: ClassVar[str] = "BYTES BYTES CHANGE BYTES BYTES TEXT TEXT PART PART LIST TEXT LIST LIST LIST LIST LIST"


@dataclass(frozen=True)
class CheckBound(Row):
    """A limit, and the measured figure.

    name: `max-peak`, `max-reserved`, `max-class`, `max-growth` or `baseline`
    ok: whether the limit is kept
    known: whether the figure could be measured; if not, the limit counts as exceeded
    limit_bytes: the highest allowed figure; for `max-growth` with each step (bytes)
    measured_bytes: the measured figure (bytes)
    text: in words
    function: function of the line that holds most of it, or that of the first finding since the baseline; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    class_: for `max-class`: the class (a class)
    """

    name: str
    ok: bool
    known: bool
    limit_bytes: int
    measured_bytes: int
    text: str
    function: str
    file: str
    line: int
    class_: Optional[str] = None
    _types: ClassVar[str] = "TEXT FLAG FLAG BYTES BYTES TEXT TEXT TEXT NUMBER CLASS"


@dataclass(frozen=True)
class CheckRecording(Row):
    """A recording and its limits.

    file: the recording
    ok: whether all its limits are kept
    bounds: each limit
    """

    file: str
    ok: bool
    bounds: Table[CheckBound]
    _types: ClassVar[str] = "TEXT FLAG LIST"


@dataclass(frozen=True)
class Check(Row):
    """Whether recordings stay within limits.

    ok: whether all limits are kept
    bounds: number of limits, over all recordings (count)
    broken: number of exceeded limits (count)
    recordings: the recordings, in order
    """

    ok: bool
    bounds: int
    broken: int
    recordings: Table[CheckRecording]
    _types: ClassVar[str] = "FLAG COUNT COUNT LIST"


@dataclass(frozen=True)
class AdviseFinding(Row):
    """A change that lowers the peak.

    what: the change
    saves_bytes: by how much the peak would be lower (at most, if `exact` is false) (bytes)
    how_known: `computed` from the live ranges in the recording, `replayed` through a model of the allocator, or measured by a `run`
    function: function of the line that it is about; empty if it is not about a single line; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    kind: the kind of finding, for programs
    of: `allocated`: the peak of blocks, or `reserved`: of the framework's cache
    peak_bytes: the peak with the change (at least) (bytes)
    exact: whether `saves_bytes` is exact; else the saving is between `least_bytes` and `saves_bytes`
    least_bytes: the lowest saving (bytes)
    evidence: how the figure was found
    right: how often the measured peak was within 3 % of the prediction, in tests that made a change of that kind (count)
    tried: number of those tests (count)
    changes: with `--try`: the changes that make it, as `run --with` takes them; empty if it can only be made by hand
    code: with `--try`: how to write them: in plain PyTorch, and arguments of frameworks behind their names
    measured_peak_bytes: with `--try`, if it was made: peak of the run with it (`reserved`: of the reserved memory); if memory ran out, until then (bytes)
    ends: with `--try`, if it was made: whether the program then ran to its end, or until its peak was stable
    """

    what: str
    saves_bytes: int
    how_known: str
    function: str
    file: str
    line: int
    kind: str
    of: str
    peak_bytes: int
    exact: bool
    least_bytes: int
    evidence: str
    right: int
    tried: int
    changes: Optional[Tuple[str, ...]] = None
    code: Optional[Tuple[str, ...]] = None
    measured_peak_bytes: Optional[int] = None
    ends: Optional[bool] = None
    _types: ClassVar[str] = "TEXT BYTES TEXT TEXT TEXT NUMBER TEXT TEXT BYTES FLAG BYTES TEXT COUNT COUNT WORDS WORDS BYTES FLAG"


@dataclass(frozen=True)
class AdvisePattern(Row):
    """A pattern of use that blocks of one line have.

    pattern: `late` (freed long after the last use), `early` (allocated long before the first use), `idle` (a long pause between two uses), `never` (nothing used it) or `lost` (a copy or set was replaced by the next one before anything could read it)
    function: function of the line that allocated them; empty if not known
    file: its file; empty if not known
    line: its number, 0 if not known
    blocks: blocks that have the pattern at some time (count)
    bytes: in all of them; of `lost`: that nothing read (bytes)
    at_peak_bytes: in those that are in that state at the peak (of `lost`: that are there) (bytes)
    shortest_ns: the shortest time in that state of one of the blocks, by the times of the launches (ns)
    longest_ns: the longest (ns)
    copy_ns: of `idle`: a copy to the host and back of the bytes that are idle at the peak (if none are, of the largest block), at 25 GB/s in each direction (ns)
    fits: of `idle`: whether that copy is shorter than the shortest pause
    """

    pattern: str
    function: str
    file: str
    line: int
    blocks: int
    bytes: int
    at_peak_bytes: int
    shortest_ns: int
    longest_ns: int
    copy_ns: Optional[int] = None
    fits: Optional[bool] = None
    _types: ClassVar[str] = "TEXT TEXT TEXT NUMBER COUNT BYTES BYTES DURATION DURATION DURATION FLAG"


@dataclass(frozen=True)
class AdviseSet(Row):
    """Several changes at once.

    changes: as `--together` was given
    peak_bytes: the peak with all of them, at least (bytes)
    at_most_bytes: and at most (bytes)
    """

    changes: str
    peak_bytes: int
    at_most_bytes: int
    _types: ClassVar[str] = "TEXT BYTES BYTES"


@dataclass(frozen=True)
class Advise(Row):
    """Changes that lower the peak.

    device: CUDA ordinal
    peak_bytes: the peak of blocks as recorded (bytes)
    peak_reserved_bytes: the peak of the reserved memory (bytes)
    peak_when: the moment of the peak in words
    graphs_known: whether the recording has autograd's tags; without them `overlap`, `late_del`, `kept_results`, `gathered`, `backward_each`, `wide_copies`, `mask_copies`, `prompt_logits`, `in_rows` and `idle_weights` are not searched for
    look_at: the line of code whose results are a third of the peak or more, with its statement and what may be changed there, if no finding takes a tenth of the peak away; else empty
    findings: changes, the largest saving first; each saving is for one change alone, and they do not add up
    uses_known: whether all uses were recorded; without them there are no `patterns`, and nothing is found that is held beyond its use (`kept`, `unused`, `late_del` and others)
    patterns: patterns of use, the most bytes at the peak first: facts of the recording, not all of which can be changed
    sets: with `--together`: the peak with several changes at once
    tried_on: with `--try`: the simulated card that the changes were run on
    """

    device: int
    peak_bytes: int
    peak_reserved_bytes: int
    peak_when: str
    graphs_known: bool
    look_at: str
    findings: Table[AdviseFinding]
    uses_known: bool
    patterns: Table[AdvisePattern]
    sets: Optional[Table[AdviseSet]] = None
    tried_on: Optional[str] = None
    _types: ClassVar[str] = "SIGNED BYTES BYTES TEXT FLAG TEXT LIST FLAG LIST LIST TEXT"
