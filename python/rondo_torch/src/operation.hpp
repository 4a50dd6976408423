// One c10d call on its way: the requests of rondo.h that carry it, the tensors that they use, and what is left to do once they
// are complete. An Operation outlives the Work that PyTorch holds: who drops a Work does not stop the transfer.
//
// On the processor the thread that waits completes the requests. On a GPU a callback has a thread of the group do it.
#pragma once

#include "gpu.hpp"

#include <rondo.h>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <torch/version.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

// Hooks that a backend calls at completions and failures, such as the flight recorder's: PyTorch 2.15 and later.
#define RONDO_TORCH_HAS_HOOKS (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 15)

namespace rondo_torch
{

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

class Group;

// An exception of type torch.distributed.DistBackendError.
std::exception_ptr backend_error(const std::string &message);

struct Operation : std::enable_shared_from_this<Operation> {
    Operation(std::shared_ptr<Group> group, const char *name, Milliseconds timeout);

    std::shared_ptr<Group> group;
    std::string name;     // of the c10d call, for messages
    Milliseconds timeout; // from the call on; 0: none
    const Clock::time_point started = Clock::now();
    Clock::time_point deadline, ended; // ended: written before done
    uint64_t sequence = 0;
    const uint64_t key;                  // of no other operation of the process
    rondo_comm_t comm = nullptr;         // of the group, that its requests are on
    std::string match;                   // the key that its collective matches by
    std::vector<at::Tensor> buffers;     // what the requests read and write, alive until the operation is done
    std::vector<at::Tensor> outputs;     // result() and the future's value
    std::function<void()> finish;        // copies from the buffers to the caller's tensors; called once, if all went well
    std::function<void()> end_of_record; // the profiler's
    int source = -1;                     // rank whose message was received
    c10::Device device{c10::kCPU};       // of the tensors
    std::shared_ptr<c10::Event> ready;   // on a GPU: when the stream of the call had come so far

    // The requests; an entry is NULL once it is complete. Only the holder of `settling` completes them. A receive has none: the
    // group's messages complete it (conclude).
    std::mutex settling;
    std::vector<rondo_request_t> requests;
    bool received_by_messages = false;
    bool needs_gpu = false; // its requests are of the group's runtime on the GPU
    bool postponed = false; // the watchdog's: its deadline has been put off

    std::atomic<int> awaited{0}; // requests whose callbacks have not been called

    std::atomic<bool> done{false};
    std::exception_ptr error; // written before done

    bool on_gpu() const
    {
        return device.is_cuda();
    }
    // Takes note of how far the current stream of the operation's device has come, which is a GPU.
    void mark_stream();
    // After mark_stream(): calls the function, which starts the requests, once the stream has come so far, and the group has a
    // runtime on the GPU if the operation needs it. Those of one order are started in the order of the calls. Throws the
    // function's error if it is called at once.
    void begin_after_stream(const void *order, std::function<void()> begin);
    // Ends an operation on a GPU with this error, and returns true, if its requests have not been started.
    bool give_up(std::exception_ptr failure);
    // Looks whether the operation is complete, and completes it then. Never blocks.
    bool poll();
    // Waits until it is complete; false if `until` comes first.
    bool wait_until(Clock::time_point until);
    // Waits until it is complete, for as long as its own timeout, which the group's watchdog keeps, lets it last.
    void wait();
    // Waits for the requests, and completes the operation.
    void complete();
    // Makes a blocking call, and completes the operation with its result.
    void block(const std::function<rondo_result_t(rondo_request_t *)> &call);
    // Ends it with this error, or without one. At most one call has an effect.
    void conclude(std::exception_ptr failure);
    float duration() const // milliseconds; it is done
    {
        return std::chrono::duration<float, std::milli>(ended - started).count();
    }
    // The error of a call that returned this code, with the text of rondo_last_error() and the ranks' numbers.
    std::exception_ptr failure_of(rondo_result_t code);
    // The watchdog's word that the operation is beyond its timeout: the text of the error that it then ends with.
    void expire(const std::string &text);

    c10::intrusive_ptr<c10::ivalue::Future> future();

  private:
    void complete_requests(); // all requests are complete: settling is held
    void begin_requests(const std::function<void()> &begin, std::exception_ptr failure);
    void follow_requests();                  // has the group complete the operation when its requests are; settling is held
    void finish_on_gpu();                    // finish(), and settle() when that is done
    void settle(std::exception_ptr failure); // the end, once all is in place
    bool begun_ = false;                     // or given up; with settling held
    std::exception_ptr begin_failure_;       // of a call after those that have started requests; written with settling held
    rondo_result_t first_failure_ = RONDO_SUCCESS;
    std::string failure_text_;
    std::mutex mutex_; // of what follows
    std::condition_variable ended_;
    bool concluded_ = false;
    std::string expired_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    friend class Group;
};

// What PyTorch holds of an Operation.
class Work : public c10d::Work
{
  public:
    Work(int rank, c10d::OpType type, const char *title, const std::optional<std::vector<at::Tensor>> &inputs,
         std::shared_ptr<Operation> operation);
    ~Work() override;
    bool isCompleted() override;
    bool isSuccess() const override;
    std::exception_ptr exception() const override;
    int sourceRank() const override;
    std::vector<at::Tensor> result() override;
    void synchronize() override;
    bool wait(std::chrono::milliseconds timeout) override;
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    uint64_t getSequencenumber() const override;
    float getDuration() const override; // milliseconds from the call to the completion
#if RONDO_TORCH_HAS_HOOKS
    uint64_t getCompletionKey() const override;
#endif

  private:
    std::shared_ptr<Operation> operation_;
};

} // namespace rondo_torch
