/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory whose file somebody made shorter.
 */
#ifndef GMT_BUS_H
#define GMT_BUS_H

void bus_setup(void); /* before the first page of a file of ours is mapped */

#endif
