/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes the binding that runs on this thread (base/binding.h). Each has a PyWarningHandler on its
 * stack, whose constructor and destructor are functions of PyTorch. The constructor means that a
 * binding began. A binding counts as running only while destructors are seen: after the first one,
 * and until one is missed. Of nested bindings the innermost is known, and none after its end.
 * Application threads; the framework's functions run as ever.
 */
#include "../rings/thread.h"
#include "torch.h"

enum { UNSEEN, SEEN, MISSED };
static int destructors;

static inline void binding_begins(void *handler)
{
	struct binding *b = &thread_self()->binding;

	/* on one stack, a handler further out than the last one begins after that has ended */
	if (OS_UNLIKELY(b->at && (uintptr_t)handler >= b->at))
		__atomic_store_n(&destructors, MISSED, __ATOMIC_RELAXED);
	b->at = OS_LIKELY(__atomic_load_n(&destructors, __ATOMIC_RELAXED) == SEEN)
			? (uintptr_t)handler
			: 0;
	b->number++;
}

static inline void binding_ends(void *handler)
{
	int unseen = UNSEEN;

	(void)handler;
	thread_self()->binding.at = 0;
	if (OS_UNLIKELY(__atomic_load_n(&destructors, __ATOMIC_RELAXED) == UNSEEN))
		__atomic_compare_exchange_n(&destructors, &unseen, SEEN, false, __ATOMIC_RELAXED,
					    __ATOMIC_RELAXED);
}

#define HOOK(symbol, notice)                                                          \
	void symbol(void *handler);                                                   \
	void symbol(void *handler)                                                    \
	{                                                                             \
		static void *cache;                                                   \
		void (*real)(void *) = (void (*)(void *))torch_real(&cache, #symbol); \
                                                                                      \
		notice(handler);                                                      \
		real(handler);                                                        \
	}

#pragma GCC visibility push(default)
HOOK(_ZN5torch16PyWarningHandlerC1Ev, binding_begins)
HOOK(_ZN5torch16PyWarningHandlerC2Ev, binding_begins)
HOOK(_ZN5torch16PyWarningHandlerD1Ev, binding_ends)
HOOK(_ZN5torch16PyWarningHandlerD2Ev, binding_ends)
#pragma GCC visibility pop
