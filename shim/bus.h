/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory whose file somebody made shorter.
 */
#pragma once

void bus_setup(void); /* before the first page of a file of ours is mapped */
