/* SPDX-License-Identifier: Apache-2.0 */
/* Commands without the arguments that name one run of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../viewer/commands/lake.h"

static void what_is_left(void **state)
{
	static const char *const commands[][2] = {
		{ "train.py --run-name exp-17 --batch 8", "train.py --batch 8" },
		{ "train.py --batch 8 --run_name=exp-17", "train.py --batch 8" },
		{ "train.py --output_dir out/3 --seed 7 --lr 1e-4", "train.py --lr 1e-4" },
		{ "train.py --model-name gpt2 --name a --log-every 10",
		  "train.py --model-name gpt2 --log-every 10" },
		{ "train.py -o x.pt --save-steps 5", "train.py --save-steps 5" },
		{ "train.py hydra.run.dir=/tmp/1 model.width=64", "train.py model.width=64" },
		{ "train.py --wandb --fp16", "train.py --fp16" }, /* a flag, no value */
		{ "train.py --no-logs", "train.py" },
		{ "-m torch.distributed.run train.py", "-m torch.distributed.run train.py" },
		{ "train.py --runs", "train.py --runs" },
		{ "train.py", "train.py" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		char text[128];

		strcpy(text, commands[i][0]);
		lake_program(text);
		assert_string_equal(text, commands[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_left) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
