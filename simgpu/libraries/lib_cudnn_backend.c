/* SPDX-License-Identifier: Apache-2.0
 *
 * cuDNN's graph ("backend") interface: descriptors that keep the attributes they are given, and a
 * heuristic that returns the same engine for every graph. A plan's workspace is computed from the
 * convolutions and the attention in its graph. Any thread; a descriptor belongs to one thread at a
 * time, as in the real library, but several others may refer to it and keep it alive.
 */
#include <stdlib.h>
#include <string.h>
#include "lib_cudnn.h"
#include "lib_cudnn_graph.h"

static void drop(struct cudnn_node *d);

static void drop_children(struct cudnn_attribute *a)
{
	struct cudnn_node **children = (struct cudnn_node **)a->data;

	if (a->type == TYPE_DESCRIPTOR)
		for (int64_t i = 0; i < a->count; i++)
			drop(children[i]);
}

static void drop(struct cudnn_node *d)
{
	if (!d || __atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL))
		return;
	while (d->attributes) {
		struct cudnn_attribute *a = d->attributes;

		d->attributes = a->next;
		drop_children(a);
		free(a);
	}
	sim_handle_free(d);
}

static struct cudnn_node *node_of(void *handle)
{
	return sim_handle_check(handle, CUDNN_NODE);
}

static size_t element_bytes(int type)
{
	switch (type) {
	case TYPE_BOOLEAN:
	case TYPE_CHAR:
		return 1;
	case TYPE_HANDLE:
	case TYPE_INT64:
	case TYPE_DOUBLE:
	case TYPE_POINTER:
	case TYPE_DESCRIPTOR:
	case TYPE_FRACTION:
		return 8;
	default:
		return 4;
	}
}

static void forget_attribute(struct cudnn_node *d, int name)
{
	struct cudnn_attribute **p = &d->attributes, *a;

	while (*p && (*p)->name != name)
		p = &(*p)->next;
	a = *p;
	if (!a)
		return;
	*p = a->next;
	drop_children(a);
	free(a);
}

static int keep_values(struct cudnn_node *d, int name, int type, int64_t count, const void *values)
{
	size_t bytes = count * element_bytes(type);
	struct cudnn_attribute *a = calloc(1, sizeof(*a) + bytes);
	struct cudnn_node *const *children = values;

	if (!a)
		return CUDNN_NO_ROOM;
	for (int64_t i = 0; type == TYPE_DESCRIPTOR && i < count; i++) {
		if (!node_of(children[i])) {
			free(a);
			return CUDNN_BAD_PARAM;
		}
	}
	for (int64_t i = 0; type == TYPE_DESCRIPTOR && i < count; i++)
		__atomic_add_fetch(&children[i]->references, 1, __ATOMIC_RELAXED);
	forget_attribute(d, name);
	a->name = name;
	a->type = type;
	a->count = count;
	if (bytes)
		memcpy(a->data, values, bytes);
	a->next = d->attributes;
	d->attributes = a;
	return CUDNN_OK;
}

API(int, cudnnBackendCreateDescriptor, int type, void **out)
{
	int result = CUDNN_CREATE(out, CUDNN_NODE, sizeof(struct cudnn_node));

	if (!result) {
		node_of(*out)->type = type;
		node_of(*out)->references = 1;
	}
	return result;
}

API(int, cudnnBackendDestroyDescriptor, void *handle)
{
	drop(node_of(handle));
	return CUDNN_OK;
}

API_CALL(int, cudnnBackendFinalize, node_of(handle) ? CUDNN_OK : CUDNN_BAD_PARAM, void *handle)

API(int, cudnnBackendSetAttribute, void *handle, int name, int type, int64_t count,
    const void *values)
{
	struct cudnn_node *d = node_of(handle);

	if (!d || count < 0 || (count && !values))
		return CUDNN_BAD_PARAM;
	return keep_values(d, name, type, count, values);
}

/* ---- queries ---- */

/* The graph of an engine, its configuration, a heuristic or a plan. */
struct cudnn_node *cudnn_graph_of(struct cudnn_node *d)
{
	static const int ways[] = { ENGINEHEUR_GRAPH, ENGINE_GRAPH, ENGINECFG_ENGINE,
				    PLAN_ENGINECFG };

	while (d && d->type != OPERATION_GRAPH) {
		struct cudnn_attribute *a = NULL;

		for (size_t i = 0; !a && i < sizeof(ways) / sizeof(ways[0]); i++)
			a = cudnn_attribute(d, ways[i]);
		d = a && a->type == TYPE_DESCRIPTOR && a->count ? *(struct cudnn_node **)a->data
								: NULL;
	}
	return d;
}

/* Fills in the one configuration that a heuristic offers; it refers to the graph. */
static int offer(struct cudnn_node *heuristic, int64_t room, int64_t *found, void *values)
{
	struct cudnn_node *graph = cudnn_graph_of(heuristic), *config, *engine = NULL;
	int result;

	if (found)
		*found = 1;
	if (!values || room < 1)
		return CUDNN_OK;
	config = node_of(*(void **)values);
	if (!config || !graph)
		return CUDNN_BAD_PARAM;
	result = cudnnBackendCreateDescriptor(ENGINE, (void **)&engine);
	if (!result)
		result = keep_values(engine, ENGINE_GRAPH, TYPE_DESCRIPTOR, 1, &graph);
	if (!result)
		result = keep_values(config, ENGINECFG_ENGINE, TYPE_DESCRIPTOR, 1, &engine);
	drop(engine);
	return result;
}

/* A configuration's engine, filled into a descriptor that the caller passes. */
static int tell_engine(struct cudnn_node *config, int64_t room, int64_t *found, void *values)
{
	struct cudnn_node *graph = cudnn_graph_of(config), *engine;

	if (found)
		*found = 1;
	if (!values || room < 1)
		return CUDNN_OK;
	engine = node_of(*(void **)values);
	if (!engine)
		return CUDNN_BAD_PARAM;
	return graph ? keep_values(engine, ENGINE_GRAPH, TYPE_DESCRIPTOR, 1, &graph) : CUDNN_OK;
}

static int tell_number(int64_t number, size_t bytes, int64_t room, int64_t *found, void *values)
{
	if (found)
		*found = 1;
	if (values && room >= 1)
		memcpy(values, &number, bytes);
	return CUDNN_OK;
}

static int tell_kept(struct cudnn_node *d, int name, int64_t room, int64_t *found, void *values)
{
	struct cudnn_attribute *a = cudnn_attribute(d, name);
	int64_t n = a ? a->count : 0;

	if (found)
		*found = n;
	if (n > room)
		n = room;
	if (values && n > 0)
		memcpy(values, a->data, n * element_bytes(a->type));
	return CUDNN_OK;
}

API(int, cudnnBackendGetAttribute, void *handle, int name, int type, int64_t room, int64_t *found,
    void *values)
{
	struct cudnn_node *d = node_of(handle);

	(void)type;
	if (!d)
		return CUDNN_BAD_PARAM;
	switch (name) {
	case ENGINEHEUR_RESULTS:
		return offer(d, room, found, values);
	case ENGINECFG_ENGINE:
		return tell_engine(d, room, found, values);
	case ENGINECFG_WORKSPACE:
	case PLAN_WORKSPACE:
		return tell_number(cudnn_graph_workspace(cudnn_graph_of(d)), 8, room, found,
				   values);
	case ENGINECFG_SHARED_MEMORY:
		return tell_number(0, 4, room, found, values);
	case GRAPH_ENGINE_COUNT:
		return tell_number(1, 8, room, found, values);
	case ENGINE_INDEX:
		return tell_number(0, 8, room, found, values);
	default:
		return tell_kept(d, name, room, found, values);
	}
}
