/* SPDX-License-Identifier: Apache-2.0 */
/* libdw's backends name elfutils' disassemblers, which nothing of ours calls: they are left out. */
int i386_disasm(void), x86_64_disasm(void), bpf_disasm(void), riscv_disasm(void);

int i386_disasm(void)
{
	return -1;
}

int x86_64_disasm(void)
{
	return -1;
}

int bpf_disasm(void)
{
	return -1;
}

int riscv_disasm(void)
{
	return -1;
}
