/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of PyTorch that are computed: one row for each family. A kernel belongs to the first
 * row whose mark occurs in its readable name. Any thread.
 */
#include <string.h>
#include "kernels.h"

/* For kernels whose name adds nothing to the arguments of a launch. */
static bool nothing_parse(struct kernel *k)
{
	(void)k;
	return true;
}

static const struct family families[] = {
	{ "vectorized_elementwise_kernel<", elements_parse, elements_launch, false },
	{ "unrolled_elementwise_kernel<", elements_parse, elements_launch, false },
	{ "native::elementwise_kernel<", elements_parse, elements_launch, false },
	{ "native::index_elementwise_kernel<", index_parse, index_launch, false },
	{ "native::_scatter_gather_elementwise_kernel<", index_parse, index_launch, false },
	{ "native::reduce_kernel<", reduce_parse, reduce_launch, false },
	{ "reduction_prod_kernel", product_parse, product_launch, false },
	{ "bitonicSortKVInPlace<", sort_parse, sort_launch, false },
	{ "warpMergeSortKVInPlace<", sort_parse, sort_launch, false },
	{ "radixSortKVInPlace<", sort_parse, sort_launch, false },
	{ "sbtopk::gatherTopK<", sort_parse, topk_launch, false },
	{ "gatherKthValue<", sort_parse, kth_launch, false },
	{ "gatherMedian<", sort_parse, median_launch, false },
	{ "DeviceRadixSortSingleTileKernel<", radix_parse, radix_launch, false },
	{ "DeviceRadixSortOnesweepKernel<", radix_parse, radix_pass_launch, false },
	{ "DeviceRadixSortHistogramKernel<", nothing_parse, prepare_launch, false },
	{ "DeviceRadixSortExclusiveSumKernel<", nothing_parse, prepare_launch, false },
	{ "DeviceScanInitKernel<", nothing_parse, prepare_launch, false },
	{ "tensor_kernel_scan_outer_dim_with_indices<", scan_parse, scan_outer_places_launch,
	  false },
	{ "tensor_kernel_scan_innermost_dim_with_indices<", scan_parse, scan_inner_places_launch,
	  false },
	{ "tensor_kernel_scan_outer_dim<", scan_parse, scan_outer_launch, false },
	{ "tensor_kernel_scan_innermost_dim<", scan_parse, scan_inner_launch, false },
	{ "DeviceScanKernel<", scan_parse, scan_row_launch, false },
	{ "DeviceCompactInitKernel<", nothing_parse, prepare_launch, false },
	{ "DeviceReduceSingleTileKernel<", nothing_parse, total_launch, false },
	{ "DeviceReduceKernel<", nothing_parse, parts_launch, false },
	{ "DeviceSelectSweepKernel<", nothing_parse, select_launch, false },
	{ "DeviceReduceByKeyKernel<", nothing_parse, runs_launch, false },
	{ "DeviceUniqueByKeySweepKernel<", nothing_parse, unlike_keys_launch, false },
	{ "internal::(anonymous namespace)::adjacent_difference_kernel<", nothing_parse,
	  unlike_launch, false },
	{ "internal::(anonymous namespace)::scatter_kernel(", nothing_parse, scatter_each_launch,
	  false },
	{ "unique_bool_write_output(", nothing_parse, two_values_launch, false },
	{ "unique_bool_write_inverse_indices(", nothing_parse, two_places_launch, false },
	{ "vectorized_gather_kernel<", nothing_parse, gather_rows_launch, false },
	{ "indexSelectSmallIndex<", along_parse, index_select_launch, false },
	{ "indexSelectLargeIndex<", along_parse, index_select_launch, false },
	{ "indexFuncSmallIndex<", along_parse, index_func_launch, false },
	{ "indexFuncLargeIndex<", along_parse, index_func_launch, false },
	{ "indexing_backward_kernel<", nothing_parse, index_sum_launch, false },
	{ "indexing_backward_kernel_stride_1<", nothing_parse, index_sum_launch, false },
	{ "indexing_backward_kernel_small_stride<", nothing_parse, index_sum_launch, false },
	{ "roll_cuda_kernel<", nothing_parse, roll_launch, false },
	{ "triu_tril_kernel<", nothing_parse, triangle_launch, false },
	{ "compute_cuda_kernel<", nothing_parse, repeat_launch, false },
	{ "write_indices<", nothing_parse, places_launch, false },
	{ "elementwise_kernel_with_index<", range_parse, range_launch, false },
	{ "kernelHistogram1D<", histogram_parse, histogram_launch, false },
	{ "searchsorted_cuda_kernel<", nothing_parse, search_launch, false },
	{ "softmax_warp_forward<", nothing_parse, softmax_launch, false },
	{ "cunn_SpatialSoftMaxForward<", nothing_parse, softmax_outer_launch, false },
	{ "cunn_SoftMaxForward<", nothing_parse, softmax_row_launch, false },
	{ "cunn_SoftMaxForwardSmem<", nothing_parse, softmax_row_launch, false },
	{ "distribution_elementwise_grid_stride_kernel<", random_parse, random_launch, false },
	/* These only check values, or change ones that hardly ever occur. */
	{ "randperm_handle_duplicate_keys_kernel<", nothing_parse, prepare_launch, false },
	{ "_assert_async_cuda_kernel<", nothing_parse, prepare_launch, false },
	{ "masked_scatter_size_check(", nothing_parse, prepare_launch, false },
	{ "multi_tensor_apply_kernel<", lists_parse, lists_launch, true },
	{ "CatArrayBatchedCopy", cat_parse, cat_launch, false },
	{ "amp_update_scale_cuda_kernel(float*, int*, float const*, double, double, int)",
	  nothing_parse, scaler_launch, false },
};

const struct family *family_find(const char *text)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strstr(text, families[i].mark))
			return &families[i];
	return NULL;
}
