/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses of a kernel over lists of tensors belong to a launch: layouts as a compiler makes
 * them of structures like PyTorch's.
 *
 * links: shim/cuda/tensor_lists.c
 */
#include "../../shim/cuda/tensor_lists.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <string.h>

#define LISTS(name, n, most, more, end)           \
	struct name {                             \
		const void *addresses[n][most];   \
		int64_t numel[most];              \
		more unsigned char by_block[320]; \
		int chunk[320];                   \
		end                               \
	}

LISTS(plain4, 4, 36, , int start;);
LISTS(plain1, 1, 110, , int start;);
LISTS(fused4, 4, 36, const void *steps[36];, int start;);
LISTS(scalar2, 2, 64, float values[64];, );
LISTS(scalar1, 1, 96, double values[96];, );

static struct tensor_lists of(const char *name, size_t size)
{
	return tensor_lists_of(name, strlen(name), (const size_t[]){ size, 4 });
}

static void layouts_of_compilers(void **state)
{
	static const char plain[] =
		"_ZN2at25multi_tensor_apply_kernelINS1_18TensorListMetadataILi4EEE";
	static const char fused[] = "_ZN2at_INS1_32FusedOptimizerTensorListMetadataILi4EEE";
	static const char scalar[] = "_ZN2at_INS1_28TensorListScalarListMetadataIfLi2EEE";
	struct tensor_lists l = of(plain, sizeof(struct plain4));

	(void)state;
	assert_int_equal(l.lists, 4);
	assert_int_equal(l.most, 36);
	assert_int_equal(l.by_block, offsetof(struct plain4, by_block));
	l = of(fused, sizeof(struct fused4));
	assert_int_equal(l.steps, offsetof(struct fused4, steps));
	assert_int_equal(l.by_block, offsetof(struct fused4, by_block));
	l = of(scalar, sizeof(struct scalar2));
	assert_int_equal(l.by_block, offsetof(struct scalar2, by_block));
	l = of("28TensorListScalarListMetadataIdLi1EE", sizeof(struct scalar1));
	assert_int_equal(l.by_block, offsetof(struct scalar1, by_block));
	assert_int_equal(of("18TensorListMetadataILi1EE", sizeof(struct plain1)).most, 110);
}

/* Another release's layout, or another kernel, is read whole. */
static void what_is_not_known(void **state)
{
	(void)state;
	assert_int_equal(of("18TensorListMetadataILi4EE", sizeof(struct plain4) + 8).lists, 0);
	assert_int_equal(of("18TensorListMetadataILi9EE", sizeof(struct plain4)).lists, 0);
	assert_int_equal(of("18TensorListMetadataILi", sizeof(struct plain4)).lists, 0);
	assert_int_equal(of("vectorized_elementwise_kernel", 4096).lists, 0);
}

static unsigned count_of(const struct tensor_lists *l, const void *meta, unsigned blocks)
{
	return tensor_lists_count(l, meta, (const unsigned[]){ blocks, 1 });
}

/* Its rows of blocks are the tensors. */
static void tensors_of_a_cat(void **state)
{
	struct meta {
		const void *addresses[128];
		unsigned numbers[3][128];
		char contiguous[128];
		unsigned strides[8];
	};
	static const char name[] =
		"_ZN2at6native19CatArrayBatchedCopyINS1_10OpaqueTypeILj4EEEjLi1E";
	struct tensor_lists l =
		tensor_lists_of(name, strlen(name), (const size_t[]){ 8, sizeof(struct meta) });

	(void)state;
	assert_int_equal(l.parameter, 1);
	assert_int_equal(tensor_lists_count(&l, NULL, (const unsigned[]){ 4, 2 }), 2);
	assert_int_equal(tensor_lists_count(&l, NULL, (const unsigned[]){ 400, 128 }), 128);
	assert_int_equal(tensor_lists_count(&l, NULL, (const unsigned[]){ 4, 60000 }), l.most);
	assert_in_range(l.most, 128, sizeof(struct meta) / 8);
}

static void tensors_of_a_launch(void **state)
{
	static struct plain4 meta;
	struct tensor_lists l = of("18TensorListMetadataILi4EE", sizeof(meta));

	(void)state;
	meta.by_block[0] = 0;
	meta.by_block[1] = meta.by_block[2] = 6;
	assert_int_equal(count_of(&l, &meta, 3), 7);
	assert_int_equal(count_of(&l, &meta, 1), 1);
	meta.by_block[2] = 200; /* more than there is room for: all of it is read */
	assert_int_equal(count_of(&l, &meta, 3), 36);
	assert_int_equal(count_of(&l, &meta, 100000), 36);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts_of_compilers),
		cmocka_unit_test(what_is_not_known),
		cmocka_unit_test(tensors_of_a_launch),
		cmocka_unit_test(tensors_of_a_cat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
