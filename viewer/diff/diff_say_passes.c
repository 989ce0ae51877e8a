/* SPDX-License-Identifier: Apache-2.0 */
/* Sentences of findings about what passes are for each other, and how far they go back. */
#include <inttypes.h>

#include "diff_sentence.h"

static void say_share(struct sentence *s, const struct diff_shot *shot)
{
	uint64_t all = shot->bytes[CATEGORY_parameters];

	sentence_bytes(s, shot->trained);
	sentence_add(s, " of ");
	sentence_bytes(s, all);
}

static bool same_state(const struct diff *d)
{
	uint64_t before = d->old_shot.bytes[CATEGORY_optimizer_state];

	return before &&
	       diff_apart(before, d->new_shot.bytes[CATEGORY_optimizer_state]) < before / 20;
}

void diff_say_trained(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	bool more = d->new_shot.trained > d->old_shot.trained;

	sentence_add(s, "%s of the parameters are trained (", more ? "More" : "Fewer");
	say_share(s, &d->new_shot);
	sentence_add(s, ", were ");
	say_share(s, &d->old_shot);
	if (same_state(d) && more)
		sentence_add(s, ") but the optimizer holds as much as before, as without "
				"torch.no_grad() or .detach(): ");
	else if (same_state(d))
		sentence_add(s, ") but the optimizer holds as much as before, as with "
				"torch.no_grad() or .detach(): ");
	else
		sentence_add(s, "), as with layers %s: ", more ? "set free" : "frozen");
	sentence_classes(s, d, f);
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
	sentence_caller(s, d, f);
}

void diff_say_recompute(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(s, "Activations are %s in backward (checkpointing): ",
		     d->new.recomputes ? "now made again" : "no longer made again");
	sentence_bytes(s, diff_apart(f->bytes_old, f->bytes_new));
	sentence_add(s, " %s of them kept, in %zu lines, most of it ",
		     f->bytes_new < f->bytes_old ? "less" : "more", sentence_lines(d, f));
	sentence_owner(s, &f->owner);
}

void diff_say_compiled(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(s,
		     "The model is %s (torch.compile), what a pass makes is made by other code: ",
		     d->new.compiled ? "compiled now" : "no longer compiled");
	sentence_classes(s, d, f);
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
}

void diff_say_recorded(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	sentence_add(s, f->bytes_new > f->bytes_old
				? "Passes that no backward pass follows are now recorded for one, "
				  "as without torch.no_grad(): "
				: "Passes that no backward pass follows are no longer recorded for "
				  "one, as with torch.no_grad(): ");
	sentence_classes(s, d, f);
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
	sentence_caller(s, d, f);
}

void diff_say_reach(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	uint64_t before = diff_gradients(&d->old), after = diff_gradients(&d->new);
	const struct owner *most = diff_owner(&d->pairs[f->pair]);

	sentence_add(s,
		     "Backward goes %s: it brings %" PRIu64 " gradients to parameters in a step, "
		     "were %" PRIu64 ", as with a result that is %s: ",
		     after > before ? "further" : "less far", after, before,
		     after > before ? "no longer detached" : "detached now");
	sentence_classes(s, d, f);
	sentence_add(s, "; most of it ");
	sentence_owner(s, most);
	sentence_caller(s, d, f);
	if (owners_same(most, &f->owner))
		return;
	sentence_add(s, ", in the pass back from ");
	sentence_owner(s, &f->owner);
}

void diff_say_passes(struct sentence *s, const struct diff *d, const struct diff_finding *f)
{
	bool more = d->new_shot.passes > d->old_shot.passes;

	sentence_add(s, "Results of %zu forward pass%s are held at once, were of %zu%s: ",
		     d->new_shot.passes, d->new_shot.passes == 1 ? "" : "es", d->old_shot.passes,
		     more ? ", as with one backward pass for several losses" : "");
	sentence_classes(s, d, f);
	sentence_add(s, "; most of it ");
	sentence_owner(s, &f->owner);
	sentence_caller(s, d, f);
	sentence_passes(s, d);
}
