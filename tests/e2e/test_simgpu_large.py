# SPDX-License-Identifier: Apache-2.0
"""Large tensors on the simulated device take neither the host's time nor its memory: 4-bit weights, copies of unknown contents."""
import pytest

pytestmark = pytest.mark.forks


def test_four_bit_weights(programs):
    """A chunk of torchao's NF4 conversion: choices among unknown values, and what is made of them. The host would compute for 3 s."""
    done = programs("-c", """if True:
        import time, torch
        n = 1 << 20
        table = torch.linspace(-1, 1, 16, device="cuda", dtype=torch.bfloat16)
        values, packed = torch.randn(n, device="cuda").to(torch.bfloat16), torch.empty(n, dtype=torch.uint8, device="cuda")
        def convert():
            places = (values.unsqueeze(-1) - table).abs().min(dim=-1).indices
            packed.copy_(places.to(torch.uint8))
            return (packed[::2] << 4) | packed[1::2], table[places], places
        convert()
        start, cpu = time.time(), time.process_time()
        *_, places = convert()
        print(time.process_time() - cpu)
        few = torch.randn(1 << 16, 16, device="cuda").min(dim=-1).indices
        print(torch.bincount(few, minlength=16).tolist() == [1 << 12] * 16)  # tokens are spread
        """, traced=False)
    seconds, spread = done.stdout.split()
    assert float(seconds) < 0.3 and spread == "True"


def test_pages_of_the_host_that_nobody_reads(programs):
    done = programs("-c", """if True:
        import torch
        def resident(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmRSS")) >> 10
        there = torch.randn(256 << 20, device="cuda")
        before = resident()
        here = [there.cpu() for _ in range(4)]
        print(resident() - before)
        known = torch.full((1 << 16,), 3.0).cuda()
        buffers = [torch.full((4 << 20,), 7.0), torch.full((4 << 20,), 7.0).share_memory_(), torch.full((4 << 20,), 7.0).pin_memory()]
        for b in buffers:
            b[1:-1].copy_(there[:(4 << 20) - 2])
        print([(float(b[1:-1].abs().max()), float(b[0]), float(b[-1])) for b in buffers], float(known.cpu().min()), float(here[3][::4096].abs().max()))
        """, traced=False)
    grown, read = done.stdout.splitlines()
    assert int(grown) < 64  # of 4 GiB
    assert read == f"{[(0.0, 7.0, 7.0)] * 3} 3.0 0.0"
