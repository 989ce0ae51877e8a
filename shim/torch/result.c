/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls a C++ function whose result goes to an address that we give, which C cannot express on
 * aarch64. A jump without a frame of its own, so that exceptions pass.
 */
#include "result.h"

#if defined(__aarch64__)
__asm__(".text\n.globl result_call\n.hidden result_call\n.type result_call, "
	"%function\nresult_call:\n"
	".cfi_startproc\n"
	"mov x9, x0\nmov x8, x1\n"
	"mov x0, x2\nmov x1, x3\nmov x2, x4\nmov x3, x5\nmov x4, x6\nmov x5, x7\nldr x6, [sp]\n"
	"br x9\n"
	".cfi_endproc\n.size result_call, . - result_call\n");
#endif
