/* SPDX-License-Identifier: Apache-2.0
 *
 * A program that opens one of CUDA's libraries itself, by a path, by a name that a wheel has
 * mangled or by a bare name, gets this library instead. The dlopen exported here hides the C
 * library's and jumps to it with the caller's return address in place, because the search for a
 * bare name depends on the caller. Any thread, also in constructors of other libraries.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sim.h"

typedef void *dlopen_fn(const char *path, int flags);

__attribute__((used, visibility("hidden"))) dlopen_fn *opened_next;
__attribute__((used, visibility("hidden"))) const char *opened_choose(const char *path, int flags,
								      const void *caller);

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	movq 8(%rsp), %rdx\n"
	"	call opened_choose\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	movq %rax, %rdi\n"
	"	jmp *opened_next(%rip)\n"
	"	.cfi_endproc\n"
	".size dlopen, .-dlopen\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	str x1, [sp, #16]\n"
	"	mov x29, sp\n"
	"	mov x2, x30\n"
	"	bl opened_choose\n"
	"	ldr x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	adrp x16, opened_next\n"
	"	ldr x16, [x16, :lo12:opened_next]\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlopen, .-dlopen\n");
#else
#error "the jump to dlopen is written for x86-64 and aarch64"
#endif

/* Libraries whose functions are simulated. A driver's bare name finds this library without help. */
static const struct {
	const char *name;
	bool driver;
} libraries[] = {
	{ "cudart", false },	 { "cublas", false }, { "cublasLt", false }, { "cudnn", false },
	{ "cufft", false },	 { "curand", false }, { "cusolver", false }, { "cusparse", false },
	{ "cusparseLt", false }, { "nccl", false },   { "cufile", false },   { "cuda", true },
	{ "nvidia-ml", true },
};

/* The text after ".so", which auditwheel's hash may precede (as in ".faf08d9a.so"), or NULL. */
static const char *version_of(const char *rest)
{
	size_t hex = 0;

	if (*rest == '.' || *rest == '-')
		while (isxdigit((unsigned char)rest[1 + hex]))
			hex++;
	rest += hex >= 8 ? 1 + hex : 0;
	if (strncmp(rest, ".so", 3) || (rest[3] && rest[3] != '.'))
		return NULL;
	return rest + 3;
}

/* *runtime: the major version of CUDA's runtime; 0: another library, or no version. */
static bool is_simulated(const char *path, int *runtime)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	if (strncmp(base, "lib", 3) != 0)
		return false;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		size_t n = strlen(libraries[i].name);
		const char *version = NULL;

		if (!strncmp(base + 3, libraries[i].name, n))
			version = version_of(base + 3 + n);
		if (!version || (libraries[i].driver && base == path))
			continue;
		*runtime = i || !*version ? 0 : atoi(version + 1); /* i: not the runtime */
		return true;
	}
	return false;
}

/* Whether dlopen can succeed. A path that does not exist fails as usual, and so does RTLD_NOLOAD
 * for a library that is not loaded. */
static bool is_there(const char *path, int flags)
{
	void *handle = flags & RTLD_NOLOAD ? opened_next(path, flags) : NULL;

	if (handle)
		dlclose(handle);
	return flags & RTLD_NOLOAD ? handle != NULL : !strchr(path, '/') || !access(path, F_OK);
}

/* Whether the caller is this library, which opens real libraries to read their versions. */
static bool is_own(const void *address, Dl_info *own)
{
	Dl_info info;

	return dladdr((void *)opened_choose, own) &&
	       (!dladdr(address, &info) || info.dli_fbase == own->dli_fbase);
}

const char *opened_choose(const char *path, int flags, const void *caller)
{
	Dl_info own = { 0 };
	int runtime;

	if (!__atomic_load_n(&opened_next, __ATOMIC_ACQUIRE))
		__atomic_store_n(&opened_next, (dlopen_fn *)dlsym(RTLD_NEXT, "dlopen"),
				 __ATOMIC_RELEASE);
	if (!path || !is_simulated(path, &runtime) || is_own(caller, &own) ||
	    !is_there(path, flags) || (runtime && !sim_cuda_is(runtime)))
		return path;
	return own.dli_fname ? own.dli_fname : path;
}
