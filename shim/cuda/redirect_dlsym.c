/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym and dlclose, exported in front of the C library's. Programs and CUDA's own libraries find
 * the driver through dlsym. Any other name jumps on to the real dlsym with the caller's own return
 * address still in place, which RTLD_NEXT and RTLD_DEFAULT depend on. Application threads; the C
 * library's dlsym takes the loader's lock in any case.
 */
#include "../capture.h"
#include "../stacks/modules.h"
#include "redirect.h"
#include "resolve.h"

#include <dlfcn.h>

/* Where the stub goes: on to `jump`, or if that is NULL back to the caller with `value`. */
struct verdict {
	void *jump;
	void *value;
};

__attribute__((used, visibility("hidden"))) struct verdict
redirect_dlsym(void *handle, const char *name, const void *caller);

#if defined(__x86_64__)
#define FIRST_GLIBC "GLIBC_2.2.5"
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	movq 24(%rsp), %rdx\n"
	"	call redirect_dlsym\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testq %rax, %rax\n"
	"	je 1f\n"
	"	jmp *%rax\n"
	"1:	movq %rdx, %rax\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
#define FIRST_GLIBC "GLIBC_2.17"
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	hint #34\n" /* bti c */
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	stp x0, x1, [sp, #16]\n"
	"	mov x29, sp\n"
	"	mov x2, x30\n"
	"	bl redirect_dlsym\n"
	"	mov x16, x0\n"
	"	mov x17, x1\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	cbz x16, 1f\n"
	"	br x16\n"
	"1:	mov x0, x17\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n");
#else
#error "the jump to dlsym is written for x86-64 and aarch64"
#endif

typedef void *dlsym_fn(void *handle, const char *name);

static bool loaded;

__attribute__((constructor)) static void redirect_load(void)
{
	__atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
}

/* The real dlsym before our constructor ran: a sanitizer asks for it during its own setup, when
 * functions that it replaces cannot be called yet, such as the walk over the objects. */
static void *early_dlsym(void)
{
	void *p = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

	return p ? p : dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC);
}

static dlsym_fn *real_dlsym(void)
{
	static void *real;
	void *p = __atomic_load_n(&real, __ATOMIC_RELAXED);

	if (!p && !__atomic_load_n(&loaded, __ATOMIC_ACQUIRE)) {
		p = early_dlsym();
		if (p)
			return (dlsym_fn *)p;
	}
	if (!p) {
		p = resolve_next("dlsym");
		__atomic_store_n(&real, p, __ATOMIC_RELAXED);
	}
	return (dlsym_fn *)p;
}

static const char *object_of(const void *address)
{
	Dl_info info;

	return dladdr(address, &info) ? info.dli_fname : NULL;
}

/* Finds a name in the scope of the caller's object: in the libraries that it is linked with. */
static void *find_beside(const char *name, const void *caller)
{
	const char *path = object_of(caller);
	void *handle = path ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : NULL, *p = NULL;

	if (handle) {
		p = real_dlsym()(handle, name);
		dlclose(handle);
	}
	return p;
}

/*
 * The result of a search without us: our own exports come first, so a search through all objects
 * always ends at them. NULL if there is no other: programs test in this way whether they need to
 * load CUDA first.
 */
static void *find_behind_us(const char *name, const void *caller)
{
	void *p = real_dlsym()(RTLD_NEXT, name); /* next after us, because we are the caller */

	if (!p)
		p = find_beside(name, caller);
	if (!p || resolve_is_ours(p))
		p = real_dlsym()(RTLD_NEXT, name); /* for dlerror */
	return p;
}

struct verdict redirect_dlsym(void *handle, const char *name, const void *caller)
{
	struct verdict on = { (void *)real_dlsym(), NULL };
	void *p;

	if (handle == RTLD_NEXT || !name || !redirect_knows(name))
		return on;
	p = real_dlsym()(handle, name);
	if (p && resolve_is_ours(p))
		p = find_behind_us(name, caller);
	if (p && gmt_recording())
		p = redirect_symbol(name, p, caller);
	return (struct verdict){ NULL, p };
}

/* Functions found in an unloaded object must be forgotten. (This hook is cheaper than a check in
 * every other hook: the loader's list needs a lock, and a hook can run in a signal handler.) */
__attribute__((visibility("default"))) int dlclose(void *handle)
{
	static int (*real)(void *);
	int (*f)(void *) = __atomic_load_n(&real, __ATOMIC_RELAXED);
	int rc;

	if (!f) {
		f = (int (*)(void *))resolve_next("dlclose");
		__atomic_store_n(&real, f, __ATOMIC_RELAXED);
	}
	modules_unload_begins();
	rc = f(handle);
	modules_unload_ends();
	resolve_unloaded();
	return rc;
}
