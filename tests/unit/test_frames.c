/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of the native stack that use what earlier ones left, beside libunwind's of the same moment,
 * in programs that do to their stacks whatever a program may.
 *
 * links: shim/base/ shim/rings/ shim/stacks/ shim/recording/
 *
 * links: shim/process.c shim/bus.c shim/confine.c shim/leave.c shim/cuda/nvtx.c
 * links: shim/cuda/resolve.c
 * links: tests/unit/walks.c
 */
#include "walks.h"

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK (256u << 10)

static void test_random_programs(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 3000; i++)
		any((int)chance(40));
	expect_right(false);
	assert_true(my.walks > 10000);
	assert_true(my.kept > my.walks);
}

/* What a program does again is known by what it did before: nearly no frame is walked. */
static void test_the_same_again(void **state)
{
	unsigned walks = 0, anew = 0;

	(void)state;
	begin();
	for (int i = 0; i < 40; i++) {
		my.random = 11; /* the same calls */
		my.walks = 0;
		my.frames->walked = 0;
		for (int k = 0; k < 60; k++)
			any((int)chance(12));
		walks = my.walks;
		anew = my.frames->walked;
	}
	expect_right(false);
	assert_true(walks > 100);
	assert_in_range(anew, 0, walks / 10);
}

/* No two parts that are kept lie in the same room. */
static void expect_apart(const struct repeats *r)
{
	static uint8_t taken[REPEAT_ROOM / 8];

	memset(taken, 0, sizeof(taken));
	for (unsigned i = 0; i < REPEATS; i++) {
		size_t at = r->offsets[i] ? (r->offsets[i] - 1) / 8 : 0, end = at;
		const struct repeat *p = (const struct repeat *)&r->room[at];

		if (r->offsets[i])
			end += repeat_bytes(p) / 8;
		assert_true(end <= sizeof(taken));
		for (; at < end; at++)
			assert_int_equal(taken[at]++, 0);
	}
}

static NOINLINE void jump_out(int depth)
{
	if (depth)
		jump_out(depth - 1);
	else
		walk_both_ways();
	if (depth == 3)
		longjmp(my.back, 1);
	__asm__ volatile("");
}

static void test_jumps(void **state)
{
	volatile int i;

	(void)state;
	begin();
	for (i = 0; i < 500; i++) {
		any(5);
		if (!setjmp(my.back))
			jump_out(4 + i % 7);
		walk_both_ways();
	}
	expect_right(false);
}

/*
 * Two callees that use rbp for a number of their own and keep the caller's in different words of
 * their frames; the other word is left as it was.
 */
void keeps_first(void (*f)(void)), keeps_second(void (*f)(void));

#define KEEPS(name, before, after, offset)                                             \
	__asm__(".text\n.type " name ", @function\n" name ":\n.cfi_startproc\n"        \
		"subq $" before ", %rsp\n.cfi_adjust_cfa_offset " before "\n"          \
		"pushq %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_offset %rbp, " offset "\n" \
		"subq $" after ", %rsp\n.cfi_adjust_cfa_offset " after "\n"            \
		"movl $1, %ebp\ncall *%rdi\n"                                          \
		"addq $" after ", %rsp\n.cfi_adjust_cfa_offset -" after "\n"           \
		"popq %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbp\n"            \
		"addq $" before ", %rsp\n.cfi_adjust_cfa_offset -" before "\n"         \
		"ret\n.cfi_endproc\n.size " name ", .-" name "\n")

KEEPS("keeps_first", "0", "16", "-16");
KEEPS("keeps_second", "8", "8", "-24");

static NOINLINE void of_size(int size, void (*callee)(void (*)(void)))
{
	volatile char *p = alloca((size_t)size);

	callee(walk_both_ways);
	p[0] = 1;
}

static NOINLINE void one_caller(int size, int inner, void (*callee)(void (*)(void)))
{
	volatile char *p = alloca((size_t)size);

	of_size(inner, callee);
	p[0] = 1;
}

static NOINLINE void other_caller(int size, int inner, void (*callee)(void (*)(void)))
{
	volatile char *p = alloca((size_t)size);

	of_size(inner, callee);
	p[0] = 2;
}

/*
 * The callee's frame is the same in the same place, but where its caller's frame ends, which only
 * the saved rbp tells, is not; and behind the new end lies, as a word that nobody wrote again, all
 * that was behind the old one.
 */
static void test_only_the_saved_register_differs(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 20; i++) {
		one_caller(64, 192, keeps_first);
		other_caller(192, 64, keeps_first);
		one_caller(64, 192, keeps_first);
		one_caller(64, 192, keeps_second);
		other_caller(192, 64, keeps_second);
	}
	expect_right(false);
	assert_true(my.kept > 0);
}

static NOINLINE void deep(int depth)
{
	if (depth)
		deep(depth - 1);
	else
		walk_both_ways();
	__asm__ volatile("");
}

static NOINLINE void below(int size, int depth)
{
	volatile char *p = alloca((size_t)size + 16);

	deep(depth);
	p[0] = 1;
}

/* Many more different walks than are kept, of all lengths: those that make room are not used. */
static void test_more_than_are_kept(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 6000; i++) {
		below(16 * (i % 900), 4 + i * 7 % 50);
		walk_both_ways();
		my.random = (uint64_t)i % 700; /* some come again, after the room was used up */
		any((int)chance(9));
		if (i % 5 == 0)
			expect_apart(&my.frames->repeats);
	}
	expect_right(false);
}

/* More frames than are kept: libunwind is asked. Then it goes on as before. */
static void test_deeper_than_kept(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 50; i++) {
		deep(400);
		deep(2 * FRAMES_MOST);
		deep(20);
	}
	expect_right(true);
	assert_int_equal(my.asked, 50);
}

static void on_signal(int number)
{
	(void)number;
	any(3);
}

static void test_signals(void **state)
{
	stack_t other = { .ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			  .ss_size = STACK };
	struct sigaction a = { .sa_handler = on_signal };

	(void)state;
	begin();
	sigaltstack(&other, NULL);
	for (int i = 0; i < 200; i++) {
		a.sa_flags = i % 2 ? SA_ONSTACK : 0;
		sigaction(SIGUSR1, &a, NULL);
		walk_both_ways();
		raise(SIGUSR1);
		any(4);
	}
	expect_right(true);
	assert_true(my.asked < my.walks / 2 + 400);
}

static ucontext_t outside, inside;

static void visit(void)
{
	for (;;) {
		any(6);
		swapcontext(&inside, &outside);
	}
}

/* Stacks that come and go at the same addresses, and two in turn. */
static void test_other_stacks(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < 100; i++) {
		char *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				   -1, 0);

		getcontext(&inside);
		inside.uc_stack.ss_sp = stack;
		inside.uc_stack.ss_size = STACK;
		makecontext(&inside, visit, 0);
		for (int turn = 0; turn < 5; turn++) {
			swapcontext(&outside, &inside);
			any(4);
		}
		munmap(stack, STACK);
		walk_both_ways();
	}
	expect_right(true);
}

static NOINLINE void innermost(void)
{
	walk_both_ways();
	__asm__ volatile("");
}

static NOINLINE void in_between(void)
{
	innermost();
	__asm__ volatile("");
}

static NOINLINE void one_way(void)
{
	in_between();
	__asm__ volatile("");
}

static NOINLINE void other_way(void)
{
	in_between();
	__asm__ volatile("" ::: "memory");
}

static void both_ways(void)
{
	one_way();
	other_way();
}

/* Calls f on another stack; a walk ends here. */
void run_on(void (*f)(void), char *top);
__asm__(".text\n.type run_on, @function\nrun_on:\n.cfi_startproc\n.cfi_undefined rip\n"
	"pushq %rbp\nmovq %rsp, %rbp\nmovq %rsi, %rsp\ncall *%rdi\n"
	"movq %rbp, %rsp\npopq %rbp\nret\n.cfi_endproc\n");

/* A binding runs, and what it calls goes on on another stack. */
static void *binding_leaves(void *stack)
{
	volatile uint64_t handler = 1;

	begin();
	for (int i = 0; i < 20; i++) {
		my.binding.at = (uintptr_t)&handler;
		my.binding.number++;
		walk_both_ways();
		run_on(both_ways, (char *)stack + STACK);
		walk_both_ways();
		my.binding.at = 0;
	}
	handler++;
	return (void *)(uintptr_t)my.wrong;
}

/* The other stack lies below the thread's own, and above it. */
static void test_binding_leaves(void **state)
{
	char *low =
		mmap(NULL, 3 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t attr;

	(void)state;
	assert_ptr_not_equal(low, MAP_FAILED);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, low + STACK, STACK);
	for (int i = 0; i < 2; i++) {
		void *wrong;
		pthread_t thread;

		assert_int_equal(
			pthread_create(&thread, &attr, binding_leaves, low + 2 * i * STACK), 0);
		pthread_join(thread, &wrong);
		assert_null(wrong);
	}
	pthread_attr_destroy(&attr);
	munmap(low, 3 * STACK);
}

/* Code that no object has: a frame like any other, but nothing says so. */
static void test_code_without_information(void **state)
{
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	begin();
	assert_ptr_not_equal(made, MAP_FAILED);
	memcpy(made, code, sizeof(code));
	for (int i = 0; i < 20; i++) {
		((void (*)(void (*)(void)))made)(walk_both_ways);
		walk_both_ways();
	}
	expect_right(true);
	assert_int_equal(my.asked, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_programs),
		cmocka_unit_test(test_the_same_again),
		cmocka_unit_test(test_more_than_are_kept),
		cmocka_unit_test(test_jumps),
		cmocka_unit_test(test_only_the_saved_register_differs),
		cmocka_unit_test(test_deeper_than_kept),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_other_stacks),
		cmocka_unit_test(test_binding_leaves),
		cmocka_unit_test(test_code_without_information),
	};

	return cmocka_run_group_tests(tests, find_libunwind, NULL);
}
