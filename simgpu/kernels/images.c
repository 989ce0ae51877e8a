/* SPDX-License-Identifier: Apache-2.0
 *
 * Images of kernels' code that programs register or load, and the layouts of parameters in them.
 * Frameworks register hundreds of images and launch kernels of few, so that a registered image is
 * read only when one of its kernels is first needed. Any thread.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"

struct image {
	const void *binary;	/* NULL: nothing more to read */
	bool asked, lacks_code; /* lacks_code: for this card, if asked */
	struct layouts layouts;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned int architecture(void)
{
	return (unsigned int)(sim_card()->major * 10 + sim_card()->minor);
}

struct image *image_register(const void *binary)
{
	struct image *image = calloc(1, sizeof(*image));

	if (image)
		image->binary = binary;
	return image;
}

struct image *image_load(const void *from)
{
	struct image *image = image_register(NULL);

	if (image)
		layouts_read(&image->layouts, from, architecture(), NULL);
	return image;
}

void image_says(struct image *image, const char *name, const struct parameter *p, int n)
{
	pthread_mutex_lock(&lock);
	layouts_add(&image->layouts, name, p, (uint32_t)n);
	pthread_mutex_unlock(&lock);
}

void image_gone(struct image *image)
{
	if (!image)
		return;
	pthread_mutex_lock(&lock);
	image->binary = NULL;
	pthread_mutex_unlock(&lock);
}

static void ask_code(struct image *image)
{
	if (!image->asked && image->binary)
		image->lacks_code = !image_has_code(image->binary, architecture());
	__atomic_store_n(&image->asked, true, __ATOMIC_RELEASE);
}

bool kernel_has_code(const struct kernel *k)
{
	struct image *image = k->image;

	if (!image)
		return true;
	if (!__atomic_load_n(&image->asked, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&lock);
		ask_code(image);
		pthread_mutex_unlock(&lock);
	}
	return !image->lacks_code;
}

static const struct layout *find_layout(struct image *image, const char *name)
{
	const struct layout *found = layouts_find(&image->layouts, name);

	ask_code(image);
	if (found || !image->binary)
		return found;
	layouts_read(&image->layouts, image->binary, architecture(), name);
	found = layouts_find(&image->layouts, name);
	if (!found) /* all of it is read now */
		image->binary = NULL;
	return found;
}

static void ask(struct kernel *k)
{
	const struct layout *l = k->image ? find_layout(k->image, k->name) : NULL;

	k->n_parameters = -1;
	k->parameters = l ? calloc(l->n + 1, sizeof(*k->parameters)) : NULL;
	if (k->parameters) {
		k->n_parameters = (int)l->n;
		memcpy(k->parameters, k->image->layouts.parameters + l->first,
		       l->n * sizeof(*k->parameters));
	}
	__atomic_store_n(&k->asked, true, __ATOMIC_RELEASE);
}

int kernel_parameters(struct kernel *k, const struct parameter **parameters)
{
	if (!__atomic_load_n(&k->asked, __ATOMIC_ACQUIRE)) {
		pthread_mutex_lock(&lock);
		if (!k->asked)
			ask(k);
		pthread_mutex_unlock(&lock);
	}
	*parameters = k->parameters;
	return k->n_parameters;
}
