/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of PyTorch that are known: one row for each kind. The first row whose mark stands in
 * a kernel's readable name decides. Any thread.
 */
#include <string.h>
#include "kernels.h"
#include "numbers.h"

static const struct family families[] = {
	{ "vectorized_elementwise_kernel<", elements_parse, elements_launch },
	{ "unrolled_elementwise_kernel<", elements_parse, elements_launch },
	{ "native::elementwise_kernel<", elements_parse, elements_launch },
	{ "native::index_elementwise_kernel<", index_parse, index_launch },
	{ "native::_scatter_gather_elementwise_kernel<", index_parse, index_launch },
	{ "native::reduce_kernel<", reduce_parse, reduce_launch },
	{ "bitonicSortKVInPlace<", sort_parse, sort_launch },
	{ "warpMergeSortKVInPlace<", sort_parse, sort_launch },
	{ "radixSortKVInPlace<", sort_parse, sort_launch },
	{ "sbtopk::gatherTopK<", sort_parse, topk_launch },
	{ "gatherKthValue<", sort_parse, kth_launch },
	{ "gatherMedian<", sort_parse, median_launch },
	{ "DeviceRadixSortSingleTileKernel<", radix_parse, radix_launch },
	{ "DeviceRadixSortOnesweepKernel<", radix_parse, radix_pass_launch },
	{ "DeviceRadixSortHistogramKernel<", prepare_parse, prepare_launch },
	{ "DeviceRadixSortExclusiveSumKernel<", prepare_parse, prepare_launch },
	{ "DeviceScanInitKernel<", prepare_parse, prepare_launch },
	{ "tensor_kernel_scan_outer_dim_with_indices<", scan_parse, scan_outer_places_launch },
	{ "tensor_kernel_scan_innermost_dim_with_indices<", scan_parse, scan_inner_places_launch },
	{ "tensor_kernel_scan_outer_dim<", scan_parse, scan_outer_launch },
	{ "tensor_kernel_scan_innermost_dim<", scan_parse, scan_inner_launch },
	{ "DeviceScanKernel<", scan_parse, scan_row_launch },
	{ "DeviceCompactInitKernel<", prepare_parse, prepare_launch },
	{ "DeviceReduceSingleTileKernel<", select_parse, total_launch },
	{ "DeviceReduceKernel<", select_parse, parts_launch },
	{ "DeviceSelectSweepKernel<", select_parse, select_launch },
	{ "DeviceReduceByKeyKernel<", select_parse, runs_launch },
	{ "internal::(anonymous namespace)::adjacent_difference_kernel<", select_parse,
	  unlike_launch },
	{ "internal::(anonymous namespace)::scatter_kernel(", select_parse, scatter_each_launch },
	{ "unique_bool_write_output(", select_parse, two_values_launch },
	{ "unique_bool_write_inverse_indices(", select_parse, two_places_launch },
	{ "vectorized_gather_kernel<", select_parse, gather_rows_launch },
	{ "indexSelectSmallIndex<", along_parse, index_select_launch },
	{ "indexSelectLargeIndex<", along_parse, index_select_launch },
	{ "indexFuncSmallIndex<", along_parse, index_func_launch },
	{ "indexFuncLargeIndex<", along_parse, index_func_launch },
	{ "indexing_backward_kernel<", select_parse, index_sum_launch },
	{ "indexing_backward_kernel_stride_1<", select_parse, index_sum_launch },
	{ "indexing_backward_kernel_small_stride<", select_parse, index_sum_launch },
	{ "roll_cuda_kernel<", select_parse, roll_launch },
	{ "triu_tril_kernel<", select_parse, triangle_launch },
	{ "compute_cuda_kernel<", select_parse, repeat_launch },
	{ "write_indices<", select_parse, places_launch },
	{ "elementwise_kernel_with_index<", range_parse, range_launch },
	{ "kernelHistogram1D<", histogram_parse, histogram_launch },
	{ "searchsorted_cuda_kernel<", select_parse, search_launch },
	{ "softmax_warp_forward<", select_parse, softmax_launch },
	{ "cunn_SpatialSoftMaxForward<", select_parse, softmax_outer_launch },
	{ "cunn_SoftMaxForward<", select_parse, softmax_row_launch },
	{ "cunn_SoftMaxForwardSmem<", select_parse, softmax_row_launch },
	/* They only look. */
	{ "_assert_async_cuda_kernel<", prepare_parse, prepare_launch },
	{ "masked_scatter_size_check(", prepare_parse, prepare_launch },
	{ "multi_tensor_apply_kernel<", lists_parse, lists_launch },
	{ "CatArrayBatchedCopy", cat_parse, cat_launch },
	{ "amp_update_scale_cuda_kernel(float*, int*, float const*, double, double, int)",
	  scaler_parse, scaler_launch },
};

const struct family *family_find(const char *text)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strstr(text, families[i].mark))
			return &families[i];
	return NULL;
}

int64_t call_number(const struct call *c, int i)
{
	char type = text_type(text_parameter(c->k, i));

	return type ? (int64_t)number_load(type, c->args[i]) : -1;
}

void *call_address(const struct call *c, int i)
{
	void *address = *(void **)c->args[i];

	return sim_is_device_ptr(address) ? address : NULL;
}

bool kernel_launch(const void *host, void *stream, const unsigned int grid[3], void **args)
{
	struct call c = { .args = args, .grid = { grid[0], grid[1], grid[2] } };

	c.k = args ? kernel_find(host) : NULL;
	if (!c.k || sim_capturing(stream))
		return false;
	contents_begin();
	return (c.k->family && c.k->family->launch(&c)) || signature_forget(&c);
}
