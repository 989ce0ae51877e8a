/* SPDX-License-Identifier: Apache-2.0 */
/* What to change where memory grows. */
#include "leaks.h"

static const struct change {
	uint32_t classes;
	unsigned part; /* least share of the growth in these classes: one part in so many */
	const char *text;
} changes[] = {
	{ CLASSES_THAT(ARE_WEIGHTS) | CLASSES_THAT(FOLLOW_TRAINING), 2,
	  "Models, gradients or state of earlier steps are kept: delete what refers "
	  "to them (lists, attributes, closures, hooks, reference cycles)." },
	{ 1u << CATEGORY_activations, 4,
	  "Graphs of earlier steps are kept: keep loss.item() or x.detach() in place of the tensor "
	  "that holds them (in a list, an attribute, a closure, a hook or a reference cycle; or a "
	  "buffer that is written in place: call its detach_()), or call backward at once." },
	{ ~0u, 1,
	  "What earlier steps made is kept: keep x.item() or x.detach().cpu() in place of it, "
	  "limit how many are kept, or delete what refers to it outside of its line: a variable, a "
	  "list, an attribute, a closure, a hook or a reference cycle." },
};

const char *leaks_change_kept(bool graphs)
{
	return changes[graphs ? 1 : 2].text;
}

static uint64_t growth_of(const struct leaks *l, uint32_t classes)
{
	uint64_t bytes = 0;

	FOR_EACH (const struct leak, x, l->items, l->count)
		bytes += classes >> x->category & 1 ? x->bytes_per_step : 0;
	return bytes;
}

const char *leaks_change(const struct leaks *l)
{
	const struct change *c = changes;

	if (!ANY_OF(x, l->items, l->count, x->blocks && x->first_step < l->to_step))
		return "";
	/* tensors that are trained without an optimizer, such as images, grow with their gradients
	 */
	if (!growth_of(l, CLASS_BIT(optimizer_state)) &&
	    4 * growth_of(l, CLASS_BIT(parameters) | CLASS_BIT(inputs)) >= l->bytes_per_step &&
	    4 * growth_of(l, CLASS_BIT(gradients)) >= l->bytes_per_step)
		return "Tensors that require gradients are kept with their gradients: delete what "
		       "refers to them, detach a gradient that was computed from its own tensor "
		       "(the two refer to each other), or set x.grad = None once it has been "
		       "used.";
	while (growth_of(l, c->classes) * c->part < growth_of(l, ~0u))
		c++;
	return c->text;
}
