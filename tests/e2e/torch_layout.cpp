// SPDX-License-Identifier: Apache-2.0
// Compiled to assembly against a PyTorch's own headers (-fno-access-control): each line "#OFF name=value"
// in the output is a fact that shim/torch/ rely on.
#include <type_traits>
#include <utility>

#include <ATen/record_function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#if __has_include(<Python.h>)
#include <torch/csrc/autograd/python_function.h>
#include <torch/csrc/autograd/python_variable.h>
#endif

using namespace torch::autograd;
using at::RecordFunctionCallback;

#define SAY(name, value) asm volatile("#OFF " name "=%c0" ::"i"((int)(value)))
#define AT(name, type, member) SAY(name, offsetof(type, member))

#if __has_include(<Python.h>)
/* Where a node keeps the object of the Function in Python: in a member of its own, later in a slot. */
template <class T> constexpr auto object_of(int) -> decltype(std::declval<T>().obj, size_t())
{
	return offsetof(T, obj);
}

template <class T> constexpr auto object_of(long) -> decltype(std::declval<T>().pyobj_slot_, size_t())
{
	return offsetof(T, pyobj_slot_);
}
#endif

void say()
{
	AT("IMPL_STORAGE", c10::TensorImpl, storage_);
	AT("IMPL_AUTOGRAD", c10::TensorImpl, autograd_meta_);
	AT("offset", c10::TensorImpl, storage_offset_);
	AT("dtype", c10::TensorImpl, data_type_);
	AT("shape", c10::TensorImpl, sizes_and_strides_);
	SAY("shape_bytes", sizeof(c10::impl::SizesAndStrides));
	AT("shape_count", c10::impl::SizesAndStrides, size_);
	AT("shape_inline", c10::impl::SizesAndStrides, inlineStorage_);
	AT("shape_others", c10::impl::SizesAndStrides, outOfLineStorage_);
	SAY("object", offsetof(c10::TensorImpl, pyobj_slot_) + offsetof(c10::impl::PyObjectSlot, pyobj_));
	SAY("STORAGE_DATA", offsetof(c10::StorageImpl, data_ptr_) + offsetof(c10::DataPtr, ptr_) +
				    offsetof(c10::detail::UniqueVoidPtr, data_));
	SAY("STORAGE_DEVICE", offsetof(c10::StorageImpl, data_ptr_) + offsetof(c10::DataPtr, device_));
	AT("STORAGE_BYTES", c10::StorageImpl, size_bytes_);
	AT("META_NAME", AutogradMeta, name_);
	AT("grad", AutogradMeta, grad_);
	AT("variable", AccumulateGrad, variable);
	AT("saved", SavedVariable, data_);
	SAY("CUDA", c10::DeviceType::CUDA);
	SAY("type_bytes", sizeof(caffe2::TypeMeta));
	SAY("types", c10::ScalarType::NumOptions);
	SAY("callback_bytes", sizeof(RecordFunctionCallback));
	SAY("callback_in_registers", !std::is_trivially_copyable<RecordFunctionCallback>::value);
	AT("callback_end", RecordFunctionCallback, end_);
	AT("callback_probability", RecordFunctionCallback, sampling_prob_);
	AT("callback_scopes", RecordFunctionCallback, scopes_);
	AT("callback_inputs", RecordFunctionCallback, needs_inputs_);
#if __has_include(<Python.h>)
	SAY("function_object", object_of<PyNode>(0));
	AT("python_tensor", THPVariable, cdata);
	AT("function_saved", THPFunction, saved_variables);
	SAY("function_stride", sizeof(SavedVariable));
#endif
	SAY("SCOPES", at::RecordScope::NUM_SCOPES);
	SAY("USER_SCOPE", at::RecordScope::USER_SCOPE);
}
