/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that kernels apply to one element. Numbers are computed with the mantissa of a long
 * double and rounded once, to the type of the result. Any thread.
 */
#include "functors.h"
#include <math.h>
#include <string.h>
#include "numbers.h"

#define MAY_USE __attribute__((unused))
#define F(name) \
	static long double name(MAY_USE const struct constants *c, MAY_USE const long double *x)
/* Functors that are one expression. */
#define UNARY(name, value)    \
	F(name)               \
	{                     \
		return value; \
	}

static bool whole(const struct constants *c)
{
	return !number_is_real(c->type);
}

/* ---- two operands ---- */

F(do_equal)
{
	return (x[0] == x[1]) == (c->mode == 0);
}

F(do_compare)
{
	return c->mode == 0   ? x[0] >= x[1]
	       : c->mode == 1 ? x[0] > x[1]
	       : c->mode == 2 ? x[0] <= x[1]
			      : x[0] < x[1];
}

F(do_compare_scalar)
{
	const long double both[] = { x[0], c->x[0] };

	return do_compare(c, both);
}

/* Whole numbers of 64 bits wrap around, which a mantissa of 64 bits does not. */
F(do_multiply)
{
	if (whole(c))
		return (long double)(int64_t)((uint64_t)(int64_t)x[0] * (uint64_t)(int64_t)x[1]);
	return x[0] * x[1];
}

static long double divide(const struct constants *c, const long double *x,
			  long double (*round)(long double))
{
	return whole(c) && x[1] == 0 ? 0 : round ? round(x[0] / x[1]) : x[0] / x[1];
}

F(do_divide)
{
	return divide(c, x, whole(c) ? truncl : NULL);
}

F(do_divide_down)
{
	return divide(c, x, floorl);
}

F(do_divide_to_zero)
{
	return divide(c, x, truncl);
}

F(do_divide_down_scalar)
{
	const long double both[] = { x[0], c->x[0] };

	return divide(c, both, floorl);
}

F(do_divide_to_zero_scalar)
{
	return truncl(x[0] * c->x[0]);
}

F(do_remainder)
{
	long double rest = whole(c) && x[1] == 0 ? 0 : fmodl(x[0], x[1]);

	return rest != 0 && (rest < 0) != (x[1] < 0) ? rest + x[1] : rest;
}

F(do_fmod)
{
	return whole(c) && x[1] == 0 ? 0 : fmodl(x[0], x[1]);
}

F(do_power)
{
	long double y = powl(x[0], x[1]);

	if (!whole(c) || fabsl(y) < 0x1p63L)
		return y;
	uint64_t wraps = 1;
	for (int64_t i = 0; i < (int64_t)x[1] && i < 64; i++)
		wraps *= (uint64_t)(int64_t)x[0];
	return (long double)(int64_t)wraps;
}

F(do_power_scalar)
{
	const long double both[] = { x[0], c->x[0] };

	return do_power(c, both);
}

F(do_scalar_power)
{
	const long double both[] = { c->x[0], x[0] };

	return do_power(c, both);
}

F(do_shift_left)
{
	return x[1] < 0 || x[1] > 63 ? 0 : (long double)(int64_t)((uint64_t)x[0] << (int)x[1]);
}

F(do_shift_right)
{
	return (long double)((int64_t)x[0] >> (x[1] < 0 || x[1] > 63 ? 63 : (int)x[1]));
}

UNARY(do_or, (long double)((int64_t)x[0] | (int64_t)x[1]))
UNARY(do_and, (long double)((int64_t)x[0] & (int64_t)x[1]))
UNARY(do_xor, (long double)((int64_t)x[0] ^ (int64_t)x[1]))
UNARY(do_logical_or, x[0] != 0 || x[1] != 0)
UNARY(do_logical_and, x[0] != 0 && x[1] != 0)
UNARY(do_logical_xor, (x[0] != 0) != (x[1] != 0))
UNARY(do_logical_not, x[0] == 0)
UNARY(do_maximum, isnan(x[0]) || x[0] > x[1] ? x[0] : x[1])
UNARY(do_minimum, isnan(x[0]) || x[0] < x[1] ? x[0] : x[1])
UNARY(do_fmaximum, fmaxl(x[0], x[1]))
UNARY(do_fminimum, fminl(x[0], x[1]))
UNARY(do_atan2, atan2l(x[0], x[1]))
UNARY(do_hypot, hypotl(x[0], x[1]))

/* Sums in which the second operand has a factor; some functors hold the other operand. */
UNARY(do_add, x[0] + x[1] * c->x[0])
UNARY(do_add_on_self, x[0] + c->x[0] * c->x[1])
UNARY(do_add_on_other, c->x[0] + x[0] * c->x[1])

/* ---- one operand ---- */

UNARY(do_fill, c->x[0])
UNARY(do_copy, x[0])
UNARY(do_absolute, fabsl(x[0]))
UNARY(do_negate, -x[0])
UNARY(do_sign, (x[0] > 0) - (x[0] < 0))
UNARY(do_floor, floorl(x[0]))
UNARY(do_ceil, ceill(x[0]))
UNARY(do_round, rintl(x[0]))
UNARY(do_trunc, truncl(x[0]))
UNARY(do_fraction, x[0] - truncl(x[0]))
UNARY(do_exp, expl(x[0]))
UNARY(do_exp2, exp2l(x[0]))
UNARY(do_expm1, expm1l(x[0]))
UNARY(do_log, logl(x[0]))
UNARY(do_log2, log2l(x[0]))
UNARY(do_log10, log10l(x[0]))
UNARY(do_log1p, log1pl(x[0]))
UNARY(do_sqrt, sqrtl(x[0]))
UNARY(do_rsqrt, 1 / sqrtl(x[0]))
UNARY(do_reciprocal, 1 / x[0])
UNARY(do_sin, sinl(x[0]))
UNARY(do_cos, cosl(x[0]))
UNARY(do_tan, tanl(x[0]))
UNARY(do_asin, asinl(x[0]))
UNARY(do_acos, acosl(x[0]))
UNARY(do_atan, atanl(x[0]))
UNARY(do_sinh, sinhl(x[0]))
UNARY(do_cosh, coshl(x[0]))
UNARY(do_tanh, tanhl(x[0]))
UNARY(do_erf, erfl(x[0]))
UNARY(do_sigmoid, 1 / (1 + expl(-x[0])))
UNARY(do_silu, x[0] / (1 + expl(-x[0])))
UNARY(do_gelu, x[0] / 2 * (1 + erfl(x[0] * 0.7071067811865475244L)))
UNARY(do_gelu_tanh,
      x[0] / 2 * (1 + tanhl(0.7978845608028653559L * (x[0] + 0.044715L * x[0] * x[0] * x[0]))))
UNARY(do_square, x[0] * x[0])
UNARY(do_cube, x[0] * x[0] * x[0])
UNARY(do_inverse_square, 1 / (x[0] * x[0]))
UNARY(do_is_infinite, x[0] == INFINITY)
UNARY(do_is_minus_infinite, x[0] == -INFINITY)

F(do_bitwise_not)
{
	return c->type == 'b' ? x[0] == 0 : (long double)~(int64_t)x[0];
}

F(do_clamp_scalar)
{
	long double high = c->mode == 2 ? c->x[1] : c->x[0], low = c->x[0];

	if (isnan(x[0]))
		return x[0];
	if (c->mode != 0 && x[0] > high)
		return high;
	return c->mode != 1 && x[0] < low ? (c->mode == 2 && low > high ? high : low) : x[0];
}

F(do_not_nan)
{
	return isnan(x[0])	   ? c->x[0]
	       : x[0] == INFINITY  ? c->x[1]
	       : x[0] == -INFINITY ? c->x[2]
				   : x[0];
}

/* ---- three operands, and choices ---- */

UNARY(do_where, x[0] != 0 ? x[1] : x[2])
UNARY(do_masked_fill, x[1] != 0 ? c->x[0] : x[0])
UNARY(do_clamp, fminl(fmaxl(x[0], x[1]), x[2]))
UNARY(do_multiply_in, x[0] + c->x[0] * x[1] * x[2])
UNARY(do_divide_in, x[0] + c->x[0] * x[1] / x[2])
UNARY(do_lerp_scalar, x[0] + c->x[0] * (x[1] - x[0]))
UNARY(do_lerp, x[0] + x[2] * (x[1] - x[0]))

/* A more specific mark comes before the marks that it contains. */
static const struct functor functors[] = {
	{ "CompareEqFunctor<", 2, HOLDS_MODE, 0, GIVES_SAME, do_equal },
	{ "compare_scalar_kernel<", 1, HOLDS_MODE_NUMBER, 1, GIVES_FLAG, do_compare_scalar },
	{ "CompareFunctor<", 2, HOLDS_MODE, 0, GIVES_FLAG, do_compare },
	{ "BitwiseOrFunctor<", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_or },
	{ "BitwiseAndFunctor<", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_and },
	{ "BitwiseXorFunctor<", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_xor },
	{ "::MulFunctor<", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_multiply },
	{ "::DivFunctor<", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_divide },
	{ "CUDAFunctor_add<", 2, HOLDS_NUMBERS, 1, GIVES_SAME, do_add },
	{ "CUDAFunctorOnSelf_add<", 1, HOLDS_NUMBERS, 2, GIVES_SAME, do_add_on_self },
	{ "CUDAFunctorOnOther_add<", 1, HOLDS_NUMBERS, 2, GIVES_SAME, do_add_on_other },
	{ "FillFunctor<", 0, HOLDS_OWN, 1, GIVES_SAME, do_fill },
	{ "AbsFunctor<", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_absolute },
	{ "bfloat16_copy_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_BRAIN, do_copy },
	{ "::float16_copy_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_HALF, do_copy },
	{ "direct_copy_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_copy },
	{ "converting_copy_kernel_cuda<", 1, HOLDS_NOTHING, 0, GIVES_NAMED, do_copy },
	{ "logical_and_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_FLAG, do_logical_and },
	{ "logical_or_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_FLAG, do_logical_or },
	{ "logical_xor_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_FLAG, do_logical_xor },
	{ "logical_not_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_FLAG, do_logical_not },
	{ "bitwise_not_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_bitwise_not },
	{ "div_trunc_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_divide_to_zero },
	{ "div_trunc_kernel_cuda(", 1, HOLDS_NUMBERS, 1, GIVES_SAME, do_divide_to_zero_scalar },
	{ "div_floor_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_divide_down },
	{ "div_floor_kernel_cuda(", 1, HOLDS_NUMBERS, 2, GIVES_SAME, do_divide_down_scalar },
	{ "remainder_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_remainder },
	{ "fmod_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_fmod },
	{ "maximum_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_maximum },
	{ "minimum_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_minimum },
	{ "fmax_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_fmaximum },
	{ "fmin_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_fminimum },
	{ "atan2_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_atan2 },
	{ "hypot_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_hypot },
	{ "lshift_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_shift_left },
	{ "rshift_kernel_cuda(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_shift_right },
	{ "::neg_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_negate },
	{ "::sign_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_sign },
	{ "::floor_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_floor },
	{ "::ceil_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_ceil },
	{ "::round_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_round },
	{ "::trunc_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_trunc },
	{ "::frac_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_fraction },
	{ "::exp_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_exp },
	{ "::exp2_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_exp2 },
	{ "::expm1_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_expm1 },
	{ "::log_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_log },
	{ "::log2_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_log2 },
	{ "::log10_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_log10 },
	{ "::log1p_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_log1p },
	{ "::sqrt_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_sqrt },
	{ "::rsqrt_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_rsqrt },
	{ "::reciprocal_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_reciprocal },
	{ "::sin_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_sin },
	{ "::cos_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_cos },
	{ "::tan_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_tan },
	{ "::asin_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_asin },
	{ "::acos_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_acos },
	{ "::atan_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_atan },
	{ "::sinh_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_sinh },
	{ "::cosh_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_cosh },
	{ "::tanh_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_tanh },
	{ "::erf_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_erf },
	{ "::sigmoid_kernel_cuda(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_sigmoid },
	{ "::silu_kernel(", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_silu },
	{ "::launch_clamp_scalar(", 1, HOLDS_LIMITS, 2, GIVES_SAME, do_clamp_scalar },
	{ "::clamp_kernel_impl(", 3, HOLDS_NOTHING, 0, GIVES_SAME, do_clamp },
	{ "::nan_to_num_kernel_cuda(", 1, HOLDS_OWN, 3, GIVES_SAME, do_not_nan },
	{ "isposinf_kernel_impl(", 1, HOLDS_NOTHING, 0, GIVES_FLAG, do_is_infinite },
	{ "isneginf_kernel_impl(", 1, HOLDS_NOTHING, 0, GIVES_FLAG, do_is_minus_infinite },
	{ "::where_kernel_impl(", 3, HOLDS_NOTHING, 0, GIVES_SECOND, do_where },
	{ "::masked_fill_kernel(", 2, HOLDS_OWN, 1, GIVES_SAME, do_masked_fill },
	{ "launch_masked_scatter_kernel(", 3, HOLDS_ADDRESS, 0, GIVES_SAME, do_copy },
	{ "::addcmul_cuda_kernel(", 3, HOLDS_NUMBERS, 1, GIVES_SAME, do_multiply_in },
	{ "::addcdiv_cuda_kernel(", 3, HOLDS_NUMBERS, 1, GIVES_SAME, do_divide_in },
	{ "::lerp_scalar_kernel(", 2, HOLDS_NUMBERS, 1, GIVES_SAME, do_lerp_scalar },
	{ "::lerp_tensor_kernel(", 3, HOLDS_NOTHING, 0, GIVES_SAME, do_lerp },
	{ "pow_scalar_tensor_impl<", 1, HOLDS_NUMBERS, 1, GIVES_SAME, do_scalar_power },
	{ "::pow_tensor_tensor_kernel(", 2, HOLDS_NOTHING, 0, GIVES_SAME, do_power },
};

/* Lambdas of which one function of PyTorch has several, identified by their number. */
static const struct {
	const char *mark, *last;
	struct functor functor;
} numbered[] = {
	{ "pow_tensor_scalar_kernel_impl<",
	  "#1}",
	  { "", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_square } },
	{ "pow_tensor_scalar_kernel_impl<",
	  "#2}",
	  { "", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_cube } },
	{ "pow_tensor_scalar_kernel_impl<",
	  "#3}",
	  { "", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_inverse_square } },
	{ "pow_tensor_scalar_kernel_impl<",
	  "#4}",
	  { "", 1, HOLDS_OWN, 1, GIVES_SAME, do_power_scalar } },
	{ "::GeluType)::{lambda()#1}", "", { "", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_gelu_tanh } },
	{ "::GeluType)::{lambda()#2}", "", { "", 1, HOLDS_NOTHING, 0, GIVES_SAME, do_gelu } },
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const struct functor *functor_find(struct text name, int operands)
{
	for (size_t i = 0; i < COUNT(numbered); i++)
		if (text_has(text_after(name, numbered[i].mark), numbered[i].last) &&
		    numbered[i].functor.operands == operands)
			return &numbered[i].functor;
	for (size_t i = 0; i < COUNT(functors); i++)
		if (text_has(name, functors[i].mark) &&
		    (operands < 0 || functors[i].operands == operands))
			return &functors[i];
	return NULL;
}

/* Half precision is computed in float. */
static char computed_with(char own)
{
	return own == 'H' || own == 'B' ? 'f' : own;
}

size_t functor_read(const struct functor *f, struct constants *c, const char *at, char own)
{
	bool mode =
		f->holds == HOLDS_MODE || f->holds == HOLDS_MODE_NUMBER || f->holds == HOLDS_LIMITS;
	bool as_is = f->holds == HOLDS_OWN || f->holds == HOLDS_MODE_NUMBER;
	char type = as_is ? own : computed_with(own);
	size_t size = number_size(type), used = mode ? sizeof(int) : 0;

	c->type = computed_with(own);
	if (f->holds == HOLDS_ADDRESS)
		memcpy(&c->address, at, used = sizeof(c->address));
	if (mode)
		memcpy(&c->mode, at, sizeof(c->mode));
	for (int i = 0; i < f->numbers; i++) {
		used = (used + size - 1) / size * size;
		c->x[i] = number_load(type, at + used);
		used += size;
	}
	return used ? used : 1;
}
