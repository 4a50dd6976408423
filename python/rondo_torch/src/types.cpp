// Types and operators: see types.hpp.
#include "types.hpp"

#include <ATen/ATen.h>

namespace rondo_torch
{

namespace
{

rondo_datatype_t type_of(at::ScalarType type)
{
    switch (type) {
    case at::kChar:
        return RONDO_INT8;
    case at::kByte:
        return RONDO_UINT8;
    case at::kShort:
        return RONDO_INT16;
    case at::kUInt16:
        return RONDO_UINT16;
    case at::kInt:
        return RONDO_INT32;
    case at::kUInt32:
        return RONDO_UINT32;
    case at::kLong:
        return RONDO_INT64;
    case at::kUInt64:
        return RONDO_UINT64;
    case at::kHalf:
        return RONDO_FLOAT16;
    case at::kBFloat16:
        return RONDO_BFLOAT16;
    case at::kFloat:
        return RONDO_FLOAT;
    case at::kDouble:
        return RONDO_DOUBLE;
    case at::kFloat8_e4m3fn:
        return RONDO_FLOAT8E4M3;
    case at::kFloat8_e5m2:
        return RONDO_FLOAT8E5M2;
    case at::kBool:
        return RONDO_BOOL;
    case at::kComplexFloat:
        return RONDO_COMPLEX_FLOAT;
    case at::kComplexDouble:
        return RONDO_COMPLEX_DOUBLE;
    default:
        return RONDO_DATATYPE_NONE;
    }
}

} // namespace

Elements moved(const at::Tensor &tensor)
{
    const rondo_datatype_t type = type_of(tensor.scalar_type());
    const auto count = static_cast<size_t>(tensor.numel());
    // Booleans may have any bits, and pass as bytes.
    if (type == RONDO_DATATYPE_NONE || type == RONDO_BOOL)
        return {RONDO_UINT8, tensor.nbytes(), static_cast<size_t>(tensor.element_size())};
    return {type, count, 1};
}

Elements combined(const at::Tensor &tensor, const c10d::ReduceOp &op, const char *call)
{
    const auto count = static_cast<size_t>(tensor.numel());
    if (tensor.scalar_type() == at::kComplexHalf && (op == c10d::ReduceOp::SUM || op == c10d::ReduceOp::AVG))
        return {RONDO_FLOAT16, 2 * count, 2};
    const rondo_datatype_t type = type_of(tensor.scalar_type());
    TORCH_CHECK(type != RONDO_DATATYPE_NONE, "rondo: ", call, ": tensors of type ", tensor.scalar_type(),
                " cannot be combined");
    return {type, count, 1};
}

rondo_op_t operator_of(const c10d::ReduceOp &op, at::ScalarType type, const char *call)
{
    const bool logical = type == at::kBool;
    const bool bits = at::isIntegralType(type, true);
    switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
    case c10d::ReduceOp::SUM:
        return logical ? RONDO_LOR : RONDO_SUM;
    case c10d::ReduceOp::PREMUL_SUM:
        return RONDO_SUM;
    case c10d::ReduceOp::AVG:
        TORCH_CHECK(!logical, "rondo: ", call, ": booleans have no average");
        return RONDO_AVG;
    case c10d::ReduceOp::PRODUCT:
        return logical ? RONDO_LAND : RONDO_PROD;
    case c10d::ReduceOp::MIN:
        return logical ? RONDO_LAND : RONDO_MIN;
    case c10d::ReduceOp::MAX:
        return logical ? RONDO_LOR : RONDO_MAX;
    case c10d::ReduceOp::BAND:
        TORCH_CHECK(bits, "rondo: ", call, ": Cannot use ReduceOp.BAND with non-integral dtype");
        return logical ? RONDO_LAND : RONDO_BAND;
    case c10d::ReduceOp::BOR:
        TORCH_CHECK(bits, "rondo: ", call, ": Cannot use ReduceOp.BOR with non-integral dtype");
        return logical ? RONDO_LOR : RONDO_BOR;
    case c10d::ReduceOp::BXOR:
        TORCH_CHECK(bits, "rondo: ", call, ": Cannot use ReduceOp.BXOR with non-integral dtype");
        return logical ? RONDO_LXOR : RONDO_BXOR;
    default:
        TORCH_CHECK(false, "rondo: ", call, ": unknown operator");
    }
}

at::Tensor scaled(const at::Tensor &tensor, const c10d::ReduceOp &op)
{
    if (static_cast<c10d::ReduceOp::RedOpType>(op) != c10d::ReduceOp::PREMUL_SUM)
        return tensor;
    const auto *factor = dynamic_cast<const c10d::NCCLPreMulSumSupplement *>(op.supplement_.get());
    TORCH_CHECK(factor != nullptr, "rondo: PREMUL_SUM has no factor");
    if (factor->tensor_factor.defined())
        return tensor * factor->tensor_factor.to(tensor.scalar_type());
    return tensor * factor->double_factor;
}

} // namespace rondo_torch
