/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VIEWER_VERSION_H
#define VIEWER_VERSION_H

#define VIEWER_VERSION "0.1.0"

#endif
