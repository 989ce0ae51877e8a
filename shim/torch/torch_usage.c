/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that the program has made an optimizer: torch.optim.Optimizer reports it once a process
 * to the framework's usage log. Those who watch the run know from then on that it is about to
 * train. The name is the only argument, a std::string, which begins with a pointer to its text in
 * either of the library's forms. Application threads; called a few times a process.
 */
#include "torch.h"

#include <string.h>

#define OPTIMIZER "python.optimizer"

typedef void log_fn(const char *const *);

static void note_optimizer(const char *name)
{
	if (!strcmp(name, OPTIMIZER))
		gmt_meta("torch.optimizer", "made", strlen("made"));
}

#define LOG(symbol)                                                   \
	void symbol(const char *const *name);                         \
	void symbol(const char *const *name)                          \
	{                                                             \
		static void *cache;                                   \
		log_fn *real = (log_fn *)torch_real(&cache, #symbol); \
                                                                      \
		note_optimizer(*name);                                \
		if (real)                                             \
			real(name);                                   \
	}

#pragma GCC visibility push(default)
LOG(_ZN3c1011LogAPIUsageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE)
LOG(_ZN3c1011LogAPIUsageERKSs)
#pragma GCC visibility pop
