/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of nodes: those of a graph, those that a node or the next work on a stream waits for. The
 * caller holds the lock that guards the list.
 */
#include <stdlib.h>
#include "graph.h"

bool nodes_append(struct node_list *list, void *node)
{
	if (list->n == list->room) {
		size_t room = list->room ? 2 * list->room : 4;
		void **grown = realloc(list->nodes, room * sizeof(*grown));

		if (!grown)
			return false;
		list->nodes = grown;
		list->room = room;
	}
	list->nodes[list->n++] = node;
	return true;
}

bool nodes_has(const struct node_list *list, const void *node)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->nodes[i] == node)
			return true;
	return false;
}

bool nodes_add(struct node_list *list, void *const *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!nodes_has(list, nodes[i]) && !nodes_append(list, nodes[i]))
			return false;
	return true;
}

void nodes_done(struct node_list *list)
{
	free(list->nodes);
	*list = (struct node_list){ 0 };
}
