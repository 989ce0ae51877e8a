/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings, read from the environment once, when the library is loaded. Read-only afterwards.
 */
#ifndef GMT_CONFIG_H
#define GMT_CONFIG_H

#include "../../format/environment.h"

extern struct gmt_settings gmt_config;

#endif
