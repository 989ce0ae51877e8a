/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways out of a process that run no destructor.
 */
#pragma once

void leave_setup(void); /* in the constructor, if recording is enabled */
