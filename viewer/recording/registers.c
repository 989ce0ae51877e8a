/* SPDX-License-Identifier: Apache-2.0 */
#include "attach_parts.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#define CODE(text)                                                                           \
	__asm__(".pushsection .rodata\n.p2align 4\n.global attach_code\nattach_code:\n" text \
		"\n.global attach_code_end\nattach_code_end:\n.popsection\n")

#if defined(__x86_64__)
enum { VECTORS = NT_X86_XSTATE };

CODE("push %rbx\n"
     "mov %rdi, %rbx\n"
     "call *(%rbx)\n" /* pthread_self */
     "mov %rax, %rdi\n"
     "call *8(%rbx)\n"	/* pthread_detach */
     "call *16(%rbx)\n" /* Py_IsInitialized */
     "test %eax, %eax\n"
     "jz 1f\n"
     "call *24(%rbx)\n" /* PyGILState_Ensure */
     "mov %eax, 56(%rbx)\n"
     "lea 64(%rbx), %rdi\n"
     "call *32(%rbx)\n" /* PyRun_SimpleString */
     "mov 56(%rbx), %edi\n"
     "call *40(%rbx)\n" /* PyGILState_Release */
     "1: xor %eax, %eax\n"
     "pop %rbx\n"
     "ret\n");

/* The call's stack begins below the 128 bytes that the interrupted function can use without moving
 * its stack pointer. */
void registers_call(struct registers *r, uint64_t function, const uint64_t a[6], uint64_t trap,
		    uint64_t *pushed)
{
	struct user_regs_struct *g = &r->general;

	g->rsp = ((g->rsp - 512) & ~UINT64_C(63)) - sizeof(*pushed);
	*pushed = trap;
	g->rip = function;
	g->rdi = a[0];
	g->rsi = a[1];
	g->rdx = a[2];
	g->rcx = a[3];
	g->r8 = a[4];
	g->r9 = a[5];
	g->eflags &= ~UINT64_C(0x500); /* clears the direction and trap flags */
	g->orig_rax = UINT64_MAX;      /* no system call to restart */
}
#else
enum { VECTORS = NT_PRFPREG };

CODE("stp x29, x30, [sp, #-32]!\n"
     "str x19, [sp, #16]\n"
     "mov x29, sp\n"
     "mov x19, x0\n"
     "ldr x8, [x19]\n" /* pthread_self */
     "blr x8\n"
     "ldr x8, [x19, #8]\n" /* pthread_detach */
     "blr x8\n"
     "ldr x8, [x19, #16]\n" /* Py_IsInitialized */
     "blr x8\n"
     "cbz w0, 1f\n"
     "ldr x8, [x19, #24]\n" /* PyGILState_Ensure */
     "blr x8\n"
     "str w0, [x19, #56]\n"
     "add x0, x19, #64\n"
     "ldr x8, [x19, #32]\n" /* PyRun_SimpleString */
     "blr x8\n"
     "ldr w0, [x19, #56]\n"
     "ldr x8, [x19, #40]\n" /* PyGILState_Release */
     "blr x8\n"
     "1: mov x0, #0\n"
     "ldr x19, [sp, #16]\n"
     "ldp x29, x30, [sp], #32\n"
     "ret\n");

void registers_call(struct registers *r, uint64_t function, const uint64_t a[6], uint64_t trap,
		    uint64_t *pushed)
{
	struct user_regs_struct *g = &r->general;

	*pushed = 0;
	g->sp = (g->sp - 512) & ~UINT64_C(63);
	memcpy(g->regs, a, 6 * sizeof(*a));
	g->regs[30] = trap;
	g->pc = function;
}
#endif

bool registers_get(pid_t tid, struct registers *r)
{
	struct iovec general = { &r->general, sizeof(r->general) };
	struct iovec vectors = { r->vectors, sizeof(r->vectors) };

	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &general) ||
	    ptrace(PTRACE_GETREGSET, tid, VECTORS, &vectors))
		return false;
	r->vectors_len = vectors.iov_len;
	return r->vectors_len < sizeof(r->vectors); /* all of them fitted */
}

bool registers_set(pid_t tid, const struct registers *r)
{
	struct iovec general = { (void *)&r->general, sizeof(r->general) };
	struct iovec vectors = { (void *)r->vectors, r->vectors_len };

	return !ptrace(PTRACE_SETREGSET, tid, VECTORS, &vectors) &&
	       !ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &general);
}
