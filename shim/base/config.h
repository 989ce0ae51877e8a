/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings, read from the environment once, when the library is loaded. Read-only afterwards.
 */
#pragma once

#include "../../format/environment.h"

extern struct gmt_settings gmt_config;
