/* SPDX-License-Identifier: Apache-2.0 */
#include "class_option.h"

#include "../base/say.h"
#include "../classes/classify.h"

const char class_option_words[] =
#define CATEGORY(name, words, colour) #name " "
#include "../classes/categories.def"
#undef CATEGORY
	;

int class_option(const char *name, int *category)
{
	static const char all[] =
#define CATEGORY(name, words, colour) ", " #name
#include "../classes/categories.def"
#undef CATEGORY
		;

	*category = category_by_name(name);
	if (*category >= 0)
		return 0;
	return say_error(EXIT_USAGE, "--class \"%s\" is not one of %s", name, all + 2);
}
