# SPDX-License-Identifier: Apache-2.0
"""What should be said of the programs of ../shared/reports, and what must not: regular expressions over an answer (cause, kinds and
sentences of `oom`; text of the others). Each program stands for a kind, so no expression names more than its lines."""
from dataclasses import dataclass, field


@dataclass
class Answer:
    command: str  # oom, leaks, advise, report, diff (fixed and broken)
    says: list = field(default_factory=list)  # each is to be found
    never: list = field(default_factory=list)


@dataclass
class Program:
    name: str
    what: str
    answers: list
    card: str = ""  # memory runs out on it; "" = nowhere
    ranks: int = 1


def oom(*says, never=()):
    return Answer("oom", list(says), list(never))


def of(command, *says, never=()):
    return Answer(command, list(says), list(never))


PROGRAMS = [
    Program("sliding_window", "an evaluation adds up the scores of all windows on the device",
            [oom(r"broken\.py:19", r"results? .*\b(host|CPU|cpu)\b", never=[r"cause: (retained_graph|growing|batch_too_large)", "smaller_batch", "older"])], "9GiB"),
    Program("k3_loss_oom", "out of memory in a loss outside of every module", [oom(r"step: 5", "smaller_batch", never=["made before step", r"older"])], "3400MiB"),
    Program("k6b_die_before_backward", "a recurrent model is called 24 times before one backward pass",
            [oom("cause: batch_too_large", "forward passes", "smaller_batch", never=["remedy no_grad", "step to step", "cause: growing"])], "3GiB"),
    Program("kfold", "models, gradients and state of earlier folds are still held",
            [oom("cause: held_unused", "remedy unused", r"broken\.py:32", r"broken\.py:25", never=["cause: model_too_large"]),
             of("leaks", r"not been used", r"broken\.py:32")], "3GiB"),
    Program("k1_dead_model", "the decoder and the optimizer of a pre-training are still held",
            [oom("remedy unused", r"broken\.py:(17|22)"), of("leaks", r"not been used", r"broken\.py:22")], "3GiB"),
    Program("resume_dict", "a checkpoint is read onto the device and kept",
            [oom("remedy loaded", r"broken\.py:31", r"map_location", never=["idle_weights"]), of("advise", r"map_location", r"210", never=["Move the weights"])], "1700MiB"),
    Program("k9_grad_stats", "absolute values of all gradients at once",
            [oom(r"broken\.py:14", "temporar", "remedy one_by_one", never=["gradients <listcomp>", "cause: model_too_large"]), of("advise", r"broken\.py:14")], "1900MiB"),
    Program("micro_outputs", "results of all micro-batches are kept with their graphs", [oom("remedy let_go|remedy kept_results", r"broken\.py:4[0-9]", never=["step before"])], "1640MiB"),
    Program("cached_loss", "a loss in parts with one backward pass for all", [oom("remedy backward_each", r"backward\(\)", never=["in_pieces"])], "4GiB"),
    Program("k8_stored_error", "caught errors are kept, and their tracebacks keep frames",
            [oom("cause: refused_attempts", "exception|traceback", r"broken\.py:13", never=["late_del", "no graph needs them"])], "1700MiB"),
    Program("frozen_tower", "a frozen tower keeps a graph", [oom("remedy frozen_graph", r"Tower|broken\.py:42", "no_grad")], "8GiB"),
    Program("trl_logps", "logits of all positions are computed and sliced away", [oom("remedy unused_results", r"LlamaForCausalLM\.forward", "logits_to_keep"), of("advise", r"2\.9 GiB less \([\d ]+%\): Compute only the part of the result")], "5GiB"),
    Program("bge_sparse", "one operator's result stands out", [oom("cause: activation_spike", r"broken\.py:(19|20)")], "4500MiB"),
    Program("densify_graph", "statistics keep graphs from step to step", [of("leaks", r"broken\.py:23", "each step")]),
    Program("graph_pools", "a private pool for each captured graph", [oom("private pool|captured graph", never=["batch_too_large"])], "8GiB"),
    Program("k12_fsdp2", "out of memory in the optimizer of a sharded model", [oom("cause: model_too_large", never=["remedy shard ", "remedy gather_less"])], "2GiB", ranks=2),
    Program("cuda0_dummy", "every rank makes a tensor on device 0 before it chooses its own",
            [of("report", r"rank 1: [\d.]+ MiB reserved on device 0, where rank 0 works \(main broken\.py:11\), and a context")], ranks=2),
    Program("deeplift_attrs", "attribution leaves attributes on modules, model after model, without an optimizer",
            [oom("cause: retained_graph", r"remedy let_go \d+ MiB: Free the tensors of attribute broken\.py:19", never=["cause: batch_too_large"])], "2500MiB"),
    Program("k13_two_devices", "each device has its own place of the peak", [of("report", r"Device 1: peak 3")], ranks=-2),
]
