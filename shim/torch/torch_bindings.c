/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which binding runs on this thread (base/binding.h). Each has a PyWarningHandler on its stack,
 * whose constructor and destructor are functions of PyTorch's. The constructor says that a binding
 * began. That it ended is believed only where destructors are seen: after the first one, and until
 * one was missed. Of bindings within a binding the innermost is known, and none when that has
 * ended. Application threads; the framework's functions run as ever.
 */
#include "../rings/thread.h"
#include "torch.h"

enum { UNSEEN, SEEN, MISSED };
static int ends;

/* Bytes. What lies further from here is not in the caller's frame. */
#define FRAME_MOST (1u << 20)

/* Where the binding is; 0 = that is not known. On one stack a handler further out than the last one
 * begins after that has ended. */
static inline uintptr_t place(const struct binding *last, uintptr_t handler)
{
	char here;

	if (OS_UNLIKELY(last->at && handler >= last->at))
		__atomic_store_n(&ends, MISSED, __ATOMIC_RELAXED);
	if (OS_UNLIKELY(handler - (uintptr_t)&here > FRAME_MOST))
		return 0;
	return OS_LIKELY(__atomic_load_n(&ends, __ATOMIC_RELAXED) == SEEN) ? handler : 0;
}

static inline void begins(void *handler)
{
	struct binding *b = &thread_self()->binding;

	b->at = place(b, (uintptr_t)handler);
	b->number++;
}

static inline void ends_now(void *handler)
{
	int unseen = UNSEEN;

	(void)handler;
	thread_self()->binding.at = 0;
	if (OS_UNLIKELY(__atomic_load_n(&ends, __ATOMIC_RELAXED) == UNSEEN))
		__atomic_compare_exchange_n(&ends, &unseen, SEEN, false, __ATOMIC_RELAXED,
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
HOOK(_ZN5torch16PyWarningHandlerC1Ev, begins)
HOOK(_ZN5torch16PyWarningHandlerC2Ev, begins)
HOOK(_ZN5torch16PyWarningHandlerD1Ev, ends_now)
HOOK(_ZN5torch16PyWarningHandlerD2Ev, ends_now)
#pragma GCC visibility pop
