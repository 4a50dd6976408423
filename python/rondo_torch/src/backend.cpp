// The backend's collectives: see backend.hpp.
#include "backend.hpp"

#include "types.hpp"

#include <ATen/ATen.h>

namespace rondo_torch
{

namespace
{

// Whether the caller goes on before the operation is complete. Versions of PyTorch without the field wait for the Work.
template <class O> auto is_async(const O &opts, int) -> decltype(opts.asyncOp)
{
    return opts.asyncOp;
}
template <class O> bool is_async(const O &, long)
{
    return true;
}

template <class B, class I, class... A> auto either(B blocking, I nonblocking, A... arguments)
{
    return [=](rondo_comm_t comm, rondo_request_t *request) {
        return request != nullptr ? nonblocking(arguments..., comm, request) : blocking(arguments..., comm);
    };
}

// What the thread's collectives match by; empty: by their order in the group.
thread_local std::string current_key;

bool overlap(const at::Tensor &a, const at::Tensor &b)
{
    const char *first = static_cast<const char *>(a.const_data_ptr()), *second = static_cast<const char *>(b.const_data_ptr());
    return first < second + b.nbytes() && second < first + a.nbytes();
}

} // namespace

std::string Backend::set_key(std::string key)
{
    current_key.swap(key);
    return key;
}

void Backend::check(const at::Tensor &tensor, const char *call) const
{
    TORCH_CHECK(tensor.device().is_cpu() || tensor.device().is_cuda(), "rondo: ", call, ": a tensor on ", tensor.device(),
                "; the backend takes tensors on cpu and cuda only");
    TORCH_CHECK(tensor.layout() == at::kStrided, "rondo: ", call, ": a tensor of layout ", tensor.layout(),
                "; only dense ones are supported");
}

void Backend::check(Plan &plan, const at::Tensor &tensor)
{
    auto &operation = *plan.operation;
    check(tensor, operation.name.c_str());
    if (!plan.placed) {
        plan.placed = true;
        operation.device = tensor.device();
        operation.needs_gpu = operation.on_gpu();
        if (operation.needs_gpu)
            group_->ask_for_gpu(operation.device);
    }
    TORCH_CHECK(tensor.device() == operation.device, "rondo: ", operation.name, ": tensors on ", operation.device, " and ",
                tensor.device(), " in one call");
}

void Backend::check_root(int64_t root, const char *call) const
{
    TORCH_CHECK(root >= 0 && root < size_, "rondo: ", call, ": root ", root, " is no rank of a group of ", size_);
}

template <class O> Backend::Plan Backend::plan(c10d::OpType type, const char *title, const O &opts)
{
    const auto timeout = opts.timeout == c10d::kUnsetTimeout ? group_->timeout : opts.timeout;
    // "rondo:all_reduce" is the profiler's name, and all_reduce that of messages.
    Plan plan{
        std::make_shared<Operation>(group_, title + sizeof "rondo:" - 1, timeout), {}, {}, is_async(opts, 0), type, title, {}};
    group_->check_open(plan.operation->name.c_str());
    plan.operation->match = current_key;
    plan.operation->comm = group_->collectives(current_key, false); // on a GPU: until it begins
    return plan;
}

Backend::Result Backend::start(Plan &plan)
{
    auto &operation = plan.operation;
    operation->sequence = ++group_->sequence;
    if (!plan.finishes.empty())
        operation->finish = [finishes = std::move(plan.finishes)] {
            for (auto &finish : finishes)
                finish();
        };
    auto work = c10::make_intrusive<Work>(rank_, plan.type, plan.title, std::optional<Tensors>(plan.inputs), operation);
    rondo_result_t code = RONDO_SUCCESS;
    if (operation->on_gpu()) {
        operation->mark_stream();
        group_->watch(operation);
        operation->begin_after_stream(operation->comm, [operation, calls = std::move(plan.calls)] {
            operation->comm = operation->group->collectives(operation->match, true);
            for (auto &call : calls) {
                rondo_request_t request = nullptr;
                const rondo_result_t code = call(operation->comm, &request);
                if (code != RONDO_SUCCESS)
                    std::rethrow_exception(operation->failure_of(code));
                operation->requests.push_back(request);
            }
        });
        if (!plan.async)
            work->wait(kNoTimeout);
        return work;
    }
    if (!plan.async && plan.calls.size() == 1) {
        group_->watch(operation);
        operation->block([&](rondo_request_t *request) { return plan.calls[0](operation->comm, request); });
        if (operation->error)
            std::rethrow_exception(operation->error);
        return work;
    }
    {
        std::lock_guard<std::mutex> lock(operation->settling);
        for (auto &call : plan.calls) {
            rondo_request_t request = nullptr;
            code = call(operation->comm, &request);
            if (code != RONDO_SUCCESS)
                break;
            operation->requests.push_back(request);
        }
    }
    if (code != RONDO_SUCCESS) {
        auto error = operation->failure_of(code);
        if (operation->requests.empty())
            operation->conclude(error);
        std::rethrow_exception(error); // those before it complete without a Work
    }
    group_->watch(operation);
    if (!plan.async)
        work->wait(kNoTimeout);
    return work;
}

at::Tensor Backend::input_of(Plan &plan, const at::Tensor &tensor)
{
    check(plan, tensor);
    at::Tensor input = tensor.contiguous();
    plan.inputs.push_back(tensor);
    plan.operation->buffers.push_back(input);
    return input;
}

at::Tensor Backend::output_of(Plan &plan, const at::Tensor &tensor)
{
    check(plan, tensor);
    at::Tensor output = tensor.contiguous();
    plan.operation->buffers.push_back(output);
    plan.operation->outputs.push_back(tensor);
    if (!output.is_same(tensor))
        plan.finishes.push_back([tensor, output] { tensor.copy_(output); });
    return output;
}

at::Tensor Backend::flat_output_of(Plan &plan, const Tensors &list)
{
    int64_t count = 0;
    for (auto &tensor : list) {
        check(plan, tensor);
        TORCH_CHECK(tensor.scalar_type() == list[0].scalar_type(), "rondo: ", plan.operation->name, ": tensors of types ",
                    list[0].scalar_type(), " and ", tensor.scalar_type(), " in one list");
        count += tensor.numel();
        plan.operation->outputs.push_back(tensor);
    }
    at::Tensor flat = at::empty({count}, list[0].options());
    plan.operation->buffers.push_back(flat);
    plan.finishes.push_back([list, flat] {
        int64_t offset = 0;
        for (auto &tensor : list) {
            tensor.copy_(flat.narrow(0, offset, tensor.numel()).view(tensor.sizes()));
            offset += tensor.numel();
        }
    });
    return flat;
}

at::Tensor Backend::flat_input_of(Plan &plan, const Tensors &list, const char *call)
{
    Tensors parts;
    for (auto &tensor : list) {
        check(plan, tensor);
        TORCH_CHECK(tensor.scalar_type() == list[0].scalar_type(), "rondo: ", call, ": tensors of types ",
                    list[0].scalar_type(), " and ", tensor.scalar_type(), " in one list");
        parts.push_back(tensor.reshape({-1}));
        plan.inputs.push_back(tensor);
    }
    at::Tensor flat = at::cat(parts);
    plan.operation->buffers.push_back(flat);
    return flat;
}

Backend::Result Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
    auto plan = this->plan(c10d::OpType::BROADCAST, "rondo:broadcast", opts);
    TORCH_CHECK(tensors.size() == 1, "rondo: broadcast: ", tensors.size(), " tensors, and not 1");
    check_root(opts.rootRank, "broadcast");
    const auto buffer = output_of(plan, tensors[0]);
    plan.inputs = tensors;
    const auto e = moved(buffer);
    plan.calls.push_back(
        either(rondo_bcast, rondo_ibcast, buffer.data_ptr(), e.count, e.type, static_cast<int>(opts.rootRank)));
    return start(plan);
}

void Backend::add_allreduce(Plan &plan, at::Tensor &tensor, const c10d::ReduceOp &op)
{
    const char *call = plan.operation->name.c_str();
    const auto buffer = output_of(plan, tensor);
    const auto e = combined(buffer, op, call);
    const auto rondo_op = operator_of(op, buffer.scalar_type(), call);
    plan.inputs.push_back(tensor);
    if (static_cast<c10d::ReduceOp::RedOpType>(op) == c10d::ReduceOp::PREMUL_SUM)
        buffer.copy_(scaled(buffer, op));
    plan.calls.push_back(
        either(rondo_allreduce, rondo_iallreduce, RONDO_IN_PLACE, buffer.data_ptr(), e.count, e.type, rondo_op));
}

Backend::Result Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    TORCH_CHECK(tensors.size() == 1, "rondo: all_reduce: ", tensors.size(), " tensors, and not 1");
    if (tensors[0].layout() == at::kSparse)
        return allreduce_sparse(tensors, opts);
    auto plan = this->plan(c10d::OpType::ALLREDUCE, "rondo:all_reduce", opts);
    add_allreduce(plan, tensors[0], opts.reduceOp);
    return start(plan);
}

Backend::Result Backend::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts)
{
    auto plan = this->plan(c10d::OpType::ALLREDUCE_COALESCED, "rondo:all_reduce", opts);
    for (auto &tensor : tensors)
        add_allreduce(plan, tensor, opts.reduceOp);
    return start(plan);
}

Backend::Result Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
    auto plan = this->plan(c10d::OpType::REDUCE, "rondo:reduce", opts);
    TORCH_CHECK(tensors.size() == 1, "rondo: reduce: ", tensors.size(), " tensors, and not 1");
    check_root(opts.rootRank, "reduce");
    check(plan, tensors[0]);
    const int root = static_cast<int>(opts.rootRank);
    const auto rondo_op = operator_of(opts.reduceOp, tensors[0].scalar_type(), "reduce");
    plan.inputs = tensors;
    if (rank_ == root) {
        const auto buffer = output_of(plan, tensors[0]);
        const auto e = combined(buffer, opts.reduceOp, "reduce");
        if (static_cast<c10d::ReduceOp::RedOpType>(opts.reduceOp) == c10d::ReduceOp::PREMUL_SUM)
            buffer.copy_(scaled(buffer, opts.reduceOp));
        plan.calls.push_back(
            either(rondo_reduce, rondo_ireduce, RONDO_IN_PLACE, buffer.data_ptr(), e.count, e.type, rondo_op, root));
    } else {
        const auto buffer = scaled(tensors[0], opts.reduceOp).contiguous();
        const auto e = combined(buffer, opts.reduceOp, "reduce");
        plan.operation->buffers.push_back(buffer);
        plan.operation->outputs.push_back(tensors[0]);
        plan.calls.push_back(either(rondo_reduce, rondo_ireduce, buffer.const_data_ptr(), static_cast<void *>(nullptr), e.count,
                                    e.type, rondo_op, root));
    }
    return start(plan);
}

void Backend::add_allgather(Plan &plan, at::Tensor &output, const at::Tensor &input)
{
    TORCH_CHECK(output.numel() == input.numel() * size_, "rondo: ", plan.operation->name, ": the output has ", output.numel(),
                " elements, and not ", size_, " times the input's ", input.numel());
    TORCH_CHECK(output.scalar_type() == input.scalar_type(), "rondo: ", plan.operation->name, ": the input is ",
                input.scalar_type(), ", and the output ", output.scalar_type());
    const auto recv = output_of(plan, output);
    auto send = input_of(plan, input);
    const auto e = moved(send);
    const void *from = send.const_data_ptr();
    if (from == static_cast<char *>(recv.data_ptr()) + static_cast<size_t>(rank_) * send.nbytes())
        from = RONDO_IN_PLACE;
    else if (overlap(send, recv)) {
        send = send.clone();
        plan.operation->buffers.push_back(send);
        from = send.const_data_ptr();
    }
    plan.calls.push_back(either(rondo_allgather, rondo_iallgather, from, recv.data_ptr(), e.count, e.type));
}

void Backend::add_allgather(Plan &plan, Tensors &outputs, const at::Tensor &input)
{
    TORCH_CHECK(outputs.size() == static_cast<size_t>(size_), "rondo: ", plan.operation->name, ": ", outputs.size(),
                " output tensors for ", size_, " ranks");
    TORCH_CHECK(outputs[rank_].numel() == input.numel(), "rondo: ", plan.operation->name, ": the input has ", input.numel(),
                " elements, and output ", rank_, " has ", outputs[rank_].numel());
    TORCH_CHECK(outputs[0].scalar_type() == input.scalar_type(), "rondo: ", plan.operation->name, ": the input is ",
                input.scalar_type(), ", and the output ", outputs[0].scalar_type());
    const auto recv = flat_output_of(plan, outputs);
    const auto send = input_of(plan, input);
    const auto e = moved(send);
    bool equal = true;
    for (auto &output : outputs)
        equal = equal && output.numel() == input.numel();
    if (equal) {
        plan.calls.push_back(
            either(rondo_allgather, rondo_iallgather, send.const_data_ptr(), recv.data_ptr(), e.count, e.type));
        return;
    }
    std::vector<size_t> counts, displacements;
    size_t offset = 0;
    for (auto &output : outputs) {
        counts.push_back(static_cast<size_t>(output.numel()) * e.for_each);
        displacements.push_back(offset);
        offset += counts.back();
    }
    plan.calls.push_back([=](rondo_comm_t comm, rondo_request_t *request) {
        return either(rondo_allgatherv, rondo_iallgatherv, send.const_data_ptr(), e.count, recv.data_ptr(), counts.data(),
                      displacements.data(), e.type)(comm, request);
    });
}

Backend::Result Backend::allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    auto plan = this->plan(c10d::OpType::ALLGATHER, "rondo:all_gather", opts);
    TORCH_CHECK(inputs.size() == 1 && outputs.size() == 1, "rondo: all_gather: ", inputs.size(), " inputs and ", outputs.size(),
                " lists of outputs, and not 1 of each");
    add_allgather(plan, outputs[0], inputs[0]);
    return start(plan);
}

Backend::Result Backend::_allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts)
{
    auto plan = this->plan(c10d::OpType::_ALLGATHER_BASE, "rondo:_all_gather_base", opts);
    add_allgather(plan, output, input);
    return start(plan);
}

Backend::Result Backend::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    auto plan = this->plan(c10d::OpType::ALLGATHER_COALESCED, "rondo:all_gather", opts);
    // The lists are one for each rank, of a tensor for each input.
    TORCH_CHECK(outputs.size() == static_cast<size_t>(size_), "rondo: all_gather_coalesced: ", outputs.size(),
                " lists of outputs for ", size_, " ranks");
    for (size_t i = 0; i < inputs.size(); i++) {
        Tensors of_ranks;
        for (auto &list : outputs) {
            TORCH_CHECK(list.size() == inputs.size(), "rondo: all_gather_coalesced: a list of ", list.size(), " outputs for ",
                        inputs.size(), " inputs");
            of_ranks.push_back(list[i]);
        }
        add_allgather(plan, of_ranks, inputs[i]);
    }
    return start(plan);
}

Backend::Result Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    auto plan = this->plan(c10d::OpType::ALLGATHER_COALESCED, "rondo:all_gather_into_tensor_coalesced", opts);
    TORCH_CHECK(outputs.size() == inputs.size(), "rondo: all_gather_into_tensor_coalesced: ", outputs.size(), " outputs for ",
                inputs.size(), " inputs");
    for (size_t i = 0; i < inputs.size(); i++)
        add_allgather(plan, outputs[i], inputs[i]);
    return start(plan);
}

Backend::Result Backend::gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &opts)
{
    auto plan = this->plan(c10d::OpType::GATHER, "rondo:gather", opts);
    TORCH_CHECK(inputs.size() == 1, "rondo: gather: ", inputs.size(), " inputs, and not 1");
    check_root(opts.rootRank, "gather");
    const int root = static_cast<int>(opts.rootRank);
    const auto send = input_of(plan, inputs[0]);
    const auto e = moved(send);
    void *to = nullptr;
    if (rank_ == root) {
        TORCH_CHECK(outputs.size() == 1 && outputs[0].size() == static_cast<size_t>(size_), "rondo: gather: the root of ",
                    size_, " ranks needs a list of so many outputs");
        for (auto &output : outputs[0])
            TORCH_CHECK(output.numel() == inputs[0].numel() && output.scalar_type() == inputs[0].scalar_type(),
                        "rondo: gather: an output of ", output.numel(), " elements of type ", output.scalar_type(),
                        " for inputs of ", inputs[0].numel(), " of type ", inputs[0].scalar_type());
        to = flat_output_of(plan, outputs[0]).data_ptr();
    }
    plan.calls.push_back(either(rondo_gather, rondo_igather, send.const_data_ptr(), to, e.count, e.type, root));
    return start(plan);
}

Backend::Result Backend::scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts)
{
    auto plan = this->plan(c10d::OpType::SCATTER, "rondo:scatter", opts);
    TORCH_CHECK(outputs.size() == 1, "rondo: scatter: ", outputs.size(), " outputs, and not 1");
    check_root(opts.rootRank, "scatter");
    const int root = static_cast<int>(opts.rootRank);
    const auto recv = output_of(plan, outputs[0]);
    const auto e = moved(recv);
    const void *from = nullptr;
    if (rank_ == root) {
        TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_), "rondo: scatter: the root of ", size_,
                    " ranks needs a list of so many inputs");
        for (auto &input : inputs[0])
            TORCH_CHECK(input.numel() == outputs[0].numel() && input.scalar_type() == outputs[0].scalar_type(),
                        "rondo: scatter: an input of ", input.numel(), " elements of type ", input.scalar_type(),
                        " for outputs of ", outputs[0].numel(), " of type ", outputs[0].scalar_type());
        from = flat_input_of(plan, inputs[0], "scatter").const_data_ptr();
    }
    plan.calls.push_back(either(rondo_scatter, rondo_iscatter, from, recv.data_ptr(), e.count, e.type, root));
    return start(plan);
}

Backend::Result Backend::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ReduceScatterOptions &opts)
{
    auto plan = this->plan(c10d::OpType::REDUCE_SCATTER, "rondo:reduce_scatter", opts);
    TORCH_CHECK(outputs.size() == 1 && inputs.size() == 1 && inputs[0].size() == static_cast<size_t>(size_),
                "rondo: reduce_scatter: one output and a list of ", size_, " inputs are needed");
    TORCH_CHECK(inputs[0][rank_].numel() == outputs[0].numel() && inputs[0][0].scalar_type() == outputs[0].scalar_type(),
                "rondo: reduce_scatter: input ", rank_, " has ", inputs[0][rank_].numel(), " elements, and the output ",
                outputs[0].numel());
    auto send = flat_input_of(plan, inputs[0], "reduce_scatter");
    if (static_cast<c10d::ReduceOp::RedOpType>(opts.reduceOp) == c10d::ReduceOp::PREMUL_SUM)
        send.copy_(scaled(send, opts.reduceOp));
    const auto recv = output_of(plan, outputs[0]);
    const auto e = combined(recv, opts.reduceOp, "reduce_scatter");
    const auto op = operator_of(opts.reduceOp, recv.scalar_type(), "reduce_scatter");
    std::vector<size_t> counts;
    for (auto &input : inputs[0])
        counts.push_back(static_cast<size_t>(input.numel()) * e.for_each);
    plan.calls.push_back([=](rondo_comm_t comm, rondo_request_t *request) {
        return either(rondo_reduce_scatter, rondo_ireduce_scatter, send.const_data_ptr(), recv.data_ptr(), counts.data(),
                      e.type, op)(comm, request);
    });
    return start(plan);
}

void Backend::add_reduce_scatter(Plan &plan, at::Tensor &output, const at::Tensor &input, const c10d::ReduceOp &op)
{
    const char *call = plan.operation->name.c_str();
    TORCH_CHECK(input.numel() == output.numel() * size_ && input.scalar_type() == output.scalar_type(), "rondo: ", call,
                ": the input has ", input.numel(), " elements of type ", input.scalar_type(), ", and not ", size_,
                " times the output's ", output.numel(), " of type ", output.scalar_type());
    auto send = input_of(plan, input);
    const auto recv = output_of(plan, output);
    const auto e = combined(recv, op, call);
    const auto rondo_op = operator_of(op, recv.scalar_type(), call);
    const bool own =
        recv.const_data_ptr() == static_cast<const char *>(send.const_data_ptr()) + static_cast<size_t>(rank_) * recv.nbytes();
    if (static_cast<c10d::ReduceOp::RedOpType>(op) == c10d::ReduceOp::PREMUL_SUM)
        send = scaled(send, op);
    else if (overlap(send, recv) && !own)
        send = send.clone();
    plan.operation->buffers.push_back(send);
    plan.calls.push_back(either(rondo_reduce_scatter_block, rondo_ireduce_scatter_block, send.const_data_ptr(), recv.data_ptr(),
                                e.count, e.type, rondo_op));
}

Backend::Result Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input, const c10d::ReduceScatterOptions &opts)
{
    auto plan = this->plan(c10d::OpType::_REDUCE_SCATTER_BASE, "rondo:_reduce_scatter_base", opts);
    add_reduce_scatter(plan, output, input, opts.reduceOp);
    return start(plan);
}

Backend::Result Backend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                         const c10d::ReduceScatterOptions &opts)
{
    auto plan = this->plan(c10d::OpType::REDUCE_SCATTER, "rondo:reduce_scatter_tensor_coalesced", opts);
    TORCH_CHECK(outputs.size() == inputs.size(), "rondo: reduce_scatter_tensor_coalesced: ", outputs.size(), " outputs for ",
                inputs.size(), " inputs");
    for (size_t i = 0; i < inputs.size(); i++)
        add_reduce_scatter(plan, outputs[i], inputs[i], opts.reduceOp);
    return start(plan);
}

void Backend::add_alltoall(Plan &plan, const at::Tensor &output, const at::Tensor &input,
                           const std::vector<size_t> &output_counts, const std::vector<size_t> &input_counts)
{
    TORCH_CHECK(output.scalar_type() == input.scalar_type(), "rondo: ", plan.operation->name, ": the input is ",
                input.scalar_type(), ", and the output ", output.scalar_type());
    const auto e = moved(input);
    std::vector<size_t> counts[2] = {input_counts, output_counts}, displacements[2];
    for (int side = 0; side < 2; side++) {
        size_t offset = 0;
        for (auto &count : counts[side]) {
            count *= e.for_each;
            displacements[side].push_back(offset);
            offset += count;
        }
    }
    plan.calls.push_back([=, scounts = counts[0], rcounts = counts[1], sdispls = displacements[0],
                          rdispls = displacements[1]](rondo_comm_t comm, rondo_request_t *request) {
        return either(rondo_alltoallv, rondo_ialltoallv, input.const_data_ptr(), scounts.data(), sdispls.data(),
                      output.data_ptr(), rcounts.data(), rdispls.data(), e.type)(comm, request);
    });
}

Backend::Result Backend::alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
                                       std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts)
{
    auto plan = this->plan(c10d::OpType::ALLTOALL_BASE, "rondo:all_to_all", opts);
    auto send = input_of(plan, input);
    const auto recv = output_of(plan, output);
    if (overlap(send, recv)) {
        send = send.clone();
        plan.operation->buffers.push_back(send);
    }
    if (output_splits.empty() && input_splits.empty()) {
        TORCH_CHECK(output.numel() == input.numel() && output.scalar_type() == input.scalar_type(),
                    "rondo: all_to_all_single: the input has ", input.numel(), " elements of type ", input.scalar_type(),
                    ", and the output ", output.numel(), " of type ", output.scalar_type());
        TORCH_CHECK(output.dim() > 0 && output.size(0) % size_ == 0 && input.size(0) % size_ == 0,
                    "rondo: all_to_all_single: the first dimension does not divide by the group's size ", size_);
        const auto e = moved(send);
        plan.calls.push_back(either(rondo_alltoall, rondo_ialltoall, send.const_data_ptr(), recv.data_ptr(),
                                    e.count / static_cast<size_t>(size_), e.type));
        return start(plan);
    }
    auto counts = [this](const at::Tensor &tensor, const std::vector<int64_t> &splits, const char *which) {
        TORCH_CHECK(tensor.dim() > 0, "rondo: all_to_all_single: a tensor without dimensions cannot be split");
        const int64_t rows = tensor.size(0), row = rows > 0 ? tensor.numel() / rows : 0;
        std::vector<size_t> result;
        int64_t sum = 0;
        TORCH_CHECK(!splits.empty() || rows % size_ == 0, "rondo: all_to_all_single: the first dimension ", rows,
                    " does not divide by the group's size ", size_);
        TORCH_CHECK(splits.empty() || splits.size() == static_cast<size_t>(size_), "rondo: all_to_all_single: ", splits.size(),
                    " ", which, " splits for ", size_, " ranks");
        for (int i = 0; i < size_; i++) {
            const int64_t split = splits.empty() ? rows / size_ : splits[i];
            TORCH_CHECK(split >= 0, "rondo: all_to_all_single: a split of ", split);
            sum += split;
            result.push_back(static_cast<size_t>(split * row));
        }
        TORCH_CHECK(sum == rows, "rondo: all_to_all_single: the ", which, " splits sum to ", sum, ", and the tensor has ", rows,
                    " rows");
        return result;
    };
    add_alltoall(plan, recv, send, counts(output, output_splits, "output"), counts(input, input_splits, "input"));
    return start(plan);
}

Backend::Result Backend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts)
{
    auto plan = this->plan(c10d::OpType::ALLTOALL, "rondo:all_to_all", opts);
    TORCH_CHECK(outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(),
                "rondo: all_to_all: ", inputs.size(), " inputs and ", outputs.size(), " outputs for ", size_, " ranks");
    std::vector<size_t> counts[2];
    for (int i = 0; i < size_; i++) {
        counts[0].push_back(static_cast<size_t>(inputs[i].numel()));
        counts[1].push_back(static_cast<size_t>(outputs[i].numel()));
    }
    const auto send = flat_input_of(plan, inputs, "all_to_all");
    const auto recv = flat_output_of(plan, outputs);
    add_alltoall(plan, recv, send, counts[1], counts[0]);
    return start(plan);
}

Backend::Result Backend::barrier(const c10d::BarrierOptions &opts)
{
    auto plan = this->plan(c10d::OpType::BARRIER, "rondo:barrier", opts);
    plan.calls.push_back(either(rondo_barrier, rondo_ibarrier));
    return start(plan);
}

// The ranks' tensors are gathered, and each rank adds them: index lists and sizes differ, so nothing of it can be reduced. The
// sizes must be known before the data can be gathered, so the call blocks.
Backend::Result Backend::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    TORCH_CHECK(tensors.size() == 1, "rondo: all_reduce: ", tensors.size(), " tensors, and not 1");
    at::Tensor &tensor = tensors[0];
    TORCH_CHECK(tensor.device().is_cpu() && tensor.layout() == at::kSparse,
                "rondo: all_reduce of a sparse tensor takes sparse COO tensors on cpu");
    const auto op = static_cast<c10d::ReduceOp::RedOpType>(opts.reduceOp);
    TORCH_CHECK(op == c10d::ReduceOp::SUM, "rondo: all_reduce of a sparse tensor: only the sum is supported");
    const at::Tensor input = tensor.coalesce();
    const at::Tensor indices = input.indices().contiguous(), values = input.values().contiguous();
    c10d::AllgatherOptions gathering;
    gathering.timeout = opts.timeout;
    auto gathered = [&](const at::Tensor &mine, const Tensors &shapes) {
        Tensors inputs{mine};
        std::vector<Tensors> outputs{shapes};
        allgather(outputs, inputs, gathering)->wait();
        return outputs[0];
    };
    Tensors counts, all_indices, all_values;
    for (int i = 0; i < size_; i++)
        counts.push_back(at::empty({1}, at::kLong));
    counts = gathered(at::full({1}, input._nnz(), at::kLong), counts);
    for (int i = 0; i < size_; i++) {
        const int64_t nnz = counts[i].item<int64_t>();
        auto sizes = values.sizes().vec();
        sizes[0] = nnz;
        all_indices.push_back(at::empty({indices.size(0), nnz}, indices.options()));
        all_values.push_back(at::empty(sizes, values.options()));
    }
    all_indices = gathered(indices, all_indices);
    all_values = gathered(values, all_values);
    const at::Tensor sum = at::sparse_coo_tensor(at::cat(all_indices, 1), at::cat(all_values), tensor.sizes()).coalesce();
    tensor.copy_(sum);
    auto operation = std::make_shared<Operation>(group_, "all_reduce", Milliseconds(0));
    operation->outputs = {tensor};
    operation->conclude(nullptr);
    return c10::make_intrusive<Work>(rank_, c10d::OpType::_ALLREDUCE_SPARSE, "rondo:sparse_all_reduce",
                                     std::optional<Tensors>(tensors), operation);
}

} // namespace rondo_torch
