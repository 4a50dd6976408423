// The c10d backend "rondo": each collective of a process group as a call of rondo.h, of tensors on the processor or on a GPU.
// Messages of GPU tensors go through host memory.
#pragma once

#include "group.hpp"

namespace rondo_torch
{

// What PyTorch copies for a group that is split from another: the timeout, and what it sets itself.
struct GroupOptions : c10d::Backend::Options {
    using Options::Options;
};

class Backend : public c10d::Backend
{
  public:
    using Tensors = std::vector<at::Tensor>;
    using Result = c10::intrusive_ptr<c10d::Work>;

    Backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, Milliseconds timeout, std::string name,
            std::vector<int64_t> global_ranks);
    ~Backend() override;

    const std::string getBackendName() const override
    {
        return "rondo";
    }
    c10::intrusive_ptr<Options> getBackendOptions() override
    {
        return options_;
    }
    c10::intrusive_ptr<GroupOptions> group_options() const
    {
        return options_;
    }
    void setTimeout(std::chrono::milliseconds timeout) override;
    uint64_t getSequenceNumberForGroup() override;
    void setSequenceNumberForGroup() override
    {
    }
#if RONDO_TORCH_HAS_HOOKS
    bool supportsCompletionHooks() const override
    {
        return true;
    }
    void registerCompletionHook(int64_t number, c10d::CompletionHook hook) override;
    void unregisterCompletionHook(int64_t number) override;
    bool supportsAbortHooks() const override
    {
        return true;
    }
    void registerAbortHook(int64_t number, c10d::AbortHook hook) override;
    void unregisterAbortHook(int64_t number) override;
#endif
    void abort() override;
    void shutdown() override;
    bool supportsSplitting() const override
    {
        return true;
    }
    c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
                                            const c10::intrusive_ptr<Options> &opts) override;

    Result broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override;
    Result allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
    Result allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
    Result allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts) override;
    Result reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override;
    Result allgather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
    Result _allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts) override;
    Result allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
    Result allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts) override;
    Result gather(std::vector<Tensors> &outputs, Tensors &inputs, const c10d::GatherOptions &opts) override;
    Result scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ScatterOptions &opts) override;
    Result reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs, const c10d::ReduceScatterOptions &opts) override;
    Result _reduce_scatter_base(at::Tensor &output, at::Tensor &input, const c10d::ReduceScatterOptions &opts) override;
    Result reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs, const c10d::ReduceScatterOptions &opts) override;
    Result alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
                         std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts) override;
    Result alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts) override;
    Result send(Tensors &tensors, int destination, int tag) override;
    Result recv(Tensors &tensors, int source, int tag) override;
    Result recvAnysource(Tensors &tensors, int tag) override;
    Result barrier(const c10d::BarrierOptions &opts) override;
    void monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks) override;

    // Makes the keys, which are new, known to the group. Collective over it, with the same keys in the same order.
    void register_keys(const std::vector<std::string> &keys);
    std::map<std::string, std::map<std::string, uint64_t>> statistics()
    {
        return group_->statistics();
    }
    // Collectives that the calling thread starts from now on match those of this key alone; empty: those without one. Returns
    // the key before.
    static std::string set_key(std::string key);

  private:
    // A call on a communicator, made with a request if it may go on after it, and with NULL if it is to block.
    using Call = std::function<rondo_result_t(rondo_comm_t, rondo_request_t *)>;
    // What a c10d call becomes.
    struct Plan {
        std::shared_ptr<Operation> operation;
        std::vector<Call> calls;
        std::vector<std::function<void()>> finishes;
        bool async;
        c10d::OpType type;
        const char *title;
        Tensors inputs;      // for the profiler
        bool placed = false; // the operation has the device of its first tensor
    };
    template <class O> Plan plan(c10d::OpType type, const char *title, const O &opts);
    Result start(Plan &plan);

    // Parts of plans: the coalesced forms have several of each.
    void add_allreduce(Plan &plan, at::Tensor &tensor, const c10d::ReduceOp &op);
    void add_allgather(Plan &plan, at::Tensor &output, const at::Tensor &input);
    void add_allgather(Plan &plan, Tensors &outputs, const at::Tensor &input);
    void add_reduce_scatter(Plan &plan, at::Tensor &output, const at::Tensor &input, const c10d::ReduceOp &op);
    void add_alltoall(Plan &plan, const at::Tensor &output, const at::Tensor &input, const std::vector<size_t> &output_counts,
                      const std::vector<size_t> &input_counts);
    // The tensor as one block of memory: itself, or a copy that is copied back at the end.
    at::Tensor input_of(Plan &plan, const at::Tensor &tensor);
    at::Tensor output_of(Plan &plan, const at::Tensor &tensor);
    // A tensor of all elements of the list, which is copied to the list at the end.
    at::Tensor flat_output_of(Plan &plan, const Tensors &list);
    at::Tensor flat_input_of(Plan &plan, const Tensors &list, const char *call);
    void check(const at::Tensor &tensor, const char *call) const;
    // Checks a tensor of the plan, and takes the operation to the device of the first.
    void check(Plan &plan, const at::Tensor &tensor);
    void check_root(int64_t root, const char *call) const;
    Result receive(Tensors &tensors, int source, int tag);
    std::shared_ptr<Operation> message(const char *call, int peer, int tag, bool sends, const at::Tensor &tensor,
                                       Milliseconds timeout);

    std::shared_ptr<Group> group_;
    c10::intrusive_ptr<GroupOptions> options_;
};

} // namespace rondo_torch
