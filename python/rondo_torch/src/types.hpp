// PyTorch's types and operators as those of rondo.h.
#pragma once

#include <rondo.h>

#include <torch/csrc/distributed/c10d/Types.hpp>

namespace rondo_torch
{

// Elements of a contiguous tensor as a rondo.h call counts them.
struct Elements {
    rondo_datatype_t type;
    size_t count;
    size_t for_each = 1; // of them for each element of the tensor
};

// For calls that move: any type of PyTorch.
Elements moved(const at::Tensor &tensor);
// For calls that combine; fails for a type or an operator that cannot be combined.
Elements combined(const at::Tensor &tensor, const c10d::ReduceOp &op, const char *call);
rondo_op_t operator_of(const c10d::ReduceOp &op, at::ScalarType type, const char *call);
// PREMUL_SUM's operand: tensor times the factor. Other operators': the tensor itself.
at::Tensor scaled(const at::Tensor &tensor, const c10d::ReduceOp &op);

} // namespace rondo_torch
