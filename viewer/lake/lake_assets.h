/* SPDX-License-Identifier: Apache-2.0 */
/* Files of this folder that the tool carries inside it. */
#ifndef VIEWER_LAKE_ASSETS_H
#define VIEWER_LAKE_ASSETS_H

extern const char lake_asset_views[], lake_asset_end_views[];	/* views.sql */
extern const char lake_asset_engine[], lake_asset_end_engine[]; /* engine.py; ends with a zero */

#endif
