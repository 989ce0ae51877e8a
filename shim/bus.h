/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Survives the truncation of a file whose pages are mapped.
 */
#pragma once

void bus_setup(void); /* before the first page of a file of ours is mapped */
